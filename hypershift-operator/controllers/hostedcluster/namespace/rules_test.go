// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

func TestAllBut(t *testing.T) {
	prefixes := func(texts ...string) (all []netip.Prefix) {
		for _, text := range texts {
			all = append(all, netip.MustParsePrefix(text))
		}
		return all
	}
	for name, test := range map[string]struct {
		except []netip.Prefix
		v4, v6 []string
	}{
		"nothing": {nil, nil, nil},
		"CIDRs of both families, sorted in each family": {prefixes("fe80::/10", "192.0.2.0/24", "10.0.0.0/8", "fd00::/8"), []string{"10.0.0.0/8", "192.0.2.0/24"}, []string{"fd00::/8", "fe80::/10"}},
		"once, however it is written":                   {prefixes("10.1.2.3/8", "10.0.0.0/8", "fd00::1/8", "fd00::2/8"), []string{"10.0.0.0/8"}, []string{"fd00::/8"}},
	} {
		t.Run(name, func(t *testing.T) {
			want := networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{
				{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: test.v4}}, {IPBlock: &networkingv1.IPBlock{CIDR: "::/0", Except: test.v6}}}}
			if diff := cmp.Diff(want, allBut(test.except)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestManagementAPI checks that each address of the management cluster's API server is allowed only with its own port.
func TestManagementAPI(t *testing.T) {
	g := NewWithT(t)
	api := []netip.AddrPort{
		netip.MustParseAddrPort("192.0.2.1:6443"), netip.MustParseAddrPort("[2001:db8::1]:6443"),
		netip.MustParseAddrPort("10.96.0.1:443"),
	}
	g.Expect(hosts(api)).To(Equal([]netip.Prefix{
		netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::1/128"), netip.MustParsePrefix("10.96.0.1/32"),
	}))
	var reached []string
	for _, rule := range managementAPI(api) {
		reached = append(reached, rule.To[0].IPBlock.CIDR+" "+string(*rule.Ports[0].Protocol)+" "+rule.Ports[0].Port.String())
	}
	g.Expect(reached).To(Equal([]string{"192.0.2.1/32 TCP 6443", "2001:db8::1/128 TCP 6443", "10.96.0.1/32 TCP 443"}))
}

// TestWhoGoesOut checks which pods of a control plane the egress rules of managers and of other pods select.
func TestWhoGoesOut(t *testing.T) {
	manager := labels.Set{hyperv1.NeedManagementKASAccessLabel: "true"}
	for name, test := range map[string]struct {
		image            string
		labelled         bool
		pod              labels.Set
		managers, others bool
	}{
		"a manager of the product's release":                        {fixture.ReleaseImage, true, manager, true, false},
		"the API server of the product's release":                   {fixture.ReleaseImage, true, labels.Set{"app": "kube-apiserver"}, false, true},
		"another pod of the product's release":                      {fixture.ReleaseImage, true, labels.Set{"app": "kube-scheduler"}, false, false},
		"a manager of a payload that labels its managers":           {fixture.OCPImage, true, manager, true, false},
		"another pod of a payload that labels its managers":         {fixture.OCPImage, true, labels.Set{"app": "oauth-openshift"}, false, true},
		"another pod of a payload that does not label its managers": {fixture.OCPImage, false, labels.Set{"app": "oauth-openshift"}, true, true},
		"a manager of a payload that does not label its managers":   {fixture.OCPImage, false, manager, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), clustertest.Scope(func(s *cluster.Scope) { s.Release = fixture.Payloads()[test.image] })
			takes := func(selector metav1.LabelSelector) bool {
				parsed, err := metav1.LabelSelectorAsSelector(&selector)
				g.Expect(err).NotTo(HaveOccurred())
				return parsed.Matches(test.pod)
			}
			g.Expect(takes(managerPods(test.labelled))).To(Equal(test.managers), "managers")
			g.Expect(takes(outgoingPods(s, test.labelled))).To(Equal(test.others), "others")
		})
	}
}

// TestPublished lists the policies of a published service, by the name of the policy, the pods and the port.
func TestPublished(t *testing.T) {
	for name, test := range map[string]struct {
		service hyperv1.ServiceType
		by      hyperv1.PublishingStrategyType
		want    []string
	}{
		"ignition by node port":                 {hyperv1.Ignition, hyperv1.NodePort, []string{"nodeport-ignition ignition-server 9090", "nodeport-ignition-proxy ignition-server-proxy 8443"}},
		"konnectivity by node port":             {hyperv1.Konnectivity, hyperv1.NodePort, []string{"nodeport-konnectivity konnectivity-server 8091", "nodeport-konnectivity-kas kube-apiserver 8091"}},
		"OAuth by node port":                    {hyperv1.OAuthServer, hyperv1.NodePort, []string{"nodeport-oauth oauth-openshift 6443"}},
		"OAuth by load balancer":                {hyperv1.OAuthServer, hyperv1.LoadBalancer, []string{"loadbalancer-oauth oauth-openshift 6443"}},
		"OAuth by Route, which needs no policy": {hyperv1.OAuthServer, hyperv1.Route, nil},
		"konnectivity by load balancer":         {hyperv1.Konnectivity, hyperv1.LoadBalancer, []string{"loadbalancer-konnectivity-kas kube-apiserver 8091"}},
		"the API server, which is always open":  {hyperv1.APIServer, hyperv1.NodePort, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range publishedPolicies(hyperv1.ServicePublishingStrategyMapping{Service: test.service, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: test.by}}) {
				spec := p.spec()
				NewWithT(t).Expect(spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeIngress))
				NewWithT(t).Expect(spec.Ingress[0].From).To(BeEmpty(), "machines come from everywhere")
				got = append(got, p.name+" "+spec.PodSelector.MatchLabels["app"]+" "+spec.Ingress[0].Ports[0].Port.String())
				NewWithT(t).Expect(slices.Contains(publishingPolicies, p.name)).To(BeTrue(), "it would stay when the service is published in another way")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestAPIPorts(t *testing.T) {
	for name, test := range map[string]struct {
		api  *hyperv1.APIServerNetworking
		want []int32
	}{
		"the API server has no settings":            {nil, []int32{6443}},
		"no port is set":                            {&hyperv1.APIServerNetworking{}, []int32{6443}},
		"the same port is set":                      {&hyperv1.APIServerNetworking{Port: ptr.To[int32](6443)}, []int32{6443}},
		"another port is set, and both are allowed": {&hyperv1.APIServerNetworking{Port: ptr.To[int32](7443)}, []int32{6443, 7443}},
	} {
		t.Run(name, func(t *testing.T) {
			hc := fixture.HostedCluster("clusters")
			hc.Spec.Networking.APIServer = test.api
			if diff := cmp.Diff(test.want, apiPorts(hc)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestPolicySpec checks that egress rules do not restrict ingress traffic unless requested.
func TestPolicySpec(t *testing.T) {
	out := []networkingv1.NetworkPolicyEgressRule{allBut(nil)}
	for name, test := range map[string]struct {
		policy  policy
		types   []networkingv1.PolicyType
		ingress int
	}{
		"a policy for incoming traffic":                                  {policy{}, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, 1},
		"a policy for outgoing traffic":                                  {policy{egress: out}, []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, 0},
		"a policy for outgoing traffic that admits all incoming traffic": {policy{egress: out, open: true}, []networkingv1.PolicyType{networkingv1.PolicyTypeEgress, networkingv1.PolicyTypeIngress}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g, spec := NewWithT(t), test.policy.spec()
			g.Expect(spec.PolicyTypes).To(Equal(test.types))
			g.Expect(spec.Ingress).To(HaveLen(test.ingress))
			g.Expect(spec.Egress).To(HaveLen(len(test.policy.egress)))
		})
	}
}

func TestPodSecurityLevel(t *testing.T) {
	override := func(level string) map[string]string {
		return map[string]string{hyperv1.PodSecurityAdmissionLabelOverrideAnnotation: level}
	}
	for name, test := range map[string]struct {
		payload, loosest   string
		cluster, namespace map[string]string
		want               string
	}{
		"the payload's level":                                   {restricted, baseline, nil, nil, restricted},
		"the level of an older payload":                         {baseline, baseline, nil, nil, baseline},
		"a user cannot loosen the level below the bound":        {restricted, restricted, override(privileged), nil, restricted},
		"a user loosens the level":                              {restricted, baseline, override(baseline), nil, baseline},
		"a user loosens the level only as far as the bound":     {restricted, baseline, override(privileged), nil, baseline},
		"a user loosens the level completely":                   {restricted, privileged, override(privileged), nil, privileged},
		"a strict bound does not tighten the payload's level":   {baseline, restricted, override(privileged), nil, baseline},
		"a user tightens the level":                             {baseline, baseline, override(restricted), nil, restricted},
		"a user tightens the level within a wider bound":        {baseline, privileged, override(restricted), nil, restricted},
		"a user sets an invalid level":                          {restricted, privileged, override("open"), nil, restricted},
		"an administrator loosened the level of the namespace":  {restricted, restricted, override(restricted), override(privileged), privileged},
		"an administrator tightened the level of the namespace": {baseline, baseline, nil, override(restricted), restricted},
		"an administrator sets an invalid level":                {baseline, baseline, nil, override("open"), baseline},
	} {
		t.Run(name, func(t *testing.T) {
			if got := levelOf(test.payload, test.loosest, test.cluster, test.namespace); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestPolicies(t *testing.T) {
	names := func(hc *hyperv1.HostedCluster) []string {
		var all []string
		for _, p := range ingressPolicies(&cluster.Scope{HC: hc, Release: fixture.Payloads()[fixture.OCPImage]}) {
			all = append(all, p.name)
		}
		return all
	}
	t.Run("When services are published by NodePort, the policies should allow access from everywhere", func(t *testing.T) {
		NewWithT(t).Expect(names(fixture.HostedCluster("clusters"))).To(Equal([]string{
			"openshift-ingress", "same-namespace", "kas", "openshift-monitoring", "nodeport-oauth",
			"nodeport-konnectivity", "nodeport-konnectivity-kas", "nodeport-ignition", "nodeport-ignition-proxy",
		}))
	})
	t.Run("When services are published by Route, there should be no policies for node ports", func(t *testing.T) {
		hc := fixture.HostedCluster("clusters")
		for i := range hc.Spec.Services {
			hc.Spec.Services[i].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}
		}
		NewWithT(t).Expect(names(hc)).To(Equal([]string{"openshift-ingress", "same-namespace", "kas", "openshift-monitoring"}))
	})
	t.Run("When the API server has another port, the policies should allow both ports", func(t *testing.T) {
		port := int32(7443)
		hc := fixture.HostedCluster("clusters")
		hc.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{Port: &port}
		NewWithT(t).Expect(apiPorts(hc)).To(Equal([]int32{6443, 7443}))
	})
}

// TestDeterministicPolicies checks that the same input always results in the same policies.
func TestDeterministicPolicies(t *testing.T) {
	specs := func() (all []any) {
		for _, p := range ingressPolicies(clustertest.Scope(clustertest.Running(fixture.ReleaseImage))) {
			all = append(all, p.name, p.spec())
		}
		return all
	}
	first := specs()
	for range 50 {
		if diff := cmp.Diff(first, specs()); diff != "" {
			t.Fatalf("-first +later\n%s", diff)
		}
	}
}
