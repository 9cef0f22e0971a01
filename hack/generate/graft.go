// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// manifests are the CRDs that the module github.com/openshift/api publishes for one of its packages.
type manifests struct{ folder string }

func openManifests(pkg string) (manifests, error) {
	module, err := moduleFolder(openshiftModule)
	if err != nil {
		return manifests{}, err
	}
	return manifests{folder: filepath.Join(module, pkg, "zz_generated.crd-manifests")}, nil
}

// crd reads the CRD of a resource for a hosted cluster with the Default feature set.
func (m manifests) crd(resource string) (object, error) {
	for _, variant := range []string{"", "-Default", "-Hypershift", "-Hypershift-Default"} {
		paths, err := filepath.Glob(filepath.Join(m.folder, "*_"+resource+variant+".crd.yaml"))
		if err != nil {
			return nil, err
		}
		if len(paths) == 1 {
			return readObject(paths[0])
		}
	}
	return nil, fmt.Errorf("%s has no CRD of %s for the Default feature set", m.folder, resource)
}

// graft replaces a part of our schema with that of an OpenShift CRD. controller-gen ignores feature gates. Its output
// for OpenShift's types lacks enums and rules, and has fields that no release serves.
type graft struct {
	// into is a path in our CRD's schema. from is the source path in the CRD of a resource of pkg, a package of
	// openshift/api.
	into, pkg, resource, from string
}

// grafts apply to both HostedCluster and HostedControlPlane. A path that one of them lacks is skipped for it.
var grafts = []graft{
	{"spec.configuration.apiServer", "config/v1", "apiservers", "spec"},
	// HyperShift serves the OIDC fields that standalone OpenShift has behind a gate.
	{"spec.configuration.authentication", "config/v1", "authentications-TechPreviewNoUpgrade", "spec"},
	{"spec.configuration.featureGate", "config/v1", "featuregates", "spec"},
	{"spec.configuration.image", "config/v1", "images", "spec"},
	{"spec.configuration.ingress", "config/v1", "ingresses", "spec"},
	{"spec.configuration.network", "config/v1", "networks", "spec"},
	{"spec.configuration.oauth", "config/v1", "oauths", "spec"},
	{"spec.configuration.operatorhub", "config/v1", "operatorhubs", "spec"},
	{"spec.configuration.scheduler", "config/v1", "schedulers", "spec"},
	{"spec.configuration.proxy", "config/v1", "proxies", "spec"},
	{"spec.operatorConfiguration.ingressOperator.endpointPublishingStrategy", "operator/v1", "ingresscontrollers", "spec.endpointPublishingStrategy"},
	{"status.configuration.authentication", "config/v1", "authentications", "status"},
	{"status.version.history", "config/v1", "clusterversions", "status.history"},
	{"status.version.conditionalUpdates", "config/v1", "clusterversions", "status.conditionalUpdates"},
	{"status.versionStatus.history", "config/v1", "clusterversions", "status.history"},
	{"status.versionStatus.conditionalUpdates", "config/v1", "clusterversions", "status.conditionalUpdates"},
}

func graftAll(crds map[string]object) error {
	for _, ours := range []string{"hostedclusters.hypershift.openshift.io", "hostedcontrolplanes.hypershift.openshift.io"} {
		for _, g := range grafts {
			if err := g.apply(crds[ours]); err != nil {
				return fmt.Errorf("grafting %s into %s: %w", g.resource, ours, err)
			}
		}
	}
	return nil
}

func (g graft) apply(ours object) error {
	parent, last := splitLast(g.into)
	branch, err := property(ours, parent)
	if err != nil {
		return err
	}
	properties, _ := branch["properties"].(object)
	if _, ok := properties[last].(object); !ok {
		return nil
	}
	source, err := openManifests(g.pkg)
	if err != nil {
		return err
	}
	theirs, err := source.crd(g.resource)
	if err != nil {
		return err
	}
	scion, err := property(theirs, g.from)
	if err != nil {
		return err
	}
	if scion == nil {
		return fmt.Errorf("the CRD of %s has no %s", g.resource, g.from)
	}
	replace(properties, last, scion)
	return nil
}

// replace replaces a schema, and keeps our own parts of it.
func replace(properties object, key string, scion object) {
	before, _ := properties[key].(object)
	strip(scion)
	for _, kept := range []string{"description", "maxItems", "x-kubernetes-list-type", "x-kubernetes-preserve-unknown-fields"} {
		delete(scion, kept)
		if value, has := before[kept]; has {
			scion[kept] = value
		}
	}
	properties[key] = scion
}

// property returns the schema of a field such as "spec.platform". A missing one is an empty schema.
func property(crd object, path string) (object, error) {
	schema, err := at(crd, "spec", "versions", "schema", "openAPIV3Schema")
	if err != nil {
		return nil, err
	}
	for key := range strings.SplitSeq(path, ".") {
		properties, _ := schema["properties"].(object)
		schema, _ = properties[key].(object)
	}
	return schema, nil
}

func splitLast(path string) (parent, last string) {
	i := strings.LastIndex(path, ".")
	return path[:i], path[i+1:]
}
