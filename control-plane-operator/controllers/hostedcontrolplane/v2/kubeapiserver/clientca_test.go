// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
)

func TestClientSigners(t *testing.T) {
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo"}}
	hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{ClientCA: configv1.ConfigMapNameReference{Name: "house-ca"}}}
	bundle := func(name, key, pem string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: name}, Data: map[string]string{key: pem}}
	}
	own := bundle(pki.ClientBundle, "ca.crt", string(fixture.CA(t, "own").CertPEM))
	for _, tc := range []struct {
		name  string
		users *corev1.ConfigMap
		want  []string
	}{
		{"certificates", bundle("house-ca", "ca-bundle.crt", string(fixture.CA(t, "house").CertPEM)), []string{"own", "house"}},
		{"no certificates", bundle("house-ca", "ca-bundle.crt", "PEM"), []string{"own"}},
		{"no ConfigMap", bundle("other", "ca-bundle.crt", ""), []string{"own"}},
	} {
		t.Run("When the user's signers have "+tc.name+" it should still trust the cluster's own", func(t *testing.T) {
			g, file := NewWithT(t), &corev1.ConfigMap{}
			g.Expect(adaptClientSigners(t.Context(), &component.Scope{Client: hostedClient(own, tc.users), HCP: hcp},
				file)).To(Succeed())
			trusted, err := cert.ParseCertsPEM([]byte(file.Data[clientSignersKey]))
			g.Expect(err).NotTo(HaveOccurred())
			var names []string
			for _, c := range trusted {
				names = append(names, c.Subject.CommonName)
			}
			g.Expect(names).To(Equal(tc.want))
			if len(tc.want) == 2 {
				g.Expect(refusals(t, hcp, own, tc.users)).To(Succeed())
				return
			}
			g.Expect(refusals(t, hcp, own, tc.users)).To(MatchError(ContainSubstring(
				"configuration.apiServer.clientCA: there are no certificates under key ca-bundle.crt of ConfigMap house-ca: client certificates of these signers are refused")))
		})
	}
}
