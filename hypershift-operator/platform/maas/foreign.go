// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/namespaceproxy"
)

// This file supports a third-party provider, which may not implement how this product passes credentials. Examples are
// CAPMAAS's own image, or one that was built from it.

func (p *Platform) foreign(cluster platform.Cluster) bool {
	return p.image(cluster) != cluster.OperatorImage
}

// notHonored lists what CAPMAAS v0.8 and v0.9 do not implement, according to their source.
var notHonored = []string{
	"the API key of a plain user: MAAS permits changes of DNS and swap only to an administrator, so an administrator's " +
		"key is needed",
	"the certificate of MAAS: it is not verified, and any server at that address receives the API key",
	"--maas-allow-cidrs and --maas-refuse-cidrs of the installation",
	"crashes: a machine that was allocated a moment before stays allocated in MAAS",
	"limits: machines that fail are replaced indefinitely, and a machine that was released by hand is installed again " +
		"with outdated user-data",
	"spec.platform.maas of a NodePool beyond image, minCPU, minMemory, tags, resourcePool, failureDomain, deployInMemory and lxd.enabled",
	"tokens of single machines: all machines of a pool fetch their configuration with one",
}

// NotHonored implements platform.ProviderChooser.
func (p *Platform) NotHonored(cluster platform.Cluster) string {
	if !p.foreign(cluster) {
		return ""
	}
	image := p.image(cluster)
	return fmt.Sprintf("The machines are made by %s, which is not this product's own provider. Its version of CAPMAAS "+
		"by its tag: %s. CAPMAAS v0.8 and v0.9 do not honor %s. "+
		"To use this product's provider, remove the annotation hypershift.openshift.io/capi-provider-maas-image, "+
		"or the operator's --maas-capi-provider-image",
		image, thirdPartyOf(image).name, strings.Join(notHonored, "; "))
}

// adaptForeign passes the credentials to a third-party provider as upstream expects them. They are in its environment,
// and the CA of MAAS is in a directory that SSL_CERT_DIR lists. The Secret is mounted, so a change of it rolls the
// pods, because upstream reads its credentials only once.
func adaptForeign(pod *corev1.PodSpec, version thirdParty, secret string) {
	const caDir = "/etc/hypershift/maas-ca"
	container := &pod.Containers[0]
	if !version.probes {
		// The kubelet would restart a provider that does not serve them.
		container.LivenessProbe, container.ReadinessProbe = nil, nil
	}
	// With a port other than 0, the single-namespace builds serve only webhooks. The builds for all namespaces serve
	// webhooks at 9443 in any case.
	container.Args = append(container.Args, "--webhook-port=0")
	for _, key := range []string{maas.SecretKeyEndpoint, maas.SecretKeyAPIKey, maas.SecretKeyCABundle} {
		ref := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key}
		if key == maas.SecretKeyCABundle {
			ref.Optional = ptr.To(true)
		}
		container.Env = append(container.Env, corev1.EnvVar{Name: key, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: ref}})
	}
	container.Env = append(container.Env,
		corev1.EnvVar{Name: "SSL_CERT_DIR", Value: "/etc/ssl/certs:/etc/pki/tls/certs:" + caDir},
		corev1.EnvVar{Name: "MAAS_CREDENTIALS_SECRET", Value: secret})
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "maas-ca", MountPath: caDir, ReadOnly: true})
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "maas-ca", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret, Optional: ptr.To(true), Items: []corev1.KeyToPath{{Key: maas.SecretKeyCABundle, Path: "ca.crt"}},
	}}})
}

// addNamespaceProxy runs the namespace proxy beside a third-party provider, as a sidecar that starts first. The
// provider finds it through KUBECONFIG. The proxy uses no rights but those of the pod's service account.
func addNamespaceProxy(pod *corev1.PodSpec, image string) {
	const volume, folder = "management-kubeconfig", "/var/run/hypershift/management"
	const program = "/usr/bin/cluster-api-provider-maas"
	container := &pod.Containers[0]
	container.Env = append(container.Env,
		corev1.EnvVar{Name: "KUBECONFIG", Value: folder + "/" + namespaceproxy.KubeconfigFile})
	container.VolumeMounts = append(container.VolumeMounts,
		corev1.VolumeMount{Name: volume, MountPath: folder, ReadOnly: true})
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}})
	pod.InitContainers = append(pod.InitContainers, corev1.Container{
		Name: "namespace-proxy", Image: image,
		Command:       []string{program, "namespace-proxy", "--namespace=$(MY_NAMESPACE)", "--folder=" + folder},
		RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		Env: []corev1.EnvVar{{Name: "MY_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}},
		StartupProbe: &corev1.Probe{
			PeriodSeconds: 2, FailureThreshold: 60, TimeoutSeconds: 10,
			ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{
				Command: []string{program, "namespace-proxy", "--ready", "--folder=" + folder}}}},
		VolumeMounts: []corev1.VolumeMount{{Name: volume, MountPath: folder}},
	})
}

// foreignGroups are the API groups of Cluster API, of infrastructure providers, and of the HostedControlPlane.
var foreignGroups = []string{
	"cluster.x-k8s.io", "addons.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io", "exp.cluster.x-k8s.io",
	"exp.infrastructure.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "machines.cluster.x-k8s.io", "hypershift.openshift.io",
}
