// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
)

func TestIssuerCA(t *testing.T) {
	cases := map[string]struct {
		data map[string]string
		want string
	}{
		"certificates":    {map[string]string{"ca-bundle.crt": string(fixture.CA(t, "issuer").CertPEM)}, ""},
		"another key":     {map[string]string{"ca.crt": string(fixture.CA(t, "issuer").CertPEM)}, "there is no such ConfigMap with certificates under key ca-bundle.crt"},
		"no certificates": {map[string]string{"ca-bundle.crt": "PEM"}, "oidcProviders[0].issuer.issuerCertificateAuthority: Invalid value"},
		"no ConfigMap":    {nil, "issuer.issuerCertificateAuthority.name: Invalid value: \"issuer-ca\""},
	}
	for name, tc := range cases {
		t.Run("When the issuer's CA bundle has "+name+" it should be used or refused", func(t *testing.T) {
			g := NewWithT(t)
			provider := byClaims()
			provider.Issuer.CertificateAuthority.Name = "issuer-ca"
			hcp := oidcCluster(provider)
			hcp.Namespace = "clusters-demo"
			var objects []client.Object
			if tc.data != nil {
				objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "issuer-ca"}, Data: tc.data})
			}
			file := &corev1.ConfigMap{}
			g.Expect(adaptAuthentication(t.Context(), &component.Scope{Client: hostedClient(objects...), HCP: hcp,
				Version: "1.36.3"}, file)).To(Succeed())
			if tc.want != "" {
				g.Expect(refusals(t, hcp, objects...)).To(MatchError(ContainSubstring(tc.want)))
				g.Expect(file.Data["auth.yaml"]).NotTo(ContainSubstring("sso.example.com"), "without its CA an issuer is not asked at all")
				return
			}
			g.Expect(refusals(t, hcp, objects...)).To(Succeed())
			g.Expect(file.Data["auth.yaml"]).To(ContainSubstring("BEGIN CERTIFICATE"))
		})
	}
}
