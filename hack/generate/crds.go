// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/hack/generate/bounds"
)

const (
	crdFolder       = "support/crds"
	openshiftModule = "github.com/openshift/api"
	clusterAPI      = "sigs.k8s.io/cluster-api/api/"
	madeBy          = "# Made by `make generate`; do not edit.\n"
)

// customResources generates the CRDs of every folder of support/crds.
func customResources(g generator) ([]file, error) {
	var files []file
	for _, make := range []func(generator) ([]file, error){ownCRDs, clusterAPICRDs, awsCRDs, openshiftCRDs} {
		made, err := make(g)
		if err != nil {
			return nil, err
		}
		files = append(files, made...)
	}
	return files, nil
}

// folderOfVersion maps a group and version to its folder of support/crds: providers share a group.
var folderOfVersion = map[string]string{
	"hypershift.openshift.io/v1beta1":                  "hypershift",
	"certificates.hypershift.openshift.io/v1alpha1":    "certificates",
	"infrastructure.cluster.x-k8s.io/v1beta1":          "infrastructure",
	"infrastructure.cluster.x-k8s.io/v1alpha1":         "kubevirt",
	"capi-provider.agent-install.openshift.io/v1beta1": "agent",
}

func ownCRDs(g generator) ([]file, error) {
	crds, err := g.crdsOf("api", "crd:crdVersions=v1", "./...")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(graftAll(crds), relaxConditions(crds)); err != nil {
		return nil, err
	}
	var files []file
	for _, crd := range sorted(crds) {
		spec, err := at(crd, "spec")
		if err != nil {
			return nil, fmt.Errorf("CRD %s: %w", name(crd), err)
		}
		version := fmt.Sprintf("%s/%s", spec["group"], versions(crd)[0]["name"])
		folder, ok := folderOfVersion[version]
		if !ok {
			return nil, fmt.Errorf("no folder of %s is set for %s: add it to folderOfVersion", crdFolder, version)
		}
		f, err := crdFile(folder, crd)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// clusterAPICRDs generates the CRDs with two versions. Our managers use v1beta2, which is the stored version. The
// managers of OpenShift payloads up to 4.22, and the watches of all managers, use v1beta1.
func clusterAPICRDs(g generator) ([]file, error) {
	packages := []string{
		"core/v1beta1", "core/v1beta2", "addons/v1beta1", "addons/v1beta2", "ipam/v1beta1", "ipam/v1beta2", "runtime/v1alpha1", "runtime/v1beta2",
	}
	for i, pkg := range packages {
		packages[i] = clusterAPI + pkg
	}
	crds, err := g.crdsOf(".", "crd:crdVersions=v1,maxDescLen=0", packages...)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, crd := range sorted(crds) {
		setLabels(crd, map[string]any{
			"cluster.x-k8s.io/provider": "cluster-api", "cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2",
		})
		f, err := crdFile("clusterapi", crd)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// guestResources are the kinds of config.openshift.io in a hosted cluster.
var guestResources = []string{
	"apiservers", "authentications", "builds", "clusteroperators", "clusterversions", "dnses", "featuregates", "images",
	"imagedigestmirrorsets", "imagetagmirrorsets", "infrastructures", "ingresses", "networks", "oauths", "operatorhubs",
	"projects", "proxies", "schedulers",
}

func openshiftCRDs(generator) ([]file, error) {
	manifests, err := openManifests("config/v1")
	if err != nil {
		return nil, err
	}
	var files []file
	for _, resource := range guestResources {
		crd, err := manifests.crd(resource)
		if err != nil {
			return nil, err
		}
		if metadata, ok := crd["metadata"].(object); ok {
			delete(metadata, "annotations")
		}
		for _, version := range versions(crd) {
			schema, err := at(version, "schema", "openAPIV3Schema")
			if err != nil {
				return nil, fmt.Errorf("CRD %s: %w", name(crd), err)
			}
			strip(schema)
		}
		f, err := crdFile("openshift", crd)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func crdFile(folder string, crd object) (file, error) {
	if err := bounds.Apply(crd); err != nil {
		return file{}, fmt.Errorf("bounding the values of fields: %w", err)
	}
	data, err := yaml.Marshal(crd)
	if err != nil {
		return file{}, fmt.Errorf("writing CRD %s: %w", name(crd), err)
	}
	resource, group, _ := strings.Cut(name(crd), ".")
	path := filepath.Join(crdFolder, folder, group+"_"+resource+".yaml")
	return file{path: path, data: append([]byte(madeBy), data...)}, nil
}

func setLabels(o object, labels map[string]any) {
	metadata, _ := o["metadata"].(object)
	now, ok := metadata["labels"].(object)
	if !ok {
		now = object{}
		metadata["labels"] = now
	}
	maps.Copy(now, labels)
}

func versions(crd object) []object {
	spec, _ := crd["spec"].(object)
	list, _ := spec["versions"].([]any)
	var out []object
	for _, item := range list {
		if version, ok := item.(object); ok {
			out = append(out, version)
		}
	}
	return out
}

func sorted(crds map[string]object) []object {
	var out []object
	for _, key := range slices.Sorted(maps.Keys(crds)) {
		out = append(out, crds[key])
	}
	return out
}
