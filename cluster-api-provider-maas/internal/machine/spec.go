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

// systemID is that of the machine held. A user, or a backup, may have given a provider ID only.
func (s *scope) systemID() string {
	if id := deref(s.machine.Spec.SystemID); id != "" {
		return id
	}
	id, _ := maas.ParseProviderID(s.providerID())
	return id.SystemID
}

// formatProviderID is fixed when it is first written, and never made anew: a Node's provider ID can't be changed.
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

// identitySecret names the Secret of the MaasCluster; empty means that of the process.
func (s *scope) identitySecret() client.ObjectKey {
	if s.infra == nil || s.infra.Spec.IdentityRef == nil {
		return client.ObjectKey{}
	}
	return client.ObjectKey{Namespace: s.infra.Namespace, Name: s.infra.Spec.IdentityRef.Name}
}

// zone is where the machine must be: what the Machine says wins over what the MaasMachine says, which is its template's.
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

// timeout is what the MaasMachine says, else the provider's default.
func timeout(set *metav1.Duration, otherwise time.Duration) time.Duration {
	if set == nil || set.Duration <= 0 {
		return otherwise
	}
	return set.Duration
}

// releaseRequest says how disks are erased. Without an erase mode, MAAS's own settings decide.
func (s *scope) releaseRequest(why string) maas.ReleaseRequest {
	request := maas.ReleaseRequest{Comment: why}
	if erase := s.machine.Spec.Erase; erase != nil {
		request.QuickErase, request.SecureErase = erase.Mode == "Quick", erase.Mode == "Secure"
		request.Erase = erase.Mode != "None"
	}
	return request
}

// stage is how far the MaasMachine has come with the machine that it holds.
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

// retrying tells that the machine held is one on which a deployment failed, and that is being given back.
func (s *scope) retrying() bool {
	for _, f := range failuresOf(s.machine) {
		if f.SystemID == s.systemID() && !f.Released {
			return true
		}
	}
	return false
}

// settled tells that nothing is expected to change soon.
func (s *scope) settled() bool {
	return s.provisioned() && deref(s.machine.Status.MachineState) == maas.StatusDeployed.String() && s.machine.DeletionTimestamp.IsZero()
}
