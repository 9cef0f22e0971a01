// SPDX-License-Identifier: Apache-2.0

// Package nodeinput reads the inputs of a node's configuration and rejects settings that nodes do not support. The
// operator and the ignition-server share this package, so the server can render everything that the operator accepts.
package nodeinput

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	ignition "github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/releaseinfo"
)

const (
	machineConfigGroup   = "machineconfiguration.openshift.io"
	roleLabel            = machineConfigGroup + "/role"
	builtInSelectorLabel = machineConfigGroup + "/mco-built-in"
)

// Config is the node configuration that YAML documents (MachineConfig, KubeletConfig, ...) request.
type Config struct {
	// Documents are the documents in their order. Each has the labels or selectors by which its consumer in an OpenShift
	// payload selects it.
	Documents []string
	// Ignition, Kubelet and Mirrors are the contents of the documents, sorted by document name. They are set for the
	// Kubernetes distribution only: an OpenShift payload reads its documents itself.
	Ignition []ignition.Config
	Kubelet  []KubeletPatch
	Mirrors  []releaseinfo.Mirror
	// KernelArguments are the arguments that MachineConfigs request. They are set only where node-agent applies them.
	KernelArguments []string

	appliedBy Applier
}

// openShiftKinds are the kinds from which an OpenShift payload configures nodes.
var openShiftKinds = []string{
	"MachineConfig", "KubeletConfig", "ContainerRuntimeConfig", "ImageContentSourcePolicy", "ImageDigestMirrorSet", "ImageTagMirrorSet",
	"ClusterImagePolicy",
}

// Read reads documents for nodes of a distribution, applied by Ignition. Its errors name the document and the remedy.
func Read(text string, distribution releaseinfo.Distribution) (*Config, error) {
	return ReadFor(text, distribution, ByIgnition)
}

// ReadFor is Read for documents that the given program applies. The two programs support slightly different settings.
func ReadFor(text string, distribution releaseinfo.Distribution, by Applier) (*Config, error) {
	objects, err := split(text)
	if err != nil {
		return nil, err
	}
	ours := !distributions.Of(distribution).OwnOperators
	kinds := openShiftKinds
	if ours {
		kinds = kubernetesKinds()
	}
	config := &Config{appliedBy: by}
	for _, object := range objects {
		if !slices.Contains(kinds, object.GetKind()) {
			return nil, fmt.Errorf("%s %q is not a configuration of %s nodes: use one of %s",
				kindOf(object), object.GetName(), distribution, strings.Join(kinds, ", "))
		}
		document, err := normalized(object)
		if err != nil {
			return nil, err
		}
		config.Documents = append(config.Documents, document)
	}
	if ours {
		err = config.honour(objects)
	}
	return config, err
}

func kindOf(object *unstructured.Unstructured) string {
	if kind := object.GetKind(); kind != "" {
		return kind
	}
	return "a document without kind,"
}

func split(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("it is not YAML: %w", err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// normalized returns the document with the labels or selectors by which its consumer selects it.
func normalized(object *unstructured.Unstructured) (string, error) {
	object = object.DeepCopy()
	var err error
	switch object.GetKind() {
	case "MachineConfig":
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[roleLabel] = "worker"
		object.SetLabels(labels)
	case "KubeletConfig", "ContainerRuntimeConfig":
		selector := map[string]any{"matchLabels": map[string]any{builtInSelectorLabel: ""}}
		err = unstructured.SetNestedMap(object.Object, selector, "spec", "machineConfigPoolSelector")
	case "ClusterImagePolicy":
		object.SetAPIVersion("config.openshift.io/v1")
	}
	if err != nil {
		return "", fmt.Errorf("setting the pool selector of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	rendered, err := yaml.Marshal(object.Object)
	if err != nil {
		return "", fmt.Errorf("encoding %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return string(rendered), nil
}

// specOf returns the fields of a document's spec.
func specOf(object *unstructured.Unstructured) (map[string]json.RawMessage, error) {
	raw, err := json.Marshal(object.Object["spec"])
	if err != nil {
		return nil, fmt.Errorf("encoding the spec of %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	spec := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &spec); err != nil {
		return nil, fmt.Errorf("the spec of %s %q is not an object", object.GetKind(), object.GetName())
	}
	return spec, nil
}
