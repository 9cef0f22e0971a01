package nodeconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

const clientCAPath = "/etc/kubernetes/pki/kubelet-client-ca.crt"

// kubeletPatch is the spec.kubeletConfig of one KubeletConfig of the user.
type kubeletPatch struct {
	name   string
	fields map[string]any
}

// reservedFields keep the kubelet in its cluster; to change them would lock the control plane out of the node.
var reservedFields = []string{
	"apiVersion", "kind", "authentication", "authorization", "clusterDNS", "clusterDomain",
	"rotateCertificates", "serverTLSBootstrap", "staticPodPath",
}

func (in Input) kubeletConfiguration(patches []kubeletPatch) ([]byte, error) {
	dns, err := in.clusterDNS()
	if err != nil {
		return nil, err
	}
	cfg := map[string]any{
		"apiVersion": kubeletv1beta1.SchemeGroupVersion.String(),
		"kind":       "KubeletConfiguration",
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": clientCAPath},
		},
		"authorization":            map[string]any{"mode": "Webhook"},
		"clusterDNS":               dns,
		"clusterDomain":            "cluster.local",
		"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
		// MAAS images may come with swap; pods do not get any unless memorySwap says so.
		"failSwapOn":         false,
		"rotateCertificates": true,
		"serverTLSBootstrap": true,
		"staticPodPath":      "/etc/kubernetes/manifests",
	}
	for _, patch := range patches {
		if err := patch.apply(cfg); err != nil {
			return nil, err
		}
	}
	return yaml.Marshal(cfg)
}

func (p kubeletPatch) apply(cfg map[string]any) error {
	for _, field := range reservedFields {
		if _, ok := p.fields[field]; ok {
			return fmt.Errorf("KubeletConfig %q sets %s, which belongs to the cluster; remove it from spec.kubeletConfig", p.name, field)
		}
	}
	mergeInto(cfg, p.fields)
	raw, err := json.Marshal(cfg)
	if err != nil {
		return fmt.Errorf("encode KubeletConfig %q: %w", p.name, err)
	}
	if err := yaml.UnmarshalStrict(raw, &kubeletv1beta1.KubeletConfiguration{}); err != nil {
		return fmt.Errorf("KubeletConfig %q does not fit the kubelet's configuration: %w", p.name, err)
	}
	return nil
}

// mergeInto follows RFC 7386: objects are merged, null removes, all else is replaced.
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
