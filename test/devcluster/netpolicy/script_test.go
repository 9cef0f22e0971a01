// SPDX-License-Identifier: Apache-2.0

package netpolicy

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func pod(namespace, name, ip string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}}}}},
		Status:     corev1.PodStatus{PodIP: ip, Phase: corev1.PodRunning},
	}
}

func labelled(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func port(port intstr.IntOrString) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Port: &port}
}

// cluster returns a cluster with two tenants, whose namespaces have their names as labels.
func cluster(policies ...networkingv1.NetworkPolicySpec) Cluster {
	c := Cluster{Pods: []*corev1.Pod{pod("a", "one", "10.0.0.1"), pod("a", "two", "10.0.0.2"), pod("b", "one", "10.0.0.3")}}
	for _, name := range []string{"a", "b"} {
		c.Namespaces = append(c.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tenant": name}}})
	}
	for _, spec := range policies {
		c.Policies = append(c.Policies, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}, Spec: spec})
	}
	return c
}

// rules returns the rules in the chain of one direction of pod a/one; nothing if there is no chain.
func rules(script, chain string) []string {
	_, rest, found := strings.Cut(script, "chain "+chain+" {\n")
	if !found {
		return nil
	}
	body, _, _ := strings.Cut(rest, "\t}\n")
	var all []string
	for line := range strings.Lines(body) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "comment") {
			all = append(all, line)
		}
	}
	return all
}

func TestScript(t *testing.T) {
	const refuse = "reject with icmpx admin-prohibited"
	one := *labelled("app", "one")
	in := func(rules ...networkingv1.NetworkPolicyIngressRule) networkingv1.NetworkPolicySpec {
		return networkingv1.NetworkPolicySpec{PodSelector: one, PolicyTypes: []networkingv1.PolicyType{ingress}, Ingress: rules}
	}
	out := func(rules ...networkingv1.NetworkPolicyEgressRule) networkingv1.NetworkPolicySpec {
		return networkingv1.NetworkPolicySpec{PodSelector: one, PolicyTypes: []networkingv1.PolicyType{egress}, Egress: rules}
	}
	from := func(peers ...networkingv1.NetworkPolicyPeer) networkingv1.NetworkPolicyIngressRule {
		return networkingv1.NetworkPolicyIngressRule{From: peers}
	}
	for _, tt := range []struct {
		name            string
		policies        []networkingv1.NetworkPolicySpec
		ingress, egress []string
	}{
		{name: "When no policy selects a Pod, all traffic should be allowed"},
		{name: "When a policy has no rules, it should deny all ingress", policies: []networkingv1.NetworkPolicySpec{in()}, ingress: []string{refuse}},
		{name: "When two policies select a Pod, traffic that either one allows should pass",
			policies: []networkingv1.NetworkPolicySpec{
				in(networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{port(intstr.FromInt32(1))}}),
				in(networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{port(intstr.FromInt32(2))}}),
			},
			ingress: []string{"tcp dport 1 return", "tcp dport 2 return", refuse}},
		{name: "When a peer selects Pods, only Pods of the policy's namespace should be allowed",
			policies: []networkingv1.NetworkPolicySpec{in(from(networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}}))},
			ingress:  []string{"ip saddr 10.0.0.1 return", "ip saddr 10.0.0.2 return", refuse}},
		{name: "When a peer selects another namespace, all of its Pods should be allowed",
			policies: []networkingv1.NetworkPolicySpec{in(from(networkingv1.NetworkPolicyPeer{NamespaceSelector: labelled("tenant", "b")}))},
			ingress:  []string{"ip saddr 10.0.0.3 return", refuse}},
		{name: "When a peer selects Pods in any namespace, only Pods with the labels should be allowed",
			policies: []networkingv1.NetworkPolicySpec{in(from(networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{}, PodSelector: labelled("app", "two")}))},
			ingress:  []string{"ip saddr 10.0.0.2 return", refuse}},
		{name: "When an ingress port is named, it should be the port of the selected Pod",
			policies: []networkingv1.NetworkPolicySpec{in(networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{port(intstr.FromString("web")), port(intstr.FromString("none"))}})},
			ingress:  []string{"tcp dport 8080 return", refuse}},
		{name: "When an IP block has exceptions, they should be excluded",
			policies: []networkingv1.NetworkPolicySpec{out(networkingv1.NetworkPolicyEgressRule{
				To: []networkingv1.NetworkPolicyPeer{
					{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: []string{"10.0.0.0/8", "169.254.0.0/16"}}}, {IPBlock: &networkingv1.IPBlock{CIDR: "::/0"}},
				},
				Ports: []networkingv1.NetworkPolicyPort{{Protocol: ptr.To(corev1.ProtocolUDP), Port: ptr.To(intstr.FromInt32(53))}, {Port: ptr.To(intstr.FromInt32(80)), EndPort: ptr.To[int32](90)}, {}},
			})},
			egress: []string{
				"ip daddr 0.0.0.0/0 ip daddr != { 10.0.0.0/8, 169.254.0.0/16 } udp dport 53 return", "ip daddr 0.0.0.0/0 ip daddr != { 10.0.0.0/8, 169.254.0.0/16 } tcp dport 80-90 return",
				"ip daddr 0.0.0.0/0 ip daddr != { 10.0.0.0/8, 169.254.0.0/16 } meta l4proto tcp return", refuse,
			}},
		{name: "When an egress port is named, it should be the port of the destination Pod",
			policies: []networkingv1.NetworkPolicySpec{out(networkingv1.NetworkPolicyEgressRule{
				To: []networkingv1.NetworkPolicyPeer{{PodSelector: labelled("app", "two")}}, Ports: []networkingv1.NetworkPolicyPort{port(intstr.FromString("web"))}})},
			egress: []string{"ip daddr 10.0.0.2 tcp dport 8080 return", refuse}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			script := cluster(tt.policies...).Script()
			if diff := cmp.Diff(tt.ingress, rules(script, "ingress_10.0.0.1")); diff != "" {
				t.Errorf("ingress (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.egress, rules(script, "egress_10.0.0.1")); diff != "" {
				t.Errorf("egress (-want +got):\n%s", diff)
			}
			for hook, wanted := range map[string]bool{"forward": tt.egress != nil || tt.ingress != nil, "input": tt.egress != nil} {
				if jumps := strings.Contains(strings.Join(rules(script, hook), "\n"), "10.0.0.1 : jump"); jumps != wanted {
					t.Errorf("chain %s looks at the pod's packets: %t, wanted %t", hook, jumps, wanted)
				}
			}
			understood(t, script)
		})
	}
	t.Run("When a Pod has ended or uses the host network, no rule should have its address", func(t *testing.T) {
		c := cluster(in())
		c.Pods[0].Status.Phase, c.Pods[2].Spec.HostNetwork = corev1.PodSucceeded, true
		if script := c.Script(); strings.Contains(script, "10.0.0.1") || strings.Contains(script, "10.0.0.3") {
			t.Error(script)
		}
	})
}

// understood validates a script with nft, if this machine permits it.
func understood(t *testing.T, script string) {
	t.Helper()
	if exec.Command("unshare", "--net", "nft", "list", "tables").Run() != nil {
		return // Without root or nft, the embedded environment's tests cover this.
	}
	nft := exec.Command("unshare", "--net", "nft", "-f", "-")
	nft.Stdin = strings.NewReader(script)
	if out, err := nft.CombinedOutput(); err != nil {
		t.Errorf("nft: %v: %s\n%s", err, out, script)
	}
}
