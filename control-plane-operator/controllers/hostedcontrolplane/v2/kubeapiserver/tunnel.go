// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/infra"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/component"
)

// TunnelImage is the tag of the image in the payload that has both ends of the tunnel. Payloads of version 0.1.0 do not
// have it.
const TunnelImage = "tunnel"

const (
	tunnelDir          = "/run/tunnel"
	tunnelCertificates = "/etc/tunnel/server"
	tunnelMetricsPort  = 8092
)

func hasTunnel(scope *component.Scope) bool {
	_, ok := scope.Images.ComponentImage(TunnelImage)
	return ok
}

// runTunnel adds the server of the tunnel, and makes the API server use it for connections to the cluster network. The
// server is a sidecar that starts before the API server and ends after it.
func runTunnel(scope *component.Scope, pod *corev1.PodSpec) {
	var f component.Flags
	f.Set("servers", fmt.Sprint(New().Replicas(scope.HCP)))
	f.Set("listen", fmt.Sprintf(":%d", infra.TunnelPort))
	f.Set("metrics-address", fmt.Sprintf(":%d", tunnelMetricsPort))
	f.Set("socket", tunnelDir+"/api.sock")
	f.Set("certificate", tunnelCertificates+"/tls.crt")
	f.Set("key", tunnelCertificates+"/tls.key")
	f.Set("client-authority", certDir+"/client-ca/ca.crt")
	for _, network := range scope.HCP.Spec.Networking.ClusterNetwork {
		f.Set("cluster-network", network.CIDR.String())
	}
	for _, network := range scope.HCP.Spec.Networking.ServiceNetwork {
		f.Set("cluster-network", network.CIDR.String())
	}
	pod.InitContainers = append(pod.InitContainers, corev1.Container{
		Name: "tunnel", Image: TunnelImage, Command: []string{"/usr/bin/tunnel", "server"}, Args: f,
		RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		Env: []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
		}}},
		Ports: []corev1.ContainerPort{
			{Name: "tunnel", ContainerPort: infra.TunnelPort}, {Name: "tunnel-metrics", ContainerPort: tunnelMetricsPort},
		},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("20Mi"),
		}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "tunnel", MountPath: tunnelDir},
			{Name: "tunnel-server", MountPath: tunnelCertificates, ReadOnly: true},
			{Name: "client-ca", MountPath: certDir + "/client-ca", ReadOnly: true},
		},
	})
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "tunnel", VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{},
	}}, corev1.Volume{Name: "tunnel-server", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: pki.TunnelServer},
	}})
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts,
		corev1.VolumeMount{Name: "tunnel", MountPath: tunnelDir})
	mount(pod, "egress-selector", egressSelectorDir, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "kas-egress-selector"},
	}})
	container := &pod.Containers[0]
	container.Args = append(container.Args, "--egress-selector-config-file="+egressSelectorDir+"/config.yaml")
}

const egressSelectorDir = "/etc/kubernetes/egress-selector"
