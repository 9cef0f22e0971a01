package kubeapiserver

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
)

func TestIssuerCA(t *testing.T) {
	cases := map[string]struct {
		data map[string]string
		want string
	}{
		"certificates":      {map[string]string{"ca-bundle.crt": string(fixture.CA(t, "issuer").CertPEM)}, ""},
		"another key":       {map[string]string{"ca.crt": string(fixture.CA(t, "issuer").CertPEM)}, "ConfigMap issuer-ca, which issuer.issuerCertificateAuthority names, has no certificates under key ca-bundle.crt"},
		"no certificates":   {map[string]string{"ca-bundle.crt": "PEM"}, "oidcProviders[0].issuer.issuerCertificateAuthority: Invalid value"},
		"nothing to be had": {nil, "reading the issuer's CA in ConfigMap issuer-ca"},
	}
	for name, tc := range cases {
		t.Run("When the issuer's CA holds "+name+" it should be trusted or nobody be", func(t *testing.T) {
			g := NewWithT(t)
			provider := byClaims()
			provider.Issuer.CertificateAuthority.Name = "issuer-ca"
			hcp := oidcCluster(provider)
			hcp.Namespace = "clusters-demo"
			objects := fake.NewClientBuilder().WithScheme(fixture.Scheme())
			if tc.data != nil {
				objects.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "issuer-ca"}, Data: tc.data})
			}
			file := &corev1.ConfigMap{}
			err := adaptAuthentication(t.Context(), &component.Scope{Client: objects.Build(), HCP: hcp, Version: "1.36.3"}, file)
			if tc.want != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
				g.Expect(file.Data).To(BeEmpty(), "nothing is written by halves")
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(file.Data["auth.yaml"]).To(ContainSubstring("BEGIN CERTIFICATE"))
		})
	}
}
