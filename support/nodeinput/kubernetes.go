// SPDX-License-Identifier: Apache-2.0

package nodeinput

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	igncfg "github.com/coreos/ignition/v2/config/v3_4"
	ignition "github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/hypershift/support/releaseinfo"
)

// fieldReader reads one field of a kind into the configuration.
type fieldReader func(c *Config, name string, raw json.RawMessage) error

// readers lists, for each kind, the fields that a node of the Kubernetes distribution supports. Other fields are
// rejected, not ignored.
var readers = map[string]map[string]fieldReader{
	"MachineConfig":            {"config": readIgnition, "kernelArguments": readKernelArguments},
	"KubeletConfig":            {"kubeletConfig": readKubelet, "machineConfigPoolSelector": ignoreField},
	"ImageContentSourcePolicy": {"repositoryDigestMirrors": readMirrors},
	"ImageDigestMirrorSet":     {"imageDigestMirrors": readMirrors},
	"ImageTagMirrorSet":        {"imageTagMirrors": readMirrors},
}

func kubernetesKinds() []string { return slices.Sorted(maps.Keys(readers)) }

// honour reads documents sorted by name, so that the order of the ConfigMaps has no effect.
func (c *Config) honour(objects []*unstructured.Unstructured) error {
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	for _, object := range objects {
		if err := c.add(object); err != nil {
			return err
		}
	}
	return c.checkMerged()
}

// topLevel are the fields that an object may have beside its spec. Without this check, a typo of "spec" would be
// ignored.
var topLevel = []string{"apiVersion", "kind", "metadata", "spec", "status"}

func (c *Config) add(object *unstructured.Unstructured) error {
	kind, name := object.GetKind(), object.GetName()
	for _, field := range slices.Sorted(maps.Keys(object.Object)) {
		if !slices.Contains(topLevel, field) {
			return fmt.Errorf("%s %q has an unknown field %s; remove it, or move it below spec", kind, name, field)
		}
	}
	spec, err := specOf(object)
	if err != nil {
		return err
	}
	for _, field := range slices.Sorted(maps.Keys(spec)) {
		if isEmpty(spec[field]) {
			continue
		}
		read, ok := readers[kind][field]
		if !ok {
			return fmt.Errorf("%s %q sets spec.%s, which nodes of the Kubernetes distribution cannot honour; remove the field", kind, name, field)
		}
		if err := read(c, name, spec[field]); err != nil {
			return fmt.Errorf("%s %q: %w", kind, name, err)
		}
	}
	return nil
}

// isEmpty reports whether a field has an empty value. A typed client serializes such fields although they are not set.
func isEmpty(raw json.RawMessage) bool {
	return slices.Contains([]string{"null", `""`, "[]", "{}", "false"}, string(raw))
}

func ignoreField(*Config, string, json.RawMessage) error { return nil }

func readIgnition(c *Config, _ string, raw json.RawMessage) error {
	cfg, report, err := igncfg.ParseCompatibleVersion(raw)
	if err != nil {
		return fmt.Errorf("spec.config is not a valid Ignition config of version 3.0 to %s: %w: %s",
			ignition.MaxVersion, err, strings.TrimSpace(report.String()))
	}
	if c.appliedBy == ByNodeAgent {
		if err := applicable(cfg); err != nil {
			return err
		}
	}
	c.Ignition = append(c.Ignition, cfg)
	return nil
}

// checkMerged validates the merged Ignition configs: two configs that are valid alone may contradict each other.
func (c *Config) checkMerged() error {
	merged := ignition.Config{Ignition: ignition.Ignition{Version: ignition.MaxVersion.String()}}
	for _, cfg := range c.Ignition {
		merged = igncfg.Merge(merged, cfg)
	}
	raw, err := json.Marshal(merged)
	if err != nil {
		return fmt.Errorf("encoding the MachineConfigs together: %w", err)
	}
	if _, report, err := igncfg.Parse(raw); err != nil {
		return fmt.Errorf("the MachineConfigs contradict each other: %w: %s", err, strings.TrimSpace(report.String()))
	}
	return nil
}

func readMirrors(c *Config, _ string, raw json.RawMessage) error {
	var entries []struct {
		Source       string   `json:"source"`
		Mirrors      []string `json:"mirrors"`
		SourcePolicy string   `json:"mirrorSourcePolicy"`
	}
	if err := json.Unmarshal(raw, &entries); err != nil {
		return fmt.Errorf("its list of mirrors cannot be read: %w", err)
	}
	for _, entry := range entries {
		only := entry.SourcePolicy == string(configv1.NeverContactSource)
		if only && (len(entry.Mirrors) == 0 || strings.Contains(entry.Source, "/")) {
			return fmt.Errorf("mirrorSourcePolicy NeverContactSource of %s cannot be honoured: containerd forbids complete registries only, and "+
				"only mirrored ones make sense; name a registry as source, without a path, and at least one mirror", entry.Source)
		}
		for _, mirror := range entry.Mirrors {
			if _, _, err := MirrorEndpoint(entry.Source, mirror); err != nil {
				return err
			}
		}
		c.Mirrors = append(c.Mirrors, releaseinfo.Mirror{Source: entry.Source, Mirrors: entry.Mirrors, Only: only})
	}
	return nil
}
