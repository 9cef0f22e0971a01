// SPDX-License-Identifier: Apache-2.0

package managementnetwork_test

import (
	"context"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openshift/hypershift/support/managementnetwork"
)

func TestReadDNS(t *testing.T) {
	service := func(namespace, name, address string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: corev1.ServiceSpec{ClusterIP: address}}
	}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(
		service("names", "coredns", "10.96.0.10"), service("names", "web", "10.96.0.11"), service("other", "dns", "10.96.0.53"),
	).WithIndex(&corev1.Service{}, "spec.clusterIP", func(obj client.Object) []string {
		return []string{obj.(*corev1.Service).Spec.ClusterIP}
	}).Build()
	for name, tc := range map[string]struct {
		file       string
		further    []netip.Prefix
		servers    []string
		namespaces []string
	}{
		"the DNS Service, in any namespace": {file: "search a.svc b\nnameserver 10.96.0.10\noptions ndots:5\n",
			servers: []string{"10.96.0.10/32"}, namespaces: []string{"names"}},
		"a cache on a link-local address": {file: "nameserver 169.254.25.10", servers: []string{"169.254.25.10/32"}},
		"two servers, one of IPv6": {file: "nameserver 10.96.0.53\nnameserver\tfe80::53%eth0\n",
			servers: []string{"10.96.0.53/32", "fe80::53/128"}, namespaces: []string{"other"}},
		"servers of the flag": {file: "nameserver 10.96.0.10\n", further: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/28")},
			servers: []string{"10.96.0.10/32", "192.0.2.0/28"}, namespaces: []string{"names"}},
		"a file without usable servers": {file: "# nameserver 192.0.2.1\nnameserver\nnameserver x\nnameserver 127.0.0.53\n"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dns, err := managementnetwork.ReadDNS(t.Context(), c, tc.file, tc.further)
			g.Expect(err).NotTo(HaveOccurred())
			var servers []string
			for _, server := range dns.Servers {
				servers = append(servers, server.String())
			}
			g.Expect(servers).To(Equal(tc.servers))
			g.Expect(dns.Namespaces).To(Equal(tc.namespaces))
		})
	}
	t.Run("an error names the server", func(t *testing.T) {
		broken := failing(c, func(client.ObjectList) error { return context.DeadlineExceeded })
		_, err := managementnetwork.ReadDNS(t.Context(), broken, "nameserver 10.96.0.10", nil)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("10.96.0.10")))
		NewWithT(t).Expect(err).To(MatchError(context.DeadlineExceeded))
	})
}
