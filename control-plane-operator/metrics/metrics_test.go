// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openshift/hypershift/support/metrics/metricstest"
	"github.com/openshift/hypershift/support/pki"
)

func TestCertificates(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	signer := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "root-ca"}}
	ca, err := pki.EnsureCA(signer, pki.Name{CommonName: "root-ca"}, now)
	g.Expect(err).NotTo(HaveOccurred())
	data := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name}, Data: data}
	}
	younger, err := pki.NewCA(pki.Name{CommonName: "younger"}, now.Add(-24*time.Hour))
	g.Expect(err).NotTo(HaveOccurred())
	elsewhere := data("elsewhere", map[string][]byte{"tls.crt": ca.CertPEM})
	elsewhere.Namespace = "clusters-other"
	reader := fake.NewClientBuilder().WithObjects(signer, elsewhere,
		data("leaf", map[string][]byte{"tls.crt": ca.CertPEM, "tls.key": ca.KeyPEM, "ca.crt": younger.CertPEM}),
		data("etcd", map[string][]byte{"server.crt": ca.CertPEM, "peer.crt": younger.CertPEM}),
		data("broken", map[string][]byte{"tls.crt": []byte("no certificate")}),
		data("password", map[string][]byte{"password": []byte("hunter2")})).Build()
	expiry := func(name string) string {
		return `hypershift_control_plane_certificate_expiry_timestamp_seconds{namespace="clusters-demo",secret="` + name + `"}`
	}
	g.Expect(metricstest.Of(t, New(reader, "clusters-demo", clocktesting.NewFakePassiveClock(now)))).To(Equal(metricstest.Samples{
		expiry("root-ca"): float64(ca.Cert.NotAfter.Unix()),
		expiry("leaf"):    float64(ca.Cert.NotAfter.Unix()),
		expiry("etcd"):    float64(younger.Cert.NotAfter.Unix()),
	}))
}
