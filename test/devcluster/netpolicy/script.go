// SPDX-License-Identifier: Apache-2.0

package netpolicy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Cluster holds the objects that determine the rules.
type Cluster struct {
	Pods       []*corev1.Pod
	Namespaces []*corev1.Namespace
	Policies   []*networkingv1.NetworkPolicy
}

const (
	ingress = networkingv1.PolicyTypeIngress
	egress  = networkingv1.PolicyTypeEgress
)

// Script returns a script that replaces the table of all rules. Each pod that a policy selects has a chain for ingress,
// egress or both. Packets that no rule of the chain allows are rejected immediately, so that clients do not wait for a
// timeout. The same cluster always gives the same script.
func (c Cluster) Script() string {
	slices.SortFunc(c.Policies, func(a, b *networkingv1.NetworkPolicy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	pods := c.networked()
	var chains strings.Builder
	jumps := map[networkingv1.PolicyType][]string{}
	for _, pod := range pods {
		for _, direction := range []networkingv1.PolicyType{egress, ingress} {
			rules, isolated := c.rulesOf(pod, direction, pods)
			if !isolated {
				continue
			}
			name := strings.ToLower(string(direction)) + "_" + pod.Status.PodIP
			jumps[direction] = append(jumps[direction], fmt.Sprintf("%s : jump %s", pod.Status.PodIP, name))
			fmt.Fprintf(&chains, "\tchain %s {\n\t\tcomment %q\n%s\t\treject with icmpx admin-prohibited\n\t}\n", name, pod.Namespace+"/"+pod.Name, lines(rules))
		}
	}
	var script strings.Builder
	script.WriteString("table inet network_policies\ndelete table inet network_policies\ntable inet network_policies {\n")
	script.WriteString(chains.String())
	out, in := vmap("ip saddr", jumps[egress]), vmap("ip daddr", jumps[ingress])
	established := "ct state established,related accept"
	fmt.Fprintf(&script, "\tchain forward {\n\t\ttype filter hook forward priority filter; policy accept;\n%s\t}\n", lines(append(append([]string{established}, out...), in...)))
	fmt.Fprintf(&script, "\tchain input {\n\t\ttype filter hook input priority filter; policy accept;\n%s\t}\n}\n", lines(append([]string{established}, out...)))
	return script.String()
}

func lines(rules []string) string {
	var all strings.Builder
	for _, rule := range rules {
		all.WriteString("\t\t" + rule + "\n")
	}
	return all.String()
}

func vmap(key string, jumps []string) []string {
	if len(jumps) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s vmap { %s }", key, strings.Join(jumps, ", "))}
}

// networked returns the pods that have their own address, sorted by address.
func (c Cluster) networked() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range c.Pods {
		over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if pod.Status.PodIP != "" && !pod.Spec.HostNetwork && !over {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Status.PodIP, b.Status.PodIP) })
	return pods
}

// rulesOf returns the rules that allow a pod's packets in one direction, and whether a policy isolates the pod.
func (c Cluster) rulesOf(pod *corev1.Pod, direction networkingv1.PolicyType, pods []*corev1.Pod) (rules []string, isolated bool) {
	for _, policy := range c.Policies {
		if policy.Namespace != pod.Namespace || !selects(&policy.Spec.PodSelector, pod.Labels) || !slices.Contains(typesOf(policy), direction) {
			continue
		}
		isolated = true
		if direction == ingress {
			for _, rule := range policy.Spec.Ingress {
				rules = append(rules, c.rule("ip saddr", policy.Namespace, rule.From, rule.Ports, func(*corev1.Pod) *corev1.Pod { return pod }, pods)...)
			}
			continue
		}
		for _, rule := range policy.Spec.Egress {
			rules = append(rules, c.rule("ip daddr", policy.Namespace, rule.To, rule.Ports, func(peer *corev1.Pod) *corev1.Pod { return peer }, pods)...)
		}
	}
	return rules, isolated
}

// typesOf returns the policy's directions. By default they are the ones that the API server sets: egress only if the
// policy has egress rules.
func typesOf(policy *networkingv1.NetworkPolicy) []networkingv1.PolicyType {
	if len(policy.Spec.PolicyTypes) > 0 {
		return policy.Spec.PolicyTypes
	}
	return []networkingv1.PolicyType{ingress}
}

// rule returns the nft rules for one rule of a policy: they allow each of its peers on each of its ports. listens
// returns the pod that a named port refers to.
func (c Cluster) rule(field, namespace string, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort,
	listens func(peer *corev1.Pod) *corev1.Pod, pods []*corev1.Pod,
) []string {
	if len(peers) == 0 {
		return withPorts("", ports, listens(nil))
	}
	var rules []string
	for _, peer := range peers {
		if peer.IPBlock != nil {
			if !strings.Contains(peer.IPBlock.CIDR, ":") { // Pods have IPv4 addresses only.
				rules = append(rules, withPorts(block(field, peer.IPBlock), ports, listens(nil))...)
			}
			continue
		}
		for _, other := range pods {
			if c.isPeer(peer, namespace, other) {
				rules = append(rules, withPorts(field+" "+other.Status.PodIP+" ", ports, listens(other))...)
			}
		}
	}
	return rules
}

func block(field string, b *networkingv1.IPBlock) string {
	match := field + " " + b.CIDR + " "
	if len(b.Except) > 0 {
		match += field + " != { " + strings.Join(b.Except, ", ") + " } "
	}
	return match
}

func (c Cluster) isPeer(peer networkingv1.NetworkPolicyPeer, namespace string, pod *corev1.Pod) bool {
	if peer.NamespaceSelector == nil {
		return pod.Namespace == namespace && selects(peer.PodSelector, pod.Labels)
	}
	for _, n := range c.Namespaces {
		if n.Name == pod.Namespace {
			return selects(peer.NamespaceSelector, n.Labels) && (peer.PodSelector == nil || selects(peer.PodSelector, pod.Labels))
		}
	}
	return false
}

func selects(selector *metav1.LabelSelector, of map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(of))
}

// withPorts allows a match on each port, or on all ports if none is listed. A named port matches nothing for a pod
// without it.
func withPorts(match string, ports []networkingv1.NetworkPolicyPort, listens *corev1.Pod) []string {
	if len(ports) == 0 {
		return []string{match + "return"}
	}
	var rules []string
	for _, port := range ports {
		protocol := corev1.ProtocolTCP
		if port.Protocol != nil {
			protocol = *port.Protocol
		}
		transport := strings.ToLower(string(protocol))
		switch {
		case port.Port == nil:
			rules = append(rules, match+"meta l4proto "+transport+" return")
		case port.Port.Type == intstr.String:
			for _, number := range numbersOf(listens, port.Port.StrVal, protocol) {
				rules = append(rules, fmt.Sprintf("%s%s dport %d return", match, transport, number))
			}
		case port.EndPort != nil:
			rules = append(rules, fmt.Sprintf("%s%s dport %d-%d return", match, transport, port.Port.IntVal, *port.EndPort))
		default:
			rules = append(rules, fmt.Sprintf("%s%s dport %d return", match, transport, port.Port.IntVal))
		}
	}
	return rules
}

func numbersOf(pod *corev1.Pod, name string, protocol corev1.Protocol) []int32 {
	if pod == nil {
		return nil
	}
	var numbers []int32
	for i := range pod.Spec.Containers {
		for _, port := range pod.Spec.Containers[i].Ports {
			if port.Name == name && cmp.Or(port.Protocol, corev1.ProtocolTCP) == protocol {
				numbers = append(numbers, port.ContainerPort)
			}
		}
	}
	return numbers
}
