// SPDX-License-Identifier: Apache-2.0

package nodeinputs

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// inputCase changes one input. prepare creates what the change requires; nil if it requires nothing.
type inputCase struct {
	prepare, change func(*world)
}

// cases maps the fields of nodeinput.Inputs to their changes.
var cases = map[string]inputCase{
	"NodePool spec.release": {change: func(w *world) {
		older := w.release("1.36.2", "2")
		change(w, &hyperv1.NodePool{}, fixture.PoolName, func(p *hyperv1.NodePool) { p.Spec.Release.Image = older })
	}},
	"NodePool spec.config: MachineConfig": {change: configure(`kind: MachineConfig
metadata: {name: motd}
spec: {config: {ignition: {version: 3.2.0}, storage: {files: [{path: /etc/motd, contents: {source: "data:,hello"}}]}}}`)},
	"NodePool spec.config: KubeletConfig": {change: configure("kind: KubeletConfig\nmetadata: {name: pods}\nspec: {kubeletConfig: {maxPods: 250}}")},
	"NodePool spec.config: ImageDigestMirrorSet, ImageTagMirrorSet, ImageContentSourcePolicy": {change: configure(
		"kind: ImageTagMirrorSet\nmetadata: {name: tags}\nspec: {imageTagMirrors: [{source: quay.example, mirrors: [mirror.example]}]}")},

	"HostedCluster spec.configuration.proxy.httpProxy":  {change: proxied(func(p *configv1.ProxySpec) { p.HTTPProxy = "http://proxy.example:3128" })},
	"HostedCluster spec.configuration.proxy.httpsProxy": {change: proxied(func(p *configv1.ProxySpec) { p.HTTPSProxy = "http://proxy.example:3128" })},
	"HostedCluster spec.configuration.proxy.noProxy": {
		prepare: proxied(func(p *configv1.ProxySpec) { p.HTTPProxy = "http://proxy.example:3128" }),
		change:  proxied(func(p *configv1.ProxySpec) { p.NoProxy = "direct.example" })},
	"HostedCluster spec.configuration.proxy.trustedCA.name": {prepare: configMap("proxy-ca", "ca-bundle.crt"), change: trustProxyCA},
	"Content of HostedCluster spec.configuration.proxy.trustedCA": {
		prepare: all(configMap("proxy-ca", "ca-bundle.crt"), trustProxyCA), change: renew("proxy-ca", "ca-bundle.crt")},
	"HostedCluster spec.configuration.proxy.readinessEndpoints": {change: proxied(func(p *configv1.ProxySpec) { p.ReadinessEndpoints = []string{"http://up.example"} })},

	"HostedCluster spec.configuration.image.registrySources.insecureRegistries": {change: sources(func(s *configv1.RegistrySources) { s.InsecureRegistries = []string{"lab.example:5000"} })},
	"HostedCluster spec.configuration.image.registrySources.blockedRegistries":  {change: sources(func(s *configv1.RegistrySources) { s.BlockedRegistries = []string{"docker.io"} })},
	"HostedCluster spec.configuration.image.registrySources.allowedRegistries":  {change: sources(func(s *configv1.RegistrySources) { s.AllowedRegistries = []string{"registry.example"} })},
	"HostedCluster spec.configuration.image.registrySources.containerRuntimeSearchRegistries": {change: sources(func(s *configv1.RegistrySources) {
		s.ContainerRuntimeSearchRegistries = []string{"quay.example"}
	})},
	"HostedCluster spec.configuration.image.additionalTrustedCA.name": {prepare: configMap("registry-cas", "own.example..8443"), change: trustRegistryCAs},
	"Content of HostedCluster spec.configuration.image.additionalTrustedCA": {
		prepare: all(configMap("registry-cas", "own.example..8443"), trustRegistryCAs), change: renew("registry-cas", "own.example..8443")},
	"HostedCluster spec.configuration.image.allowedRegistriesForImport": {change: images(func(i *configv1.ImageSpec) {
		i.AllowedRegistriesForImport = []configv1.RegistryLocation{{DomainName: "quay.example"}}
	})},
	"HostedCluster spec.configuration.image.externalRegistryHostnames": {change: images(func(i *configv1.ImageSpec) { i.ExternalRegistryHostnames = []string{"r.example"} })},
	"HostedCluster spec.configuration.image.imageStreamImportMode":     {change: images(func(i *configv1.ImageSpec) { i.ImageStreamImportMode = configv1.ImportModeLegacy })},

	"HostedCluster spec.pullSecret.name": {
		prepare: secret("other", corev1.DockerConfigJsonKey, pullSecret),
		change:  clustered(func(hc *hyperv1.HostedCluster) { hc.Spec.PullSecret.Name = "other" })},
	"Content of HostedCluster spec.pullSecret": {change: rewrite(fixture.PullSecret, corev1.DockerConfigJsonKey, pullSecret)},
	"HostedCluster spec.additionalTrustBundle.name": {
		prepare: configMap("other", "ca-bundle.crt"),
		change:  clustered(func(hc *hyperv1.HostedCluster) { hc.Spec.AdditionalTrustBundle.Name = "other" })},
	"Content of HostedCluster spec.additionalTrustBundle": {change: renew(fixture.TrustBundle, "ca-bundle.crt")},
	"HostedCluster spec.sshKey.name": {
		prepare: secret("other", "id_rsa.pub", "ssh-ed25519 BBBB other"),
		change:  clustered(func(hc *hyperv1.HostedCluster) { hc.Spec.SSHKey.Name = "other" })},
	"Content of HostedCluster spec.sshKey": {change: rewrite(fixture.SSHKey, "id_rsa.pub", "ssh-ed25519 BBBB other")},
	"HostedCluster spec.imageContentSources": {change: clustered(func(hc *hyperv1.HostedCluster) {
		hc.Spec.ImageContentSources = []hyperv1.ImageContentSource{{Source: "quay.example", Mirrors: []string{"mirror.example"}}}
	})},

	"The control plane's bootstrap kubeconfig": {change: func(w *world) {
		made := &corev1.Secret{}
		w.get(made, w.hosted(), "bootstrap-kubeconfig")
		made.Data["kubeconfig"] = append(made.Data["kubeconfig"], "# renewed\n"...)
		w.Expect(w.client.Update(w.t.Context(), made)).To(Succeed())
	}},
	"The control plane's CA of kubelet clients": {change: func(w *world) {
		made := &corev1.ConfigMap{}
		w.get(made, w.hosted(), "kubelet-client-ca")
		made.Data["ca.crt"] = "renewed CA"
		w.Expect(w.client.Update(w.t.Context(), made)).To(Succeed())
	}},
}

const pullSecret = `{"auths":{"registry.example":{"username":"reader","password":"sesame"}}}`

var (
	trustProxyCA     = proxied(func(p *configv1.ProxySpec) { p.TrustedCA.Name = "proxy-ca" })
	trustRegistryCAs = images(func(i *configv1.ImageSpec) { i.AdditionalTrustedCA.Name = "registry-cas" })
)

func all(steps ...func(*world)) func(*world) {
	return func(w *world) {
		for _, step := range steps {
			step(w)
		}
	}
}

func clustered(mutate func(*hyperv1.HostedCluster)) func(*world) {
	return func(w *world) { change(w, &hyperv1.HostedCluster{}, fixture.ClusterName, mutate) }
}

func configured(mutate func(*hyperv1.ClusterConfiguration)) func(*world) {
	return clustered(func(hc *hyperv1.HostedCluster) {
		if hc.Spec.Configuration == nil {
			hc.Spec.Configuration = &hyperv1.ClusterConfiguration{}
		}
		mutate(hc.Spec.Configuration)
	})
}

func proxied(mutate func(*configv1.ProxySpec)) func(*world) {
	return configured(func(c *hyperv1.ClusterConfiguration) {
		if c.Proxy == nil {
			c.Proxy = &configv1.ProxySpec{}
		}
		mutate(c.Proxy)
	})
}

func images(mutate func(*configv1.ImageSpec)) func(*world) {
	return configured(func(c *hyperv1.ClusterConfiguration) {
		if c.Image == nil {
			c.Image = &configv1.ImageSpec{}
		}
		mutate(c.Image)
	})
}

func sources(mutate func(*configv1.RegistrySources)) func(*world) {
	return images(func(i *configv1.ImageSpec) { mutate(&i.RegistrySources) })
}

// configMap creates a user's ConfigMap with a CA under a key.
func configMap(name, key string) func(*world) {
	return func(w *world) {
		fixture.Create(w.t, w.client, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
			Data: map[string]string{key: "# another\n" + string(w.registry.CA)}})
	}
}

// renew replaces the CA of a ConfigMap.
func renew(name, key string) func(*world) {
	return func(w *world) {
		change(w, &corev1.ConfigMap{}, name, func(cm *corev1.ConfigMap) { cm.Data[key] += "# renewed\n" })
	}
}

func secret(name, key, value string) func(*world) {
	return func(w *world) {
		fixture.Create(w.t, w.client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
			Data: map[string][]byte{key: []byte(value)}})
	}
}

func rewrite(name, key, value string) func(*world) {
	return func(w *world) {
		change(w, &corev1.Secret{}, name, func(s *corev1.Secret) { s.Data[key] = []byte(value) })
	}
}

// configure makes the pool use the configuration of a ConfigMap.
func configure(text string) func(*world) {
	return func(w *world) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "config-"}, Data: map[string]string{"config": text}}
		w.Expect(w.client.Create(w.t.Context(), cm)).To(Succeed())
		change(w, &hyperv1.NodePool{}, fixture.PoolName, func(p *hyperv1.NodePool) {
			p.Spec.Config = []corev1.LocalObjectReference{{Name: cm.Name}}
		})
	}
}
