// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"
)

// TestForeignPod checks that the pod has everything that the upstream provider needs to reach MAAS and trust its
// certificate.
func TestForeignPod(t *testing.T) {
	key := func(name string, optional *bool) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "creds"}, Key: name, Optional: optional}}}
	}
	want := corev1.PodSpec{
		Containers: []corev1.Container{{
			Args: []string{"--leader-elect", "--webhook-port=0"},
			Env: []corev1.EnvVar{
				key("MAAS_ENDPOINT", nil), key("MAAS_API_KEY", nil), key("MAAS_CA_BUNDLE", ptr.To(true)),
				{Name: "SSL_CERT_DIR", Value: "/etc/ssl/certs:/etc/pki/tls/certs:/etc/hypershift/maas-ca"}, {Name: "MAAS_CREDENTIALS_SECRET", Value: "creds"},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "maas-ca", MountPath: "/etc/hypershift/maas-ca", ReadOnly: true}},
		}},
		Volumes: []corev1.Volume{{Name: "maas-ca", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: "creds", Optional: ptr.To(true), Items: []corev1.KeyToPath{{Key: "MAAS_CA_BUNDLE", Path: "ca.crt"}}}}}},
	}
	got := corev1.PodSpec{Containers: []corev1.Container{{Args: []string{"--leader-elect"}}}}
	adaptForeign(&got, thirdPartyOf("upstream:v0.9.0"), "creds")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRole checks that the in-tree provider may read only two kubeconfigs, and that the upstream provider gets all
// kinds of Cluster API.
func TestRole(t *testing.T) {
	for name, tc := range map[string]struct {
		image string
		want  []rbacv1.PolicyRule
	}{
		"When the in-tree provider runs, its Role should allow reading its kubeconfigs and no other Secret": {"", []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: []string{"demo-abcde-provider-kubeconfig", "demo-abcde-kubeconfig"}}}},
		"When another provider runs, its Role should allow all kinds that upstream's provider may use": {"upstream:1", []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps", "events"}, Verbs: []string{"*"}},
			{APIGroups: []string{"cluster.x-k8s.io", "addons.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io",
				"exp.cluster.x-k8s.io", "exp.infrastructure.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "machines.cluster.x-k8s.io", "hypershift.openshift.io"},
				Resources: []string{"*"}, Verbs: []string{"*"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			role := &rbacv1.Role{}
			New(Options{ProviderImage: tc.image}).adaptRole(role, testCluster(), "demo-abcde")
			if diff := cmp.Diff(tc.want, role.Rules); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotHonored(t *testing.T) {
	g := NewWithT(t)
	g.Expect(New(Options{}).NotHonored(testCluster())).To(BeEmpty())
	g.Expect(New(Options{ProviderImage: "upstream:1"}).NotHonored(testCluster())).To(And(
		HavePrefix("The machines are made by upstream:1"), ContainSubstring("by its tag: unknown"),
		ContainSubstring("an administrator's key is needed"), ContainSubstring("; the certificate of MAAS: "),
		HaveSuffix("or the operator's --maas-capi-provider-image")))
}
