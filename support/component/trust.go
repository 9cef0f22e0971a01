package component

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/hosted"
)

const (
	userCAVolume    = "user-ca-bundle"
	userCADir       = "/etc/pki/user-ca"
	userCAConfigMap = hosted.UserCABundle
	systemCADir     = "/etc/ssl/certs"
	certDirVariable = "SSL_CERT_DIR"
)

// TrustUserCAs lets all containers of a pod trust the CAs that the user brought, besides those of their image. Programs
// of the payload need no more than this, as Go programs read every folder of SSL_CERT_DIR.
func TrustUserCAs(hcp *hyperv1.HostedControlPlane, pod *corev1.PodSpec) {
	if hcp.Spec.AdditionalTrustBundle == nil {
		return
	}
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: userCAVolume, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: userCAConfigMap},
			Optional:             ptr.To(true),
		},
	}})
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			containers[i].Env = append(containers[i].Env, corev1.EnvVar{Name: certDirVariable, Value: systemCADir + ":" + userCADir})
			containers[i].VolumeMounts = append(containers[i].VolumeMounts, corev1.VolumeMount{Name: userCAVolume, MountPath: userCADir, ReadOnly: true})
		}
	}
}
