// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/hypershift/support/management"
	"github.com/openshift/hypershift/support/rights"
)

// may reports whether rules grant a verb on a resource. name is required if a rule has resource names.
func may(rules []rbacv1.PolicyRule, verb, group, resource, name string) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, verb) &&
			(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, name))
	})
}

func TestRightsAreNamed(t *testing.T) {
	for name, rules := range map[string][]rbacv1.PolicyRule{
		"operator": rights.Operator(management.Groups()), "namespace": rights.OperatorNamespace(), "tenant": rights.Tenant(), "virtual IP": rights.VirtualIP(),
		"Prometheus": rights.Prometheus(), "reader of metrics": rights.MetricsReader(),
	} {
		t.Run("When rules are granted to the "+name+", none should have a wildcard", func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(rules).NotTo(BeEmpty())
			for _, rule := range rules {
				g.Expect(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs, rule.ResourceNames)).NotTo(ContainElement(ContainSubstring("*")))
				g.Expect(rule.Verbs).NotTo(BeEmpty())
				g.Expect(len(rule.Resources)+len(rule.NonResourceURLs)).NotTo(BeZero(), "%v", rule)
				g.Expect(rule.ResourceNames).NotTo(ContainElement(""))
				sorted := slices.Sorted(slices.Values(rule.Verbs))
				g.Expect(slices.Compact(slices.Clone(sorted))).To(Equal(sorted), "a verb that is there twice came from a list that two rules share: %v", rule)
			}
		})
	}
}

// TestWhatMakesAnAdministrator covers rights that, without resource names, are equivalent to cluster-admin.
func TestWhatMakesAnAdministrator(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io"
	operator := rights.Operator(management.Groups())
	for _, tc := range []struct{ verb, group, resource string }{
		{"escalate", rbac, "roles"}, {"bind", rbac, "roles"}, {"escalate", rbac, "clusterroles"}, {"bind", rbac, "clusterroles"}, {"patch", rbac, "rolebindings"},
		{"create", "apps", "deployments"}, {"patch", "apps", "deployments"}, {"create", "apps", "daemonsets"}, {"create", "", "pods"},
		{"create", "", "serviceaccounts"}, {"create", "", "serviceaccounts/token"}, {"impersonate", "", "users"}, {"create", "", "pods/exec"},
	} {
		t.Run("When the operator may "+tc.verb+" "+tc.resource+", it should be limited to named objects", func(t *testing.T) {
			NewWithT(t).Expect(may(operator, tc.verb, tc.group, tc.resource, "anything")).To(BeFalse())
		})
	}
	t.Run("When the operator manages its own components, it should have rights to them by name", func(t *testing.T) {
		g := NewWithT(t)
		for _, manager := range []string{"control-plane-operator", "cluster-api", "capi-provider"} {
			for _, verb := range []string{"patch", "escalate", "bind"} {
				g.Expect(may(operator, verb, rbac, "roles", manager)).To(BeTrue(), "%s %s", verb, manager)
			}
			g.Expect(may(operator, "create", "apps", "deployments", manager)).To(BeTrue())
			g.Expect(may(operator, "create", "", "serviceaccounts", manager)).To(BeTrue())
		}
	})
}

// TestOfATenant checks that tenants have rights to the objects in their namespace, and no way to gain more.
func TestOfATenant(t *testing.T) {
	g, tenant := NewWithT(t), rights.Tenant()
	for _, resource := range []string{"hostedclusters", "nodepools"} {
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
			g.Expect(may(tenant, verb, "hypershift.openshift.io", resource, "mine")).To(BeTrue())
		}
		g.Expect(may(tenant, "update", "hypershift.openshift.io", resource+"/status", "mine")).To(BeFalse(), "a status is the operator's word")
	}
	g.Expect(may(tenant, "patch", "hypershift.openshift.io", "nodepools/scale", "mine")).To(BeTrue())
	for _, resource := range []string{"hostedcontrolplanes", "controlplanecomponents", "hcpetcdbackups"} {
		g.Expect(may(tenant, "get", "hypershift.openshift.io", resource, "mine")).To(BeFalse())
	}
	for _, rule := range tenant {
		g.Expect(rule.APIGroups).NotTo(ContainElement(BeElementOf("rbac.authorization.k8s.io", "apps", "cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io")))
	}
	g.Expect(may(rights.Tenant(), "create", "", "events", "x")).To(BeFalse())
}

func TestOptionalAPIs(t *testing.T) {
	g := NewWithT(t)
	without, with := rights.Operator(nil), rights.Operator(management.APIs{management.Routes})
	g.Expect(may(without, "get", management.Routes, "routes", "x")).To(BeFalse())
	g.Expect(may(with, "get", management.Routes, "routes", "x")).To(BeTrue())
	g.Expect(with).To(HaveLen(len(without)+1), "nothing else hangs on it")
	g.Expect(may(without, "get", management.Monitoring, "servicemonitors", "cluster-api")).To(BeTrue(), "a Prometheus operator may come later")
}

// TestLeases checks that each program has its own lease. Otherwise one program could take the lease of another.
func TestLeases(t *testing.T) {
	g := NewWithT(t)
	for lease, rules := range map[string][]rbacv1.PolicyRule{"hypershift-operator-leader-elect": rights.OperatorNamespace(), "api-virtual-ip": rights.VirtualIP()} {
		g.Expect(may(rules, "update", "coordination.k8s.io", "leases", lease)).To(BeTrue())
		g.Expect(may(rules, "update", "coordination.k8s.io", "leases", "other")).To(BeFalse())
		g.Expect(may(rules, "create", "coordination.k8s.io", "leases", lease)).To(BeTrue(), "what is created has no name yet that a rule could tell")
	}
}
