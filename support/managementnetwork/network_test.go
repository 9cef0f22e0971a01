// SPDX-License-Identifier: Apache-2.0

package managementnetwork_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/managementnetwork"
)

func apiServer(endpoint string) []client.Object {
	named := metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}
	return []client.Object{
		&discoveryv1.EndpointSlice{ObjectMeta: named, AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{endpoint}}},
			Ports:     []discoveryv1.EndpointPort{{Port: ptr.To[int32](6443)}}},
		&corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.1", "None"},
			Ports: []corev1.ServicePort{{Port: 443}}}},
	}
}

func cluster(objects ...client.Object) client.WithWatch {
	objects = append(objects,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"},
			Spec: corev1.NodeSpec{PodCIDRs: []string{"10.244.1.7/24", "fd00:244::/64", "nonsense"}},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Address: "192.168.0.20"}, {Address: "node.example.com"},
				{Address: "2001:db8::20"}}}},
		&networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"},
			Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16"}}})
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build()
}

func TestContains(t *testing.T) {
	for name, tc := range map[string]struct {
		at                             string
		contained, onNodes, kubernetes bool
	}{
		"the endpoint of the API server":                   {"192.168.0.10:6443", true, true, true},
		"the endpoint of the API server, mapped into IPv6": {"[::ffff:192.168.0.10]:6443", true, true, true},
		"another program beside the API server":            {"192.168.0.10:5240", false, false, false},
		"the Service of the API server":                    {"10.96.0.1:443", true, true, true},
		"a Service":                                        {"10.96.7.7:80", true, true, false},
		"a pod":                                            {"10.244.1.200:8080", true, true, false},
		"a pod, over IPv6":                                 {"[fd00:244::9]:8080", true, true, false},
		"a pod address outside of all node CIDRs":          {"10.244.2.1:8080", false, false, false},
		"a kubelet":                                        {"192.168.0.20:10250", true, true, true},
		"etcd, by IPv6":                                    {"[2001:db8::20]:2379", true, true, true},
		"the API server's port on a node":                  {"192.168.0.20:6443", true, true, true},
		"another port of a node":                           {"192.168.0.20:5240", false, true, false},
		"the Service's port on a node":                     {"192.168.0.20:443", false, true, false},
		"a kubelet on an unknown address":                  {"192.168.0.21:10250", false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for whole, want := range map[bool]bool{false: tc.contained, true: tc.onNodes} {
				known := &managementnetwork.Known{WholeNodes: whole}
				g.Expect(known.Contains(netip.MustParseAddrPort(tc.at))).To(BeFalse(), "nothing was read yet")
				c := cluster(apiServer("192.168.0.10")...)
				g.Expect(known.Refresh(t.Context(), c, c)).To(Succeed())
				g.Expect(known.Contains(netip.MustParseAddrPort(tc.at))).To(Equal(want))
				g.Expect(known.Kubernetes().Contains(netip.MustParseAddrPort(tc.at))).To(Equal(tc.kubernetes))
				guard := &maas.Guard{Own: known}
				g.Expect(guard.Control("tcp", tc.at, nil) != nil).To(Equal(want))
				guard.Allow = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
				g.Expect(guard.Control("tcp", tc.at, nil)).To(Succeed(), "an administrator allows it")
			}
		})
	}
}

func TestRefresh(t *testing.T) {
	t.Run("a cluster that does not serve ServiceCIDRs has no known Service range", func(t *testing.T) {
		g, known := NewWithT(t), &managementnetwork.Known{}
		c := failing(cluster(apiServer("192.168.0.10")...), func(list client.ObjectList) error {
			if _, ok := list.(*networkingv1.ServiceCIDRList); ok {
				return &meta.NoKindMatchError{}
			}
			return nil
		})
		g.Expect(known.Refresh(t.Context(), c, c)).To(Succeed())
		g.Expect(known.Contains(netip.MustParseAddrPort("10.96.7.7:80"))).To(BeFalse())
		g.Expect(known.API()).To(Equal([]netip.AddrPort{netip.MustParseAddrPort("10.96.0.1:443"),
			netip.MustParseAddrPort("192.168.0.10:6443")}))
	})
	t.Run("after an error, the last addresses remain known", func(t *testing.T) {
		g, known := NewWithT(t), &managementnetwork.Known{}
		g.Expect(known.API()).To(BeEmpty())
		c := cluster(apiServer("192.168.0.10")...)
		g.Expect(known.Refresh(t.Context(), c, c)).To(Succeed())
		broken := failing(c, func(client.ObjectList) error { return context.DeadlineExceeded })
		g.Expect(known.Refresh(t.Context(), broken, broken)).To(MatchError(context.DeadlineExceeded))
		g.Expect(known.Contains(netip.MustParseAddrPort("192.168.0.10:6443"))).To(BeTrue())
	})
	t.Run("an API server that moves is found within a minute", func(t *testing.T) {
		g, known, clock := NewWithT(t), &managementnetwork.Known{}, clocktesting.NewFakeClock(time.Now())
		c := cluster(apiServer("192.168.0.10")...)
		g.Expect(known.Refresh(t.Context(), c, c)).To(Succeed())
		refresher := known.Refresher(c, c, clock)
		g.Expect(refresher.NeedLeaderElection()).To(BeFalse())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- refresher.Start(ctx) }()
		g.Eventually(clock.HasWaiters).WithTimeout(time.Minute).Should(BeTrue())
		slice := &discoveryv1.EndpointSlice{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kubernetes"}, slice)).To(Succeed())
		slice.Endpoints[0].Addresses = []string{"192.168.0.11"}
		g.Expect(c.Update(t.Context(), slice)).To(Succeed())
		clock.Step(time.Minute)
		g.Eventually(func() bool { return known.Contains(netip.MustParseAddrPort("192.168.0.11:6443")) }).WithTimeout(
			time.Minute).Should(BeTrue())
		cancel()
		g.Expect(<-ended).To(Succeed())
	})
}

func failing(c client.WithWatch, list func(client.ObjectList) error) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch,
		into client.ObjectList, opts ...client.ListOption) error {
		if err := list(into); err != nil {
			return err
		}
		return c.List(ctx, into, opts...)
	}})
}
