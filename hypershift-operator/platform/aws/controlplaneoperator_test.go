// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestAdaptControlPlaneOperator checks the paths and names that operators of release payloads read.
func TestAdaptControlPlaneOperator(t *testing.T) {
	g := NewWithT(t)
	deployment := &appsv1.Deployment{}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "control-plane-operator", Image: "hypershift", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}}
	(&Platform{}).AdaptControlPlaneOperator(testCluster(), deployment)
	pod := deployment.Spec.Template.Spec
	g.Expect(pod.Containers).To(HaveLen(2))
	operator, minter := pod.Containers[0], pod.Containers[1]
	g.Expect(operator.Env).To(ConsistOf(
		corev1.EnvVar{Name: "A", Value: "b"}, corev1.EnvVar{Name: "AWS_SHARED_CREDENTIALS_FILE", Value: "/etc/provider/credentials"},
		corev1.EnvVar{Name: "AWS_REGION", Value: "eu-west-1"}, corev1.EnvVar{Name: "AWS_SDK_LOAD_CONFIG", Value: "true"},
	))
	g.Expect(operator.VolumeMounts).To(ConsistOf(
		corev1.VolumeMount{Name: "cloud-token", MountPath: "/var/run/secrets/openshift/serviceaccount"}, corev1.VolumeMount{Name: "provider-creds", MountPath: "/etc/provider"},
	))
	g.Expect(minter.Image).To(Equal("hypershift"), "the operator's own")
	g.Expect(minter.VolumeMounts).To(Equal(operator.VolumeMounts[:1]))
	g.Expect(minter.Args).To(ContainElements(
		"--service-account-namespace=kube-system", "--service-account-name=control-plane-operator", "--token-audience=openshift",
		"--token-file=/var/run/secrets/openshift/serviceaccount/token", "--kubeconfig-secret-namespace=clusters-demo", "--kubeconfig-secret-name=service-network-admin-kubeconfig",
	))
	for _, volume := range pod.Volumes {
		g.Expect(volume.Secret == nil || volume.Secret.SecretName == "control-plane-operator-creds").To(BeTrue(), "a volume of what comes later would keep the pod from starting")
	}
}
