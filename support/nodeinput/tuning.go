// SPDX-License-Identifier: Apache-2.0

package nodeinput

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Tuning holds the documents from which a node tuning operator creates profiles.
type Tuning struct {
	// Tuneds and Profiles are the YAML of Tuned and PerformanceProfile objects.
	Tuneds, Profiles []string
}

// ReadTuning reads documents for the node tuning operator of an OpenShift payload. Its errors name the remedy.
func ReadTuning(text string) (*Tuning, error) {
	objects, err := split(text)
	if err != nil {
		return nil, err
	}
	if len(objects) == 0 {
		return nil, errors.New("it is empty: write a Tuned or a PerformanceProfile")
	}
	tuning := &Tuning{}
	for _, object := range objects {
		rendered, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		switch kind := object.GetAPIVersion() + " " + object.GetKind(); kind {
		case "tuned.openshift.io/v1 Tuned":
			tuning.Tuneds = append(tuning.Tuneds, string(rendered))
		case "performance.openshift.io/v2 PerformanceProfile":
			if err := checkProfile(object); err != nil {
				return nil, err
			}
			tuning.Profiles = append(tuning.Profiles, string(rendered))
		default:
			return nil, fmt.Errorf("%s %q is not for tuning: use a Tuned of tuned.openshift.io/v1 or a PerformanceProfile of performance.openshift.io/v2",
				kindOf(object), object.GetName())
		}
		if object.GetName() == "" {
			return nil, fmt.Errorf("a %s has no metadata.name: give it one", object.GetKind())
		}
	}
	return tuning, nil
}

// checkProfile checks the two sets of CPUs. The tuning operator ignores a profile that lacks them.
func checkProfile(profile *unstructured.Unstructured) error {
	for _, field := range []string{"isolated", "reserved"} {
		cpus, _, err := unstructured.NestedString(profile.Object, "spec", "cpu", field)
		if err != nil || cpus == "" {
			return fmt.Errorf("PerformanceProfile %q has no spec.cpu.%s: set it to CPUs such as 0-3", profile.GetName(), field)
		}
	}
	return nil
}

// Kinds returns the kinds of the documents in a text, in their order.
func Kinds(text string) ([]string, error) {
	objects, err := split(text)
	if err != nil {
		return nil, err
	}
	var kinds []string
	for _, object := range objects {
		kinds = append(kinds, object.GetKind())
	}
	return kinds, nil
}

// UsesRunc reports whether the documents select runc as the container runtime.
func UsesRunc(documents []string) bool {
	for _, document := range documents {
		object := &unstructured.Unstructured{}
		if yaml.Unmarshal([]byte(document), &object.Object) != nil || object.GetKind() != "ContainerRuntimeConfig" {
			continue
		}
		if runtime, _, _ := unstructured.NestedString(object.Object, "spec", "containerRuntimeConfig", "defaultRuntime"); runtime == "runc" {
			return true
		}
	}
	return false
}
