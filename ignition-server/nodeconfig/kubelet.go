// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/support/nodeinput"
)

const clientCAPath = "/etc/kubernetes/pki/kubelet-client-ca.crt"

func (in Input) kubeletConfiguration(patches []nodeinput.KubeletPatch) ([]byte, error) {
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
		"containerRuntimeEndpoint": "unix:///run/hypershift/containerd/containerd.sock",
		// MAAS images may have swap enabled. Pods get no swap unless memorySwap allows it.
		"failSwapOn":         false,
		"rotateCertificates": true,
		"serverTLSBootstrap": true,
		"staticPodPath":      "/etc/kubernetes/manifests",
	}
	for _, patch := range patches {
		patch.Apply(cfg)
	}
	return yaml.Marshal(cfg)
}
