// SPDX-License-Identifier: Apache-2.0

package aws

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/hosted"
)

// operatorCredentials is the Secret with the control-plane-operator's role.
const operatorCredentials = "control-plane-operator-creds"

// AdaptControlPlaneOperator lets a payload's control-plane-operator use AWS. The operator creates the workers' security
// group and endpoints, and checks that its role is accepted. A sidecar mints the token; it reads the hosted cluster's
// kubeconfig from its Secret. A mounted Secret would block the pod from starting until the hosted cluster exists.
func (*Platform) AdaptControlPlaneOperator(cluster platform.Cluster, deployment *appsv1.Deployment) {
	const token, role = "cloud-token", "provider-creds"
	pod := &deployment.Spec.Template.Spec
	pod.Volumes = append(pod.Volumes,
		corev1.Volume{Name: token, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
		corev1.Volume{Name: role, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: operatorCredentials}}},
	)
	operator := &pod.Containers[0]
	operator.Env = append(operator.Env,
		corev1.EnvVar{Name: "AWS_SHARED_CREDENTIALS_FILE", Value: "/etc/provider/" + credentialsKey},
		corev1.EnvVar{Name: "AWS_REGION", Value: spec(cluster.HostedCluster).Region},
		corev1.EnvVar{Name: "AWS_SDK_LOAD_CONFIG", Value: "true"},
	)
	operator.VolumeMounts = append(operator.VolumeMounts,
		corev1.VolumeMount{Name: token, MountPath: tokenFolder}, corev1.VolumeMount{Name: role, MountPath: "/etc/provider"})
	pod.Containers = append(pod.Containers, corev1.Container{
		Name: "token-minter", Image: operator.Image, Command: []string{"/usr/bin/control-plane-operator", "token-minter"},
		Args: []string{
			"--service-account-namespace=kube-system", "--service-account-name=control-plane-operator", "--token-audience=openshift", "--token-file=" + tokenFolder + "/token",
			"--kubeconfig-secret-namespace=" + cluster.Namespace, "--kubeconfig-secret-name=" + hosted.ServiceNetworkKubeconfig,
		},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("30Mi"),
		}},
		VolumeMounts: []corev1.VolumeMount{{Name: token, MountPath: tokenFolder}},
	})
}
