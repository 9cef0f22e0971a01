// SPDX-License-Identifier: Apache-2.0

package nodeinput

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// KubeletPatch is the spec.kubeletConfig of one KubeletConfig.
type KubeletPatch struct {
	fields map[string]any
}

// reservedFields keep the kubelet in its cluster. Changing them would lock the control plane out of the node.
var reservedFields = []string{
	"apiVersion", "kind", "authentication", "authorization", "clusterDNS", "clusterDomain",
	"rotateCertificates", "serverTLSBootstrap", "staticPodPath",
}

func readKubelet(c *Config, _ string, raw json.RawMessage) error {
	patch := KubeletPatch{}
	if err := json.Unmarshal(raw, &patch.fields); err != nil {
		return fmt.Errorf("spec.kubeletConfig is not an object: %w", err)
	}
	for _, field := range reservedFields {
		if _, ok := patch.fields[field]; ok {
			return fmt.Errorf("it sets %s, which belongs to the cluster; remove it from spec.kubeletConfig", field)
		}
	}
	if err := yaml.UnmarshalStrict(raw, &kubeletv1beta1.KubeletConfiguration{}); err != nil {
		return fmt.Errorf("spec.kubeletConfig does not fit the kubelet's configuration: %w", err)
	}
	c.Kubelet = append(c.Kubelet, patch)
	return nil
}

// Apply applies the patch to a KubeletConfiguration as a JSON merge patch (RFC 7386). Objects are merged, fields that
// are null in the patch are removed, and all other values are replaced.
func (p KubeletPatch) Apply(configuration map[string]any) { mergeInto(configuration, p.fields) }

func mergeInto(target, patch map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(patch)) {
		value := patch[key]
		if value == nil {
			delete(target, key)
			continue
		}
		object, ok := value.(map[string]any)
		if !ok {
			target[key] = value
			continue
		}
		existing, ok := target[key].(map[string]any)
		if !ok {
			existing = map[string]any{}
		}
		mergeInto(existing, object)
		target[key] = existing
	}
}
