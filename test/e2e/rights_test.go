// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/rights"
)

// unusedRights lists the permissions of the operator that no scenario uses, grouped by reason. The tests of the
// controllers, which run with the operator's permissions, do use them. Only the permissions for OpenShift management
// clusters are used by no test.
var unusedRights = map[string][]string{
	"operators of the clusters sign certificates, and granting a right requires having it": {
		"get certificates.k8s.io/certificatesigningrequests", "list certificates.k8s.io/certificatesigningrequests",
		"watch certificates.k8s.io/certificatesigningrequests", "update certificates.k8s.io/certificatesigningrequests/approval",
		"patch certificates.k8s.io/certificatesigningrequests/status", "approve certificates.k8s.io/signers", "sign certificates.k8s.io/signers",
	},
	"Cluster API and the provider read CRDs, and granting a right requires having it": {
		"list apiextensions.k8s.io/customresourcedefinitions", "watch apiextensions.k8s.io/customresourcedefinitions",
	},
	"asked by the API server itself when a Role is written or bound, which leaves no line": {
		"escalate rbac.authorization.k8s.io/roles", "bind rbac.authorization.k8s.io/roles",
	},
	"asked by admission policies, which leaves no line": {"administer hypershift.openshift.io/hostedclusters"},
	"asked by the API server itself when server-side apply creates": {
		"create /serviceaccounts", "create /services", "create apps/deployments", "create rbac.authorization.k8s.io/roles", "create rbac.authorization.k8s.io/rolebindings",
	},
	"metrics with readers, and granting a right requires having it": {
		"create authentication.k8s.io/tokenreviews", "create authorization.k8s.io/subjectaccessreviews",
	},
	"management clusters of OpenShift only": {
		"update hypershift.openshift.io/hostedclusters/finalizers", "update hypershift.openshift.io/hostedcontrolplanes/finalizers",
	},
	"a Prometheus operator, and platforms that monitor": {
		"get monitoring.coreos.com/servicemonitors", "create monitoring.coreos.com/servicemonitors", "patch monitoring.coreos.com/servicemonitors",
		"delete monitoring.coreos.com/servicemonitors", "get monitoring.coreos.com/podmonitors", "create monitoring.coreos.com/podmonitors",
		"patch monitoring.coreos.com/podmonitors", "delete monitoring.coreos.com/podmonitors", "bind rbac.authorization.k8s.io/clusterroles",
	},
	"what a user changes is restored": {
		"update /configmaps", "update /namespaces", "update /secrets", "update networking.k8s.io/networkpolicies", "update cluster.x-k8s.io/clusters",
		"update infrastructure.cluster.x-k8s.io/maasclusters", "update infrastructure.cluster.x-k8s.io/maasmachinetemplates",
		"patch infrastructure.cluster.x-k8s.io/maasmachines", "update hypershift.openshift.io/controlplanecomponents",
		"update rbac.authorization.k8s.io/roles", "update rbac.authorization.k8s.io/rolebindings",
		"update rbac.authorization.k8s.io/clusterroles", "update rbac.authorization.k8s.io/clusterrolebindings",
	},
	"what a user takes out, or another kind replaces": {
		"delete /configmaps", "delete apps/deployments", "delete networking.k8s.io/networkpolicies", "delete hypershift.openshift.io/controlplanecomponents",
		"delete rbac.authorization.k8s.io/roles", "delete rbac.authorization.k8s.io/rolebindings",
	},
	"a virtual IP that the management cluster's nodes may hold, when a HostedCluster names no address for its API": {"list apps/daemonsets"},
	"pools that repair themselves or are upgraded in place": {
		"create cluster.x-k8s.io/machinehealthchecks", "update cluster.x-k8s.io/machinehealthchecks", "delete cluster.x-k8s.io/machinehealthchecks",
		"patch cluster.x-k8s.io/machines/status", "create cluster.x-k8s.io/machinesets", "update cluster.x-k8s.io/machinesets",
	},
	"pauses": {
		"patch cluster.x-k8s.io/clusters", "patch cluster.x-k8s.io/machinedeployments", "patch cluster.x-k8s.io/machinesets",
		"patch cluster.x-k8s.io/machinehealthchecks", "patch hypershift.openshift.io/hostedcontrolplanes",
	},
	"a third-party provider that does not write all of the status": {
		"patch infrastructure.cluster.x-k8s.io/maasclusters/status", "patch infrastructure.cluster.x-k8s.io/maasmachines/status",
	},
	"a deletion that a user started, in another order": {
		"delete cluster.x-k8s.io/machines", "delete cluster.x-k8s.io/machinesets", "delete infrastructure.cluster.x-k8s.io/maasmachines",
		"delete hypershift.openshift.io/hostedcontrolplanes",
	},
	"caches know the kinds of the platforms beside MAAS by watching, and what is made of them is changed when a user changes his pool or his tags": {
		"get capi-provider.agent-install.openshift.io/agentclusters", "update capi-provider.agent-install.openshift.io/agentclusters",
		"get capi-provider.agent-install.openshift.io/agentmachines", "patch capi-provider.agent-install.openshift.io/agentmachines",
		"delete capi-provider.agent-install.openshift.io/agentmachines", "get capi-provider.agent-install.openshift.io/agentmachinetemplates",
		"update capi-provider.agent-install.openshift.io/agentmachinetemplates",
		"get infrastructure.cluster.x-k8s.io/kubevirtclusters", "update infrastructure.cluster.x-k8s.io/kubevirtclusters",
		"get infrastructure.cluster.x-k8s.io/kubevirtmachines", "patch infrastructure.cluster.x-k8s.io/kubevirtmachines",
		"delete infrastructure.cluster.x-k8s.io/kubevirtmachines", "get infrastructure.cluster.x-k8s.io/kubevirtmachinetemplates",
		"update infrastructure.cluster.x-k8s.io/kubevirtmachinetemplates",
		"get infrastructure.cluster.x-k8s.io/awsclusters", "update infrastructure.cluster.x-k8s.io/awsclusters",
		"get infrastructure.cluster.x-k8s.io/awsmachines", "patch infrastructure.cluster.x-k8s.io/awsmachines",
		"delete infrastructure.cluster.x-k8s.io/awsmachines", "get infrastructure.cluster.x-k8s.io/awsmachinetemplates",
		"update infrastructure.cluster.x-k8s.io/awsmachinetemplates",
	},
	"pools of KubeVirt whose disk image is kept": {
		"list cdi.kubevirt.io/datavolumes", "create cdi.kubevirt.io/datavolumes", "delete cdi.kubevirt.io/datavolumes",
	},
	"private clusters of AWS": {
		"get hypershift.openshift.io/awsendpointservices", "patch hypershift.openshift.io/awsendpointservices", "delete hypershift.openshift.io/awsendpointservices",
		"patch hypershift.openshift.io/awsendpointservices/status",
	},
	"the provider of agents takes agents, and granting a right requires having it": {
		"get agent-install.openshift.io/agents", "list agent-install.openshift.io/agents", "watch agent-install.openshift.io/agents",
		"patch agent-install.openshift.io/agents", "update agent-install.openshift.io/agents",
	},
	"a backup without a controller is refused in its status, and released when its control plane is gone": {
		"patch hypershift.openshift.io/hcpetcdbackups/status", "patch hypershift.openshift.io/hcpetcdbackups",
	},
	"the same leader twice is one event that counts to two": {"patch /events"},
}

// rights checks that the operator had every permission that the scenarios needed. If all of them ran, it also checks
// that the operator has no unneeded permission.
func (s *suite) rights(t *testing.T, complete bool) {
	t.Helper()
	g := NewWithT(t)
	asked, err := s.Asked("hypershift:operator")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(asked.Denied).To(BeEmpty(), "the operator lacks rights")
	if !complete {
		return
	}
	excused := []string{}
	for _, list := range unusedRights {
		excused = append(excused, list...)
	}
	given := append(rights.Operator(nil), rights.OperatorNamespace()...)
	unused := slices.DeleteFunc(asked.Unused(given), func(right string) bool { return slices.Contains(excused, right) })
	g.Expect(unused).To(BeEmpty(), "nobody uses these rights: take them away, or say why they stay")
}
