// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/config"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/release"
)

// reconciliation is the scope of one reconcile, and what its phases hand to later ones. Each field's comment names the
// phase that sets it.
type reconciliation struct {
	*scope.Scope

	// refused is why the control plane namespace is not this cluster's; empty if it is, or if it does not exist. Set by
	// observe.
	refused string

	// The release image phase sets these fields. hcp is nil while there is no control plane. access contains the
	// credentials, CAs, and mirrors to read payloads with. pullSecret is the content of the pull secret.
	// controlPlaneVersion is the maximum version of nodes, empty while there is none.
	hcp                 *hyperv1.HostedControlPlane
	access              release.Access
	pullSecret          []byte
	controlPlaneVersion string
	// ignitionCA is PEM. The ignition endpoint phase sets it.
	ignitionCA []byte
	// config is the configuration of the nodes. The node configuration phase sets it.
	config config.Config
	// formerAPIProxy replaces the first document for machines that 0.1.0 configured; empty if both are the same.
	formerAPIProxy string
	// userData is the name of the current user-data Secret. The token phase sets it.
	userData string
	// replicas is the number of available machines of the pool. The machines phase sets it.
	replicas *int32
	// capacity is the capacity of the next machine. The phase of the Cluster API machines sets it together with the
	// template.
	capacity platform.MachineCapacity
	// version is the version that all machines have reached; empty until then. The phase of the Cluster API machines sets
	// it.
	version string
}

func newReconciliation(pool *hyperv1.NodePool) *reconciliation {
	return &reconciliation{Scope: scope.New(pool)}
}
