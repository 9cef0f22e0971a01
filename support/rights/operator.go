// SPDX-License-Identifier: Apache-2.0

// Package rights defines the rights of service accounts and users in the management cluster.
//
// There is no `*`: the tests in test/security and test/e2e compare each right with the actual requests.
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
	// managers are the workloads that the operator runs in each hosted namespace. Each has a Role of the same name.
	managers = []string{"control-plane-operator", "cluster-api", "capi-provider"}
)

func rule(group string, resources, verbs []string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs, ResourceNames: names}
}

// reads returns a rule with get, list and watch, and additional verbs.
func reads(group, resource string, more ...string) rbacv1.PolicyRule {
	return rule(group, []string{resource}, append(readOnly[:len(readOnly):len(readOnly)], more...))
}

func of(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rule(group, []string{resource}, verbs)
}

// Operator returns the rights of the hypershift-operator in all namespaces. The operator does not know in advance which
// namespaces belong to tenants and to their control planes. Rights to optional APIs are included if apis contains them.
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

// monitoring returns the rules for metrics, which are granted on every cluster: a Prometheus operator may be installed
// later, and then no reinstallation is needed.
func monitoring() []rbacv1.PolicyRule {
	monitors, write := append([]string{"controlplane-operator"}, managers...), []string{"get", "create", "patch", "delete"}
	return []rbacv1.PolicyRule{
		rule(management.Monitoring, []string{"servicemonitors"}, write, monitors...),
		rule(management.Monitoring, []string{"podmonitors"}, write, monitors...),
		rule("", []string{"services"}, []string{"create", "patch"}, managers...),
		// Grants OpenShift's monitoring access to the namespaces of control planes if the installer enabled it.
		rule("rbac.authorization.k8s.io", []string{"clusterroles"}, []string{"bind"}, PrometheusRole),
	}
}

func core() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		reads("", "namespaces", "create", "update", "patch", "delete"),
		reads("", "secrets", "create", "update", "patch", "delete"),
		reads("", "configmaps", "create", "update", "delete"),
		reads("", "serviceaccounts"),
		// The operator reports a volume of etcd that is being deleted.
		reads("", "persistentvolumeclaims"),
		reads("", "services"),
		// Deletes the pods of a deleted control plane without waiting for their grace periods.
		of("", "pods", "list", "delete"),
		// NetworkPolicies of hosted namespaces keep pods off the management cluster's own network.
		of("", "nodes", "list", "watch"),
		of("discovery.k8s.io", "endpointslices", "get"),
		// The operator does not call addresses of the management cluster on behalf of tenants.
		of("networking.k8s.io", "servicecidrs", "list"),
		// The API server authorizes clients that read metrics. The managers get the same two rights.
		of("authentication.k8s.io", "tokenreviews", "create"),
		of("authorization.k8s.io", "subjectaccessreviews", "create"),
		of("events.k8s.io", "events", "create", "patch"),
		// The operator passes the right to create events on to the config operator of an OpenShift payload. It lists events
		// to find out why pods are refused.
		of("", "events", "create", "patch", "list"),
		reads("apps", "deployments", "deletecollection"),
		of("apps", "replicasets", "deletecollection"),
		of("apps", "statefulsets", "list", "deletecollection"),
		rule("", []string{"serviceaccounts"}, []string{"create", "patch"}, managers...),
		rule("apps", []string{"deployments"}, []string{"create", "patch", "delete"}, managers...),
		// One of the DaemonSets runs the pods that hold the virtual IP of the nodes.
		of("apps", "daemonsets", "list"),
		reads("networking.k8s.io", "networkpolicies", "create", "update", "delete"),
		reads("", "limitranges", "create", "update"),
		reads("apiextensions.k8s.io", "customresourcedefinitions"),
		// The CRDs of Cluster API contain the conversion webhook and its certificate authority.
		rule("apiextensions.k8s.io", []string{"customresourcedefinitions"}, []string{"patch"}, crds.Names(crds.ClusterAPI)...),
		rule("admissionregistration.k8s.io", []string{"mutatingwebhookconfigurations"}, []string{"get", "list", "watch", "update"}, operatorwebhook.Name),
	}
}

func hostedClusters() []rbacv1.PolicyRule {
	const group = "hypershift.openshift.io"
	return []rbacv1.PolicyRule{
		// Policies on metadata check the verb administer; see support/protected.
		reads(group, "hostedclusters", "patch", protected.Right),
		of(group, "hostedclusters/status", "update", "patch"),
		reads(group, "nodepools", "patch", "delete"),
		of(group, "nodepools/status", "patch"),
		reads(group, "hostedcontrolplanes", "create", "update", "patch", "delete"),
		reads(group, "controlplanecomponents", "create", "update", "delete"),
		of(group, "controlplanecomponents/status", "patch"),
		// The operator removes the finalizer of backups whose control plane is gone.
		reads(group, "hcpetcdbackups", "patch"),
		of(group, "hcpetcdbackups/status", "patch"),
		// The control-plane-operator of a release payload creates them, and waits for their subnets and their endpoint
		// service.
		reads(group, "awsendpointservices", "patch", "delete"),
		of(group, "awsendpointservices/status", "patch"),
		// OpenShift requires this right to create objects that block the deletion of their owner.
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

// infrastructure returns the rights to the kinds of a platform's provider. Their names follow Cluster API's naming
// convention.
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

// roles returns the rights by which the operator grants each manager its rights without having them itself. The rights
// of a release payload's control-plane-operator exceed the operator's, and the union of all rights would be no limit.
// The operator may escalate only for these names. Other Roles, for single Secrets, and cluster-wide bindings contain
// only rights that the operator has itself.
func roles() []rbacv1.PolicyRule {
	const group, certificates = "rbac.authorization.k8s.io", "certificates.k8s.io"
	return []rbacv1.PolicyRule{
		reads(group, "roles", "create", "update", "delete"),
		reads(group, "rolebindings", "create", "update", "delete"),
		// Server-side apply creates objects by name, so ResourceNames limit creation too.
		rule(group, []string{"roles"}, []string{"patch", "escalate", "bind"}, managers...),
		rule(group, []string{"rolebindings"}, []string{"patch"}, managers...),
		reads(group, "clusterroles", "create", "update", "deletecollection"),
		reads(group, "clusterrolebindings", "create", "update", "deletecollection"),
		// An operator of the hosted cluster signs break-glass certificates. The hypershift-operator grants it the right.
		reads(certificates, "certificatesigningrequests"),
		of(certificates, "certificatesigningrequests/approval", "update"),
		of(certificates, "certificatesigningrequests/status", "patch"),
		of(certificates, "signers", "approve", "sign"),
	}
}

// OperatorNamespace returns the additional rights of the hypershift-operator in its own namespace.
func OperatorNamespace() []rbacv1.PolicyRule {
	const lease = "hypershift-operator-leader-elect"
	return []rbacv1.PolicyRule{
		of("", "pods", "get"),
		of("", "events", "create", "patch"),
		of("coordination.k8s.io", "leases", "create"),
		rule("coordination.k8s.io", []string{"leases"}, []string{"get", "update"}, lease),
	}
}

// VirtualIP returns the rights, in their namespace, of the pods that hold virtual IPs of the management cluster's
// nodes.
func VirtualIP() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		of("coordination.k8s.io", "leases", "create"),
		rule("coordination.k8s.io", []string{"leases"}, []string{"get", "update"}, "api-virtual-ip"),
	}
}
