// SPDX-License-Identifier: Apache-2.0

// Package crds embeds the CustomResourceDefinitions that the product installs. `make generate` generates them.
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

// The folders: each is a set of CRDs that is installed together.
const (
	// HyperShift contains the kinds of hypershift.openshift.io, for the management cluster.
	HyperShift = "hypershift"
	// Certificates contains the kinds of certificates.hypershift.openshift.io, for the management cluster.
	Certificates = "certificates"
	// Infrastructure contains the Maas* kinds of infrastructure.cluster.x-k8s.io, for the management cluster.
	Infrastructure = "infrastructure"
	// Agent contains the kinds of the infrastructure provider of the platform Agent, for the management cluster.
	Agent = "agent"
	// KubeVirt contains the kinds of the infrastructure provider of the platform KubeVirt, for the management cluster.
	KubeVirt = "kubevirt"
	// AWS contains the kinds of the infrastructure provider of the platform AWS, for the management cluster. They are
	// as the provider publishes them, without descriptions.
	AWS = "aws"
	// ClusterAPI contains Cluster API's own kinds, for the management cluster. They are stored as v1beta2 and also
	// served in the previous version. The installer sets the conversion webhook with support/operatorwebhook.
	ClusterAPI = "clusterapi"
	// OpenShift contains the kinds of config.openshift.io, for every guest cluster.
	OpenShift = "openshift"
)

// Folders lists all folders.
var Folders = []string{HyperShift, Certificates, Infrastructure, Agent, KubeVirt, AWS, ClusterAPI, OpenShift}

// FS holds the YAML files, one CRD each, by folder.
//
//go:embed */*.yaml
var FS embed.FS

// Load returns the CRDs of one folder, ordered by name. It returns an error if the folder does not exist.
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

// Names returns the names of the CRDs of one folder, in order; none if the folder does not exist.
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
