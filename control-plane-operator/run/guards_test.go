// SPDX-License-Identifier: Apache-2.0

package run

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/managementnetwork"
)

const (
	blocked   = "blocked by the address policy"
	namespace = "clusters-demo"
)

// knowing returns the check of published addresses for a namespace with these objects.
func knowing(objects ...client.Object) published {
	return published{reader: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(objects...).Build(), namespace: namespace}
}

// stored returns the ConfigMap that the operator writes.
func stored(t *testing.T, labels map[string]string) *corev1.ConfigMap {
	t.Helper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: managementnetwork.ConfigMap, Labels: labels}}
	err := managementnetwork.Write(&managementnetwork.Addresses{
		API: []netip.AddrPort{netip.MustParseAddrPort("198.51.100.1:6443")}, APIPorts: []uint16{6443},
		Nodes: []netip.Addr{netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.100.20")}, WholeNodes: true,
		Pods: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/24")},
	}, config)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// TestPublishedAddressOfATenant checks that a tenant cannot explore the management cluster by publishing its API
// server at an address there.
func TestPublishedAddressOfATenant(t *testing.T) {
	reached := false
	inner := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(inner.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(inner.URL, "https://"), ":")
	t.Setenv("KUBERNETES_SERVICE_HOST", "172.30.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	at := netip.MustParseAddrPort
	for name, target := range map[string]netip.AddrPort{
		"loopback":                            at("127.0.0.1:" + port),
		"loopback, mapped into IPv6":          at("[::ffff:127.0.0.1]:" + port),
		"this host":                           at("0.0.0.0:" + port),
		"a metadata service":                  at("169.254.169.254:80"),
		"a metadata service over IPv6":        at("[fd00:ec2::254]:80"),
		"the management API, by its Service":  at("172.30.0.1:443"),
		"the management API, by its endpoint": at("198.51.100.1:6443"),
		"a kubelet":                           at("198.51.100.20:10250"),
		"etcd of the management cluster":      at("198.51.100.1:2379"),
	} {
		t.Run("sends no request to "+name, func(t *testing.T) {
			g, p := NewWithT(t), knowing(stored(t, nil))
			endpoint := component.Endpoint{Host: target.Addr().String(), Port: int32(target.Port())}
			g.Expect(p.askHealth(t.Context(), endpoint)).To(MatchError(ContainSubstring(blocked)))
			g.Expect(p.askCertificate(t.Context(), target.String(), "api.example.com", nil)).To(MatchError(ContainSubstring(blocked)))
		})
	}
	t.Run("sends no request to a name that resolves to this host", func(t *testing.T) {
		g, p := NewWithT(t), knowing(stored(t, nil))
		g.Expect(p.askCertificate(t.Context(), "localhost:"+port, "localhost", nil)).To(MatchError(ContainSubstring(blocked)))
	})
	t.Run("allows the other ports of a node, and addresses of pods", func(t *testing.T) {
		guard, err := knowing(stored(t, nil)).guard(t.Context())
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, address := range []string{"198.51.100.20:443", "198.51.100.20:6443", "10.244.0.9:6443", "203.0.113.5:6443"} {
			NewWithT(t).Expect(guard.Control("tcp", address, nil)).To(Succeed(), address)
		}
	})
	t.Run("blocks the addresses in the pod's environment while the operator has written none", func(t *testing.T) {
		guard, err := knowing().guard(t.Context())
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, address := range []string{"127.0.0.1:" + port, "172.30.0.1:443"} {
			NewWithT(t).Expect(guard.Control("tcp", address, nil)).To(MatchError(ContainSubstring(blocked)), address)
		}
	})
	t.Run("sends no request while the addresses may come from a tenant", func(t *testing.T) {
		p := knowing(stored(t, map[string]string{hyperv1.UserCopyLabel: "true"}))
		NewWithT(t).Expect(p.askHealth(t.Context(), component.Endpoint{Host: "203.0.113.5", Port: 6443})).To(
			MatchError(ContainSubstring("is refused")))
	})
	NewWithT(t).Expect(reached).To(BeFalse())
}
