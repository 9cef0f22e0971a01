// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/managementnetwork"
)

// apiServer returns the objects that describe the management cluster's API server and pod networks.
func apiServer() []client.Object {
	kubernetes := metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}
	return []client.Object{
		&discoveryv1.EndpointSlice{ObjectMeta: kubernetes, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}}, Ports: []discoveryv1.EndpointPort{{Port: ptr.To[int32](6443)}}},
		&corev1.Service{ObjectMeta: kubernetes, Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.1"}, Ports: []corev1.ServicePort{{Port: 443}}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{PodCIDRs: []string{"10.244.0.0/24", "fd00::/64"}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: corev1.NodeSpec{PodCIDRs: []string{"10.244.1.0/24", "nonsense"}}},
	}
}

// able returns the abilities of a control-plane-operator that has all of them or none.
func able(all bool) func(context.Context, string) (bool, error) {
	return func(context.Context, string) (bool, error) { return all, nil }
}

// policiesOf returns the phase with the client of a server, and an operator that has all abilities.
func policiesOf(server *clustertest.Server) NetworkPolicies {
	return NetworkPolicies{Client: server.Refusing, LiveReader: server.Refusing, Able: able(true)}
}

// network returns the addresses of the management cluster as the operator reads them.
func network(t *testing.T, server *clustertest.Server) *managementnetwork.Addresses {
	t.Helper()
	network, err := managementnetwork.Read(t.Context(), server.Refusing, server.Refusing)
	if err != nil {
		t.Fatal(err)
	}
	return network
}

// peers returns one line for each allowed destination.
func peers(rules []networkingv1.NetworkPolicyEgressRule) []string {
	var all []string
	for _, rule := range rules {
		var ports []string
		for _, port := range rule.Ports {
			ports = append(ports, fmt.Sprintf("%s/%s", *port.Protocol, port.Port))
		}
		for _, peer := range rule.To {
			text := ""
			switch {
			case peer.IPBlock != nil:
				text = peer.IPBlock.CIDR + " but " + strings.Join(peer.IPBlock.Except, ",")
			case peer.NamespaceSelector != nil:
				text = "namespaces " + metav1.FormatLabelSelector(peer.NamespaceSelector)
			default:
				text = "pods " + metav1.FormatLabelSelector(peer.PodSelector)
			}
			all = append(all, strings.TrimSuffix(text, " but ")+" "+strings.Join(ports, ","))
		}
	}
	return all
}

func TestEgress(t *testing.T) {
	const dnsPorts = "UDP/53,UDP/5353,TCP/53,TCP/5353"
	askDNS := []string{"namespaces kubernetes.io/metadata.name in (kube-system,openshift-dns) " + dnsPorts, "169.254.20.10/32 " + dnsPorts}
	guarded4, guarded6 := "0.0.0.0/0 but 10.244.0.0/24,10.244.1.0/24,10.96.0.1/32,169.254.0.0/16,192.0.2.1/32,198.51.100.0/24 ", "::/0 but fd00::/64,fe80::/10 "
	want := map[string][]string{
		"egress-own":     append([]string{"pods <none> "}, askDNS...),
		"egress-outside": {guarded4, guarded6},
		"egress-managers": {"0.0.0.0/0 but 10.244.0.0/24,10.244.1.0/24,169.254.0.0/16 ", guarded6,
			"10.96.0.1/32 TCP/443", "192.0.2.1/32 TCP/6443"},
	}
	machines := slices.Concat([]string{"namespaces network.openshift.io/policy-group=ingress ", "pods kubevirt.io=virt-launcher ",
		"pods app in (ignition-server,ignition-server-proxy,konnectivity-server,kube-apiserver,oauth-openshift) "}, askDNS, []string{guarded4, guarded6})
	for _, platform := range []hyperv1.PlatformType{hyperv1.MAASPlatform, hyperv1.KubevirtPlatform} {
		t.Run("When the platform is "+"When the platform is "+string(platform)+", every reference should name a copy", func(t *testing.T) {
			d := clustertest.NewServer(apiServer()...)
			phase := policiesOf(d)
			phase.EgressBlocks = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
			s := clustertest.Scope(func(s *cluster.Scope) {
				s.Release, s.HC.Spec.Platform.Type = fixture.Payloads()[fixture.ReleaseImage], platform
			})
			policies, err := phase.egressPolicies(t.Context(), s, network(t, d))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			got := map[string][]string{}
			for _, p := range policies {
				got[p.name] = peers(p.egress)
			}
			if delete(want, "virt-launcher"); platform == hyperv1.KubevirtPlatform {
				want["virt-launcher"] = machines
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestDNS checks the egress rules for DNS servers other than the conventional ones.
func TestDNS(t *testing.T) {
	const ports = " UDP/53,UDP/5353,TCP/53,TCP/5353"
	for name, tc := range map[string]struct {
		dns  managementnetwork.DNS
		want []string
	}{
		"a cache on another link-local address": {
			managementnetwork.DNS{Servers: []netip.Prefix{netip.MustParsePrefix("169.254.25.10/32")}},
			[]string{"namespaces kubernetes.io/metadata.name in (kube-system,openshift-dns)", "169.254.20.10/32", "169.254.25.10/32"}},
		"a cache on the address of the DNS Service": {
			managementnetwork.DNS{Servers: []netip.Prefix{netip.MustParsePrefix("10.96.0.10/32")}, Namespaces: []string{"kube-system"}},
			[]string{"namespaces kubernetes.io/metadata.name in (kube-system,openshift-dns)", "169.254.20.10/32", "10.96.0.10/32"}},
		"a DNS Service in another namespace": {
			managementnetwork.DNS{Servers: []netip.Prefix{netip.MustParsePrefix("169.254.20.10/32")}, Namespaces: []string{"names"}},
			[]string{"namespaces kubernetes.io/metadata.name in (kube-system,names,openshift-dns)", "169.254.20.10/32"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := clustertest.NewServer(apiServer()...)
			phase := policiesOf(d)
			phase.DNS = tc.dns
			s := clustertest.Scope(clustertest.Running(fixture.ReleaseImage))
			policies, err := phase.egressPolicies(t.Context(), s, network(t, d))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			want := []string{"pods <none> "}
			for _, peer := range tc.want {
				want = append(want, peer+ports)
			}
			NewWithT(t).Expect(peers(policies[0].egress)).To(Equal(want))
		})
	}
}

func TestEgressMeetsRefusals(t *testing.T) {
	for name, refuse := range map[string]string{
		"its endpoints": "get v1.EndpointSlice default/kubernetes", "its Service": "get v1.Service default/kubernetes", "nodes": "list v1.NodeList",
	} {
		t.Run("When it cannot read "+name+", nothing should be written", func(t *testing.T) {
			d := clustertest.NewServer(apiServer()...)
			d.Refuse = refuse
			_, err := policiesOf(d).Reconcile(t.Context(), clustertest.Scope(clustertest.Running(fixture.ReleaseImage)))
			NewWithT(t).Expect(err).To(MatchError(clustertest.ErrNotNow))
			NewWithT(t).Expect(d.Wrote).To(BeEmpty())
		})
	}
	t.Run("When the labels of the payload's image cannot be read, it should write nothing", func(t *testing.T) {
		d := clustertest.NewServer(apiServer()...)
		phase := policiesOf(d)
		phase.Able = func(context.Context, string) (bool, error) { return false, clustertest.ErrNotNow }
		_, err := phase.Reconcile(t.Context(), clustertest.Scope(clustertest.Running(fixture.OCPImage)))
		NewWithT(t).Expect(err).To(MatchError(clustertest.ErrNotNow))
		NewWithT(t).Expect(d.Wrote).To(BeEmpty())
	})
	t.Run("When a payload labels its managers, only those should reach the management API", func(t *testing.T) {
		for labelled, managers := range map[bool]string{true: hyperv1.NeedManagementKASAccessLabel + "=true", false: "<none>"} {
			d := clustertest.NewServer(apiServer()...)
			phase := policiesOf(d)
			phase.Able = func(_ context.Context, ability string) (bool, error) {
				return labelled && ability == labelsManagers, nil
			}
			policies, err := phase.egressPolicies(t.Context(), clustertest.Scope(clustertest.Running(fixture.OCPImage)), network(t, d))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(metav1.FormatLabelSelector(&policies[2].pods)).To(Equal(managers))
		}
	})
}

// ingress returns one line with the allowed sources, pods and ports of a policy.
func ingress(p policy) string {
	spec := p.spec()
	var from, ports []string
	for _, peer := range spec.Ingress[0].From {
		if peer.NamespaceSelector != nil {
			from = append(from, "namespaces "+metav1.FormatLabelSelector(peer.NamespaceSelector))
			continue
		}
		from = append(from, "pods "+metav1.FormatLabelSelector(peer.PodSelector))
	}
	for _, port := range spec.Ingress[0].Ports {
		ports = append(ports, fmt.Sprintf("%s/%s", *port.Protocol, port.Port))
	}
	return metav1.FormatLabelSelector(&spec.PodSelector) + " from " + strings.Join(from, ",") + " at " + strings.Join(ports, ",")
}

func TestIngress(t *testing.T) {
	all := map[string]string{
		"openshift-ingress":    "<none> from namespaces network.openshift.io/policy-group=ingress at ",
		"openshift-monitoring": "<none> from namespaces network.openshift.io/policy-group=monitoring at ",
		"kas":                  "app=kube-apiserver from  at TCP/6443",
	}
	ours := map[string]string{"same-namespace": "app notin (etcd) from pods <none> at ", "etcd": "app=etcd from pods <none> at TCP/2379,TCP/2380"}
	theirs := map[string]string{"same-namespace": "<none> from pods <none> at "}
	for image, more := range map[string]map[string]string{fixture.ReleaseImage: ours, fixture.OCPImage: theirs} {
		t.Run("When the release is "+image+", it should allow exactly these sources", func(t *testing.T) {
			want, got := map[string]string{}, map[string]string{}
			for _, from := range []map[string]string{all, more} {
				for name, text := range from {
					want[name] = text
				}
			}
			s := clustertest.Scope(func(s *cluster.Scope) { s.Release, s.HC.Spec.Services = fixture.Payloads()[image], nil })
			for _, p := range ingressPolicies(s) {
				got[p.name] = ingress(p)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestWrittenPolicies checks that policies of a previous publishing strategy are deleted, and that one failed write
// does not block the others.
func TestWrittenPolicies(t *testing.T) {
	before := &networkingv1.NetworkPolicy{ObjectMeta: clustertest.Ours("clusters-demo", "loadbalancer-oauth")}
	others := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "nodeport-ignition"}}
	all := []string{"egress-managers", "egress-outside", "egress-own", "etcd", "kas", "nodeport-ignition", "nodeport-konnectivity", "nodeport-konnectivity-kas",
		"nodeport-oauth", "openshift-ingress", "openshift-monitoring", "same-namespace"}
	without := func(name string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(other string) bool { return other == name })
	}
	for name, test := range map[string]struct {
		objects []client.Object
		refuse  string
		want    []string
		fails   bool
	}{
		"all requests succeed, it should delete the policies of the previous strategy": {append(apiServer(), before), "", append(without(""), "nodeport-ignition-proxy"), false},
		"one policy cannot be created, it should still create the others":              {append(apiServer(), before), "create v1.NetworkPolicy clusters-demo/kas", append(without("kas"), "nodeport-ignition-proxy"), true},
		"one policy cannot be deleted, it should still create the others":              {append(apiServer(), before), "delete v1.NetworkPolicy", append(without(""), "nodeport-ignition-proxy", "loadbalancer-oauth"), true},
		"another owner has a policy of the same name, it should take it over":          {append(apiServer(), others), "", append(without(""), "nodeport-ignition-proxy"), false},
	} {
		t.Run("When "+name, func(t *testing.T) {
			d := clustertest.NewServer(test.objects...)
			d.Refuse = test.refuse
			_, err := policiesOf(d).Reconcile(t.Context(), clustertest.Scope(clustertest.Running(fixture.ReleaseImage)))
			NewWithT(t).Expect(err != nil).To(Equal(test.fails))
			list := &networkingv1.NetworkPolicyList{}
			NewWithT(t).Expect(d.Direct.List(t.Context(), list, client.InNamespace("clusters-demo"))).To(Succeed())
			var names []string
			for _, p := range list.Items {
				names = append(names, p.Name)
				NewWithT(t).Expect(p.Annotations).To(HaveKeyWithValue(hyperv1.HostedClusterAnnotation, "clusters/demo"))
				NewWithT(t).Expect(p.Spec.PolicyTypes == nil).To(Equal(p.Name == "loadbalancer-oauth"), "it says what it is about")
			}
			slices.Sort(test.want)
			NewWithT(t).Expect(names).To(Equal(test.want))
		})
	}
}
