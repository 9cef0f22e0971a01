// SPDX-License-Identifier: Apache-2.0

// Package crds holds the CustomResourceDefinitions that the product installs, as `make generate` makes them.
package crds

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// The folders: each is a set of CRDs that is installed as a whole.
const (
	// HyperShift is hypershift.openshift.io: on the management cluster.
	HyperShift = "hypershift"
	// Certificates is certificates.hypershift.openshift.io: on the management cluster.
	Certificates = "certificates"
	// Infrastructure is the Maas* kinds of infrastructure.cluster.x-k8s.io: on the management cluster.
	Infrastructure = "infrastructure"
	// Agent is the kinds of the provider of the platform Agent: on the management cluster.
	Agent = "agent"
	// KubeVirt is the kinds of the provider of the platform KubeVirt: on the management cluster.
	KubeVirt = "kubevirt"
	// AWS is the kinds of the provider of the platform AWS, as it publishes them, without descriptions: on the management cluster.
	AWS = "aws"
	// ClusterAPI is Cluster API's own kinds, stored as v1beta2 and served in the version before it too: on the management cluster. Who
	// converts is for the installer to say, by support/operatorwebhook.
	ClusterAPI = "clusterapi"
	// OpenShift is config.openshift.io: in every guest cluster.
	OpenShift = "openshift"
)

// Folders are all of them.
var Folders = []string{HyperShift, Certificates, Infrastructure, Agent, KubeVirt, AWS, ClusterAPI, OpenShift}

// FS holds the YAML files, one CRD each, by folder.
//
//go:embed */*.yaml
var FS embed.FS

// Load reads the CRDs of one folder, in order of their names. It returns an error when there is no such folder.
func Load(folder string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := FS.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("reading the CRDs of %q: %w", folder, err)
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(entries))
	for _, entry := range entries {
		data, err := FS.ReadFile(path.Join(folder, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading CRD %s: %w", entry.Name(), err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			return nil, fmt.Errorf("reading CRD %s: %w", entry.Name(), err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// Names are the names of the CRDs of one folder, in their order; none where there is no such folder.
func Names(folder string) []string {
	files, err := fs.Glob(FS, path.Join(folder, "*.yaml"))
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(files))
	for _, file := range files {
		group, resource, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".yaml"), "_")
		names = append(names, resource+"."+group)
	}
	return names
}
