// SPDX-License-Identifier: Apache-2.0

// Package rights says what service accounts and people may do in the management cluster.
//
// There is no `*`: the tests in test/security and test/e2e hold each right against what is asked for.
package rights

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/management"
	"github.com/openshift/hypershift/support/operatorwebhook"
	"github.com/openshift/hypershift/support/platforms"
	"github.com/openshift/hypershift/support/protected"
)

var (
	readOnly = []string{"get", "list", "watch"}
	// managers are the workloads that the operator runs in each hosted namespace, with a Role of the same name each.
	managers = []string{"control-plane-operator", "cluster-api", "capi-provider"}
)

func rule(group string, resources, verbs []string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs, ResourceNames: names}
}

// reads is get, list and watch, and what comes on top.
func reads(group, resource string, more ...string) rbacv1.PolicyRule {
	return rule(group, []string{resource}, append(readOnly[:len(readOnly):len(readOnly)], more...))
}

func of(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rule(group, []string{resource}, verbs)
}

// Operator is what the hypershift-operator does in all namespaces: it does not know beforehand which are those of tenants and of their
// control planes. What only some management clusters serve is in it where apis say so.
func Operator(apis management.APIs) []rbacv1.PolicyRule {
	rules := append(core(), machines()...)
	rules = append(rules, hostedClusters()...)
	rules = append(rules, monitoring()...)
	rules = append(rules, roles()...)
	if apis.Has(management.Routes) {
		rules = append(rules, of(management.Routes, "routes", "get"))
	}
	return rules
}

// monitoring is given everywhere: a Prometheus operator may come later, and is found without another installation.
func monitoring() []rbacv1.PolicyRule {
	monitors, write := append([]string{"controlplane-operator"}, managers...), []string{"get", "create", "patch", "delete"}
	return []rbacv1.PolicyRule{
		rule(management.Monitoring, []string{"servicemonitors"}, write, monitors...),
		rule(management.Monitoring, []string{"podmonitors"}, write, monitors...),
		rule("", []string{"services"}, []string{"create", "patch"}, managers...),
		// OpenShift's monitoring is let into the namespaces of control planes where the installer asked for it.
		rule("rbac.authorization.k8s.io", []string{"clusterroles"}, []string{"bind"}, PrometheusRole),
	}
}

func core() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		reads("", "namespaces", "create", "update", "patch", "delete"),
		reads("", "secrets", "create", "update", "patch", "delete"),
		reads("", "configmaps", "create", "update", "delete"),
		reads("", "serviceaccounts"),
		reads("", "services"),
		// The pods of a deleted control plane need not serve out their grace periods.
		of("", "pods", "list", "delete"),
		// Policies of hosted namespaces keep pods off the management cluster's own network.
		of("", "nodes", "list", "watch"),
		of("discovery.k8s.io", "endpointslices", "get"),
		// Addresses of the management cluster are not called for tenants.
		of("networking.k8s.io", "servicecidrs", "list"),
		// Who reads metrics is told by the API server; the managers get the same two rights.
		of("authentication.k8s.io", "tokenreviews", "create"),
		of("authorization.k8s.io", "subjectaccessreviews", "create"),
		of("events.k8s.io", "events", "create", "patch"),
		// Created ones are handed on to the config operator of an OpenShift payload. Listed ones say why pods are refused.
		of("", "events", "create", "patch", "list"),
		reads("apps", "deployments", "deletecollection"),
		of("apps", "replicasets", "deletecollection"),
		of("apps", "statefulsets", "list", "deletecollection"),
		rule("", []string{"serviceaccounts"}, []string{"create", "patch"}, managers...),
		rule("apps", []string{"deployments"}, []string{"create", "patch", "delete"}, managers...),
		// One of them says which virtual IP the nodes hold.
		of("apps", "daemonsets", "list"),
		reads("networking.k8s.io", "networkpolicies", "create", "update", "delete"),
		reads("", "limitranges", "create", "update"),
		reads("apiextensions.k8s.io", "customresourcedefinitions"),
		// Who converts Cluster API's kinds is said in their CRDs, and by which authority it is known.
		rule("apiextensions.k8s.io", []string{"customresourcedefinitions"}, []string{"patch"}, crds.Names(crds.ClusterAPI)...),
		rule("admissionregistration.k8s.io", []string{"mutatingwebhookconfigurations"}, []string{"get", "list", "watch", "update"}, operatorwebhook.Name),
	}
}

func hostedClusters() []rbacv1.PolicyRule {
	const group = "hypershift.openshift.io"
	return []rbacv1.PolicyRule{
		// Policies on metadata ask for the verb administer, see support/protected.
		reads(group, "hostedclusters", "patch", protected.Right),
		of(group, "hostedclusters/status", "update", "patch"),
		reads(group, "nodepools", "patch", "delete"),
		of(group, "nodepools/status", "patch"),
		reads(group, "hostedcontrolplanes", "create", "update", "patch", "delete"),
		reads(group, "controlplanecomponents", "create", "update", "delete"),
		of(group, "controlplanecomponents/status", "patch"),
		// It takes the finalizer off of those whose control plane is gone.
		reads(group, "hcpetcdbackups", "patch"),
		of(group, "hcpetcdbackups/status", "patch"),
		// A release payload's control-plane-operator makes them, and waits for their subnets and their endpoint service.
		reads(group, "awsendpointservices", "patch", "delete"),
		of(group, "awsendpointservices/status", "patch"),
		// OpenShift wants it of who makes objects that keep their owner from going.
		rule(group, []string{"hostedclusters/finalizers", "hostedcontrolplanes/finalizers"}, []string{"update"}),
	}
}

func machines() []rbacv1.PolicyRule {
	const clusters = "cluster.x-k8s.io"
	rules := []rbacv1.PolicyRule{
		reads(clusters, "clusters", "create", "update", "patch", "delete"),
		reads(clusters, "machinedeployments", "create", "update", "patch", "delete"),
		reads(clusters, "machinesets", "create", "update", "patch", "delete"),
		reads(clusters, "machines", "patch", "delete"),
		of(clusters, "machines/status", "patch"),
		reads(clusters, "machinehealthchecks", "create", "update", "patch", "delete"),
	}
	for _, platformType := range platforms.Known() {
		traits, _ := platforms.Of(platformType)
		rules = append(rules, infrastructure(traits)...)
		rules = append(rules, traits.Passes...)
		rules = append(rules, traits.Beside...)
	}
	return rules
}

// infrastructure is what the operator does with the kinds of a platform's provider, which Cluster API wants to be named so.
func infrastructure(traits platforms.Traits) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, name := range crds.Names(traits.CRDs) {
		resource, group, _ := strings.Cut(name, ".")
		switch {
		case strings.HasSuffix(resource, "machinetemplates"):
			rules = append(rules, reads(group, resource, "create", "update", "delete"))
		case strings.HasSuffix(resource, "machines"):
			rules = append(rules, reads(group, resource, "patch", "delete"))
		case strings.HasSuffix(resource, "clusters"):
			rules = append(rules, reads(group, resource, "create", "update"))
			if traits.ExternalInfra {
				rules = append(rules, of(group, resource+"/status", "patch"))
			}
		}
	}
	return rules
}

// roles let the operator give each manager its rights without having them: those of a release payload's control-plane-operator are wider than
// its own, and a union of all would be no limit. It may escalate by these names alone. Other Roles that it makes, for single Secrets, and what is
// bound cluster-wide hold rights that it has itself.
func roles() []rbacv1.PolicyRule {
	const group, certificates = "rbac.authorization.k8s.io", "certificates.k8s.io"
	return []rbacv1.PolicyRule{
		reads(group, "roles", "create", "update", "delete"),
		reads(group, "rolebindings", "create", "update", "delete"),
		// Server-side apply names what it creates, so that the names hold for it too.
		rule(group, []string{"roles"}, []string{"patch", "escalate", "bind"}, managers...),
		rule(group, []string{"rolebindings"}, []string{"patch"}, managers...),
		reads(group, "clusterroles", "create", "update", "deletecollection"),
		reads(group, "clusterrolebindings", "create", "update", "deletecollection"),
		// Break-glass certificates are signed by an operator of their own cluster, which this one lets do so.
		reads(certificates, "certificatesigningrequests"),
		of(certificates, "certificatesigningrequests/approval", "update"),
		of(certificates, "certificatesigningrequests/status", "patch"),
		of(certificates, "signers", "approve", "sign"),
	}
}

// OperatorNamespace is what the hypershift-operator does in its own namespace beside.
func OperatorNamespace() []rbacv1.PolicyRule {
	const lease = "hypershift-operator-leader-elect"
	return []rbacv1.PolicyRule{
		of("", "pods", "get"),
		of("", "events", "create", "patch"),
		of("coordination.k8s.io", "leases", "create"),
		rule("coordination.k8s.io", []string{"leases"}, []string{"get", "update"}, lease),
	}
}

// VirtualIP is what the pods may do in their namespace that hold addresses of the management cluster's nodes in turn.
func VirtualIP() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		of("coordination.k8s.io", "leases", "create"),
		rule("coordination.k8s.io", []string{"leases"}, []string{"get", "update"}, "api-virtual-ip"),
	}
}
