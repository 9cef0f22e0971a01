// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/releaseversion"
)

// globalConfig returns the part of the cluster's configuration that affects nodes, as an input of the pool's hash. It
// consists of the Proxy, the Image configuration, and the TLS profile if nodes of that version follow it.
func globalConfig(hc *hyperv1.HostedCluster, distribution distributions.Traits, version string) (string, error) {
	proxy, image := clusterProxy(hc), clusterImage(hc)
	if !distribution.OwnOperators {
		proxy.Spec, image.Spec = rendered(proxy.Spec, image.Spec)
	}
	proxies, err := json.Marshal(proxy)
	if err != nil {
		return "", fmt.Errorf("encoding the cluster's Proxy: %w", err)
	}
	images, err := json.Marshal(image)
	if err != nil {
		return "", fmt.Errorf("encoding the cluster's Image configuration: %w", err)
	}
	profile, err := tlsProfile(hc, distribution, version)
	return string(proxies) + string(nodeinput.WithoutEmptyImportMode(images)) + profile, err
}

// tlsProfile returns the TLS profile of the kubelets. It is empty while the cluster sets none, so that the default
// replaces no node.
func tlsProfile(hc *hyperv1.HostedCluster, distribution distributions.Traits, version string) (string, error) {
	configuration := hc.Spec.Configuration
	if configuration == nil || configuration.APIServer == nil || configuration.APIServer.TLSSecurityProfile == nil ||
		!releaseversion.AtLeast(version, distribution.NodeTLSProfile) {
		return "", nil
	}
	profile, err := json.Marshal(configuration.APIServer.TLSSecurityProfile)
	if err != nil {
		return "", fmt.Errorf("encoding the cluster's TLS profile: %w", err)
	}
	return string(profile), nil
}

// rendered returns the fields from which the ignition-server of the Kubernetes distribution renders files. Other fields
// must not replace a machine, since the new machine would be the same.
func rendered(proxy configv1.ProxySpec, image configv1.ImageSpec) (configv1.ProxySpec, configv1.ImageSpec) {
	sources := image.RegistrySources
	return configv1.ProxySpec{TrustedCA: proxy.TrustedCA}, configv1.ImageSpec{
		AdditionalTrustedCA: image.AdditionalTrustedCA,
		RegistrySources: configv1.RegistrySources{
			InsecureRegistries: sources.InsecureRegistries,
			BlockedRegistries:  sources.BlockedRegistries,
			AllowedRegistries:  sources.AllowedRegistries,
		},
	}
}

// clusterProxy returns the hosted cluster's Proxy with its status, which the nodes use.
func clusterProxy(hc *hyperv1.HostedCluster) configv1.Proxy {
	proxy := configv1.Proxy{
		TypeMeta:   metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: "Proxy"},
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
	}
	if hc.Spec.Configuration == nil || hc.Spec.Configuration.Proxy == nil {
		return proxy
	}
	proxy.Spec = *hc.Spec.Configuration.Proxy
	read := nodeinput.ReadProxy(&proxy.Spec, hc.Spec.Networking)
	proxy.Status = configv1.ProxyStatus{HTTPProxy: proxy.Spec.HTTPProxy, HTTPSProxy: proxy.Spec.HTTPSProxy, NoProxy: read.NoProxy}
	return proxy
}

func clusterImage(hc *hyperv1.HostedCluster) configv1.Image {
	image := configv1.Image{
		TypeMeta:   metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: "Image"},
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
	}
	if hc.Spec.Configuration != nil && hc.Spec.Configuration.Image != nil {
		image.Spec = *hc.Spec.Configuration.Image
	}
	return image
}
