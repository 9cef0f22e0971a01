// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/placement"
	"github.com/openshift/hypershift/support/maas"
)

func deref[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

func (s *scope) uid() string        { return AllocationUID(s.machine) }
func (s *scope) key() string        { return maas.AllocationKey(s.uid()) }
func (s *scope) providerID() string { return deref(s.machine.Spec.ProviderID) }

// systemID returns the system ID of the allocated machine. A user or a backup may have set only the provider ID.
func (s *scope) systemID() string {
	if id := deref(s.machine.Spec.SystemID); id != "" {
		return id
	}
	id, _ := maas.ParseProviderID(s.providerID())
	return id.SystemID
}

// formatProviderID returns the provider ID for a machine. Once written it is never changed, since the provider ID of a
// Node is immutable.
func formatProviderID(spec infrav1.MaasMachineSpec, m *maas.Machine) string {
	id := maas.ProviderID{Zone: m.Zone.Name, SystemID: m.SystemID, LXD: spec.ProvisioningMode == infrav1.ProvisioningModeLXD}
	return id.String()
}

func (s *scope) provisioned() bool {
	return deref(s.machine.Status.Initialization.Provisioned)
}

func (s *scope) bootstrapSecret() string {
	if s.owner == nil {
		return ""
	}
	return deref(s.owner.Spec.Bootstrap.DataSecretName)
}

// identitySecret returns the credentials Secret of the MaasCluster; empty means the default credentials of the process.
func (s *scope) identitySecret() client.ObjectKey {
	if s.infra == nil || s.infra.Spec.IdentityRef == nil {
		return client.ObjectKey{}
	}
	return client.ObjectKey{Namespace: s.infra.Namespace, Name: s.infra.Spec.IdentityRef.Name}
}

// zone returns the zone in which the machine must be. The Machine takes precedence over the MaasMachine, whose value
// comes from its template.
func (s *scope) zone() string {
	if zone := s.owner.Spec.FailureDomain; zone != "" {
		return zone
	}
	return deref(s.machine.Spec.FailureDomain)
}

func (r *Reconciler) request(ctx context.Context, s *scope) (placement.Request, error) {
	zones, err := r.zones(ctx, s)
	request := placement.Of(s.machine.Spec)
	request.Zones, request.Subnet = zones, s.subnet
	return request, err
}

// timeout returns the timeout in the MaasMachine, else the default of the provider.
func timeout(set *metav1.Duration, otherwise time.Duration) time.Duration {
	if set == nil || set.Duration <= 0 {
		return otherwise
	}
	return set.Duration
}

// releaseRequest returns the request with the options to erase the disks of a machine.
func (s *scope) releaseRequest(m *maas.Machine, why string) maas.ReleaseRequest {
	if !s.installed(m) {
		return ReleaseRequest("", why)
	}
	return ReleaseRequest(s.eraseMode(), why)
}

// ReleaseRequest returns the request with the options of an erase mode. Without an erase mode, the settings of MAAS
// apply.
func ReleaseRequest(mode, why string) maas.ReleaseRequest {
	erase := mode != "" && mode != "None"
	return maas.ReleaseRequest{Comment: why, Erase: erase, QuickErase: mode == "Quick", SecureErase: mode == "Secure"}
}

// eraseMode returns the erase mode of the spec; empty if it has none.
func (s *scope) eraseMode() string {
	if s.machine.Spec.Erase == nil {
		return ""
	}
	return s.machine.Spec.Erase.Mode
}

// installed reports whether MAAS may have begun to install the machine for this MaasMachine. If not, there is nothing
// to erase. An erasure starts the machine, and MAAS rejects it while no rack controller is connected.
func (s *scope) installed(m *maas.Machine) bool {
	for _, f := range failuresOf(s.machine) {
		if f.SystemID == m.SystemID && f.Reason != ReasonNotDeployable && f.Reason != ReasonInterfaceNotFound {
			return true
		}
	}
	return lifecycle.Installed(m) || m.SystemID == s.systemID() && (s.provisioned() || s.stage() == lifecycle.Installing)
}

// stage returns the lifecycle stage of the MaasMachine and its machine.
func (s *scope) stage() lifecycle.Stage {
	switch {
	case s.retrying():
		return lifecycle.Leaving
	case s.provisioned():
		return lifecycle.Provisioned
	case s.seen.state == maas.StatusDeploying.String():
		return lifecycle.Installing
	}
	return lifecycle.Acquired
}

// retrying reports whether a deployment failed on the allocated machine, and the machine is being released.
func (s *scope) retrying() bool {
	for _, f := range failuresOf(s.machine) {
		if f.SystemID == s.systemID() && !f.Released {
			return true
		}
	}
	return false
}

// settled reports whether no change is expected soon.
func (s *scope) settled() bool {
	return s.provisioned() && deref(s.machine.Status.MachineState) == maas.StatusDeployed.String() && s.machine.DeletionTimestamp.IsZero()
}
