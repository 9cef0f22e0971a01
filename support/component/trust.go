// SPDX-License-Identifier: Apache-2.0

package component

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/hosted"
)

const (
	userCAVolume    = "user-ca-bundle"
	userCADir       = "/etc/pki/user-ca"
	userCAConfigMap = hosted.UserCABundle
	certDirVariable = "SSL_CERT_DIR"
	// systemCADirs are the folders that Go programs read if the variable is not set.
	systemCADirs = "/etc/ssl/certs:/etc/pki/tls/certs"
)

// trustUserCAs makes all containers of a pod trust the CAs that the user provides, in addition to those of their image.
// For programs of the payload this is sufficient, because Go programs read every folder in SSL_CERT_DIR. They read them
// only once. When the CAs change, the hash of the mounted objects therefore rolls the pod.
func trustUserCAs(hcp *hyperv1.HostedControlPlane, pod *corev1.PodSpec) {
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
			c := &containers[i]
			c.Env = addCertDir(c.Env)
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: userCAVolume, MountPath: userCADir, ReadOnly: true})
		}
	}
}

// addCertDir adds the folder of the user's CAs to the folders from which programs read certificates.
func addCertDir(env []corev1.EnvVar) []corev1.EnvVar {
	i := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == certDirVariable })
	if i < 0 {
		return append(env, corev1.EnvVar{Name: certDirVariable, Value: systemCADirs + ":" + userCADir})
	}
	env[i].Value += ":" + userCADir
	return env
}
