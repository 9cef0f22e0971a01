// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// dnsRuns returns the desired number of CoreDNS pods.
func (w *world) dnsRuns() int32 {
	w.t.Helper()
	d := &appsv1.Deployment{}
	w.get(guestNS, "coredns", d)
	return ptr.Deref(d.Spec.Replicas, 0)
}

// dnsBudget returns the disruption budget of CoreDNS; nil if there is none.
func (w *world) dnsBudget() *policyv1.PodDisruptionBudget {
	w.t.Helper()
	budget := &policyv1.PodDisruptionBudget{}
	err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: guestNS, Name: "coredns"}, budget)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return budget
}

// dnsFollowsNodes checks the number of DNS pods in a guest with two nodes.
func dnsFollowsNodes(w *world, step func(string, func(*testing.T))) {
	w.t.Helper()
	step("When there are two nodes and DNS should run twice it should, with a disruption budget", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.dnsRuns()).To(Equal(int32(1)))
		g.Expect(w.dnsBudget()).To(BeNil())
		w.edit(func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.InfrastructureAvailabilityPolicy = hyperv1.HighlyAvailable
		})
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.dnsRuns()).To(Equal(int32(2)))
		budget := w.dnsBudget()
		g.Expect(budget).NotTo(BeNil())
		g.Expect(budget.Spec.MaxUnavailable).To(HaveValue(Equal(intstr.FromInt32(1))))
		g.Expect(budget.Spec.UnhealthyPodEvictionPolicy).To(HaveValue(Equal(policyv1.AlwaysAllow)))
		deployment := &appsv1.Deployment{}
		w.get(guestNS, "coredns", deployment)
		g.Expect(budget.Spec.Selector).To(Equal(deployment.Spec.Selector))
		before := w.writes.Count
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.writes.Count).To(Equal(before))
		g.Expect(w.client.Delete(t.Context(), budget)).To(Succeed())
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.dnsBudget()).NotTo(BeNil(), "what somebody deletes is back")
	})

	step("When one node is left, or one replica is requested, DNS should have no disruption budget", func(t *testing.T) {
		g := NewWithT(t)
		node := &corev1.Node{}
		w.get("", "worker-2", node)
		g.Expect(w.client.Delete(t.Context(), node)).To(Succeed())
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.dnsRuns()).To(Equal(int32(1)))
		g.Expect(w.dnsBudget()).To(BeNil())
		w.node("worker-2")
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.dnsBudget()).NotTo(BeNil())
		w.edit(func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.InfrastructureAvailabilityPolicy = hyperv1.SingleReplica
		})
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.dnsRuns()).To(Equal(int32(1)))
		g.Expect(w.dnsBudget()).To(BeNil())
	})
}

// dnsMemory returns the memory request and limit of CoreDNS.
func (w *world) dnsMemory() string {
	w.t.Helper()
	d := &appsv1.Deployment{}
	w.get(guestNS, "coredns", d)
	resources := d.Spec.Template.Spec.Containers[0].Resources
	return resources.Requests.Memory().String() + "/" + resources.Limits.Memory().String()
}

// dnsSettings checks the memory of CoreDNS, and settings of the user.
func dnsSettings(w *world, step func(string, func(*testing.T))) {
	w.t.Helper()
	step("keeps the memory of CoreDNS of version 0.1.0 until its image changes", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.dnsMemory()).To(Equal("60Mi/170Mi"))
		d := &appsv1.Deployment{}
		w.get(guestNS, "coredns", d)
		d.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("50Mi")
		g.Expect(w.client.Update(t.Context(), d)).To(Succeed())
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.dnsMemory()).To(Equal("50Mi/170Mi"))
		newer := release("1.36.4")
		newer["coredns"] = "registry/coredns:newer"
		w.r.Releases = newer
		g.Expect(w.pass()).To(Succeed())
		g.Expect(w.dnsMemory()).To(Equal("60Mi/170Mi"))
		w.r.Releases = release("1.36.4")
	})

	step("gives CoreDNS and kube-proxy the settings of spec.addons", func(t *testing.T) {
		g := NewWithT(t)
		config := func(name, key string) string {
			cm := &corev1.ConfigMap{}
			w.get(guestNS, name, cm)
			return cm.Data[key]
		}
		before := config("coredns", "Corefile")
		w.edit(func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Addons = &hyperv1.AddonsSpec{KubeProxyMode: "nftables", DNS: hyperv1.DNSAddon{
				Upstreams:   []hyperv1.DNSServer{"10.0.0.53", "10.0.0.54:5353"},
				StubDomains: []hyperv1.StubDomain{{Domain: "corp.example", Servers: []hyperv1.DNSServer{"10.1.0.53"}}},
			}}
		})
		g.Expect(w.pass()).To(Succeed())
		g.Expect(config("coredns", "Corefile")).To(And(ContainSubstring("forward . 10.0.0.53 10.0.0.54:5353 {"),
			ContainSubstring("corp.example:53 {"), ContainSubstring("forward . 10.1.0.53 {"), Not(ContainSubstring("resolv.conf"))))
		g.Expect(config("kube-proxy", "config.conf")).To(ContainSubstring("mode: nftables"))
		w.edit(func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.Addons = nil })
		g.Expect(w.pass()).To(Succeed())
		g.Expect(config("coredns", "Corefile")).To(Equal(before))
		g.Expect(config("kube-proxy", "config.conf")).To(ContainSubstring("mode: iptables"))
	})

	step("refuses name servers and domains that the Corefile cannot hold", func(t *testing.T) {
		for _, dns := range []hyperv1.DNSAddon{
			{Upstreams: []hyperv1.DNSServer{"dns.example"}},
			{Upstreams: []hyperv1.DNSServer{"10.0.0.53 {"}},
			{Upstreams: []hyperv1.DNSServer{"10.0.0:53"}},
			{StubDomains: []hyperv1.StubDomain{{Domain: "a {", Servers: []hyperv1.DNSServer{"10.0.0.53"}}}},
			{StubDomains: []hyperv1.StubDomain{{Domain: "svc.cluster.local", Servers: []hyperv1.DNSServer{"10.0.0.53"}}}},
			{StubDomains: []hyperv1.StubDomain{{Domain: "corp.example", Servers: []hyperv1.DNSServer{}}}},
		} {
			hcp := &hyperv1.HostedControlPlane{}
			w.get(namespace, "demo", hcp)
			hcp.Spec.Addons = &hyperv1.AddonsSpec{DNS: dns}
			NewWithT(t).Expect(apierrors.IsInvalid(w.client.Update(t.Context(), hcp))).To(BeTrue(), "%v", dns)
		}
	})
}
