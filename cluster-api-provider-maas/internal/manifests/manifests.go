// SPDX-License-Identifier: Apache-2.0

// Package manifests renders the files from which clusterctl installs the provider.
package manifests

import (
	"bytes"
	"embed"
	"fmt"
	"text/template"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/support/crds"
)

const (
	// providerLabel is set on every object, so that clusterctl knows its provider.
	providerLabel = "cluster.x-k8s.io/provider"
	providerName  = "infrastructure-maas"
)

//go:embed files/*.yaml
var files embed.FS

// Release holds the parameters of the rendered files.
type Release struct {
	// Image is the image of the provider.
	Image string
	// Version is the release version, with or without a leading v.
	Version string
}

// Render returns the files of a release by name.
func (r Release) Render() (map[string][]byte, error) {
	version, err := semver.ParseTolerant(r.Version)
	if err != nil {
		return nil, fmt.Errorf("version %q is not like v1.2.3: %w", r.Version, err)
	}
	if r.Image == "" {
		return nil, fmt.Errorf("the image of the provider is not named")
	}
	values := map[string]any{"Image": r.Image, "Major": version.Major, "Minor": version.Minor}
	out := map[string][]byte{}
	for name, file := range map[string]string{"metadata.yaml": "metadata.yaml", "infrastructure-components.yaml": "components.yaml"} {
		if out[name], err = render(file, values); err != nil {
			return nil, err
		}
	}
	// clusterctl substitutes the variables.
	if out["cluster-template.yaml"], err = files.ReadFile("files/cluster-template.yaml"); err != nil {
		return nil, fmt.Errorf("reading the cluster template: %w", err)
	}
	out["infrastructure-components.yaml"], err = components(out["infrastructure-components.yaml"])
	return out, err
}

func render(file string, values map[string]any) ([]byte, error) {
	// The default delimiters are used by cloud-init in these files.
	parsed, err := template.New(file).Delims("[[", "]]").Option("missingkey=error").ParseFS(files, "files/"+file)
	if err != nil {
		return nil, fmt.Errorf("parsing %s: %w", file, err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, values); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", file, err)
	}
	return out.Bytes(), nil
}

// components puts the CRDs before the other objects, and sets the provider label on all of them.
func components(rest []byte) ([]byte, error) {
	list, err := crds.Load(crds.Infrastructure)
	if err != nil {
		return nil, fmt.Errorf("reading the CRDs: %w", err)
	}
	var documents [][]byte
	for _, crd := range list {
		text, err := yaml.Marshal(crd)
		if err != nil {
			return nil, fmt.Errorf("encoding CRD %s: %w", crd.Name, err)
		}
		documents = append(documents, text)
	}
	documents = append(documents, bytes.Split(rest, []byte("\n---\n"))...)
	for i := range documents {
		if documents[i], err = label(documents[i]); err != nil {
			return nil, err
		}
	}
	return bytes.Join(documents, []byte("---\n")), nil
}

func label(document []byte) ([]byte, error) {
	var object map[string]any
	if err := yaml.Unmarshal(document, &object); err != nil {
		return nil, fmt.Errorf("reading a component: %w", err)
	}
	delete(object, "status")
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a component of kind %v has no metadata", object["kind"])
	}
	labels, ok := metadata["labels"].(map[string]any)
	if !ok {
		labels = map[string]any{}
	}
	labels[providerLabel] = providerName
	metadata["labels"] = labels
	return yaml.Marshal(object)
}
