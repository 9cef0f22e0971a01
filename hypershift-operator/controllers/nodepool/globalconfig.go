package nodepool

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// globalConfig is the part of the cluster's configuration that reaches into nodes, as the hash of a pool takes it: the
// Proxy, then the Image configuration.
func globalConfig(hc *hyperv1.HostedCluster) (string, error) {
	proxy, err := json.Marshal(clusterProxy(hc))
	if err != nil {
		return "", fmt.Errorf("encoding the cluster's Proxy: %w", err)
	}
	image := configv1.Image{
		TypeMeta:   metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: "Image"},
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
	}
	if hc.Spec.Configuration != nil && hc.Spec.Configuration.Image != nil {
		image.Spec = *hc.Spec.Configuration.Image
	}
	images, err := json.Marshal(image)
	if err != nil {
		return "", fmt.Errorf("encoding the cluster's Image configuration: %w", err)
	}
	return string(proxy) + string(withoutEmptyImportMode(images)), nil
}

// clusterProxy is the guest's Proxy with its status, which the nodes use.
func clusterProxy(hc *hyperv1.HostedCluster) configv1.Proxy {
	proxy := configv1.Proxy{
		TypeMeta:   metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: "Proxy"},
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
	}
	if hc.Spec.Configuration == nil || hc.Spec.Configuration.Proxy == nil {
		return proxy
	}
	proxy.Spec = *hc.Spec.Configuration.Proxy
	proxy.Status = configv1.ProxyStatus{
		HTTPProxy: proxy.Spec.HTTPProxy, HTTPSProxy: proxy.Spec.HTTPSProxy, NoProxy: noProxy(hc, proxy.Spec),
	}
	return proxy
}
