// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/staticip"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
)

// AddressAnnotation holds, as JSON, the static address of a MaasMachine. It is written before the address is requested
// from MAAS. After a crash the address stays, and no sibling uses it.
const AddressAnnotation = "infrastructure.cluster.x-k8s.io/static-ip"

// address is the content of the annotation.
type address struct {
	IP string `json:"ip"`
	// SystemID is the machine that the address was requested for; empty before that request.
	SystemID string `json:"systemID,omitempty"`
	// Replaced is the mode of the link that was removed for the address: auto or dhcp. It is restored when the address is
	// unassigned; empty when there was none.
	Replaced string `json:"replaced,omitempty"`
}

// addressOf reads the annotation. An invalid annotation counts as empty.
func addressOf(m *infrav1.MaasMachine) address {
	var a address
	if json.Unmarshal([]byte(m.Annotations[AddressAnnotation]), &a) != nil {
		return address{}
	}
	return a
}

// setAddress writes the annotation; the zero address removes it.
func setAddress(m *infrav1.MaasMachine, a address) error {
	if a == (address{}) {
		delete(m.Annotations, AddressAnnotation)
		return nil
	}
	text, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encoding the static address of MaasMachine %s: %w", client.ObjectKeyFromObject(m), err)
	}
	annotate(m, AddressAnnotation, string(text))
	return nil
}

func (r *Reconciler) keepAddress(ctx context.Context, s *scope, a address) error {
	return r.write(ctx, s, func() error { return setAddress(s.machine, a) })
}

// Reasons of StaticIPAssigned.
const (
	ReasonStaticIPAssigned = infrav1.StaticIPAssignedReason
	ReasonStaticIPPending  = infrav1.StaticIPPendingReason
	ReasonStaticIPTooLate  = infrav1.MachineDeployedBeforeReason
)

// addressCondition reports the address of the machine, or why it has none.
func (s *scope) addressCondition() metav1.Condition {
	ip := addressOf(s.machine).IP
	if s.observed != nil && ip != "" {
		if nic, link := staticip.Find(s.observed, ip); link != nil {
			return condition.True(ConditionStaticIP, ReasonStaticIPAssigned, fmt.Sprintf("%s on %s", ip, nic.Name))
		}
	}
	switch {
	case s.findings.ready:
		return condition.False(ConditionStaticIP, ReasonStaticIPTooLate, "the machine was deployed without its static address, and MAAS cannot change "+
			"links of a deployed machine: staticIP has no effect until the machine is replaced")
	case s.findings.problem != nil:
		return condition.False(ConditionStaticIP, s.findings.problem.Reason, s.findings.problem.Message)
	case ip != "":
		return condition.False(ConditionStaticIP, ReasonStaticIPPending, ip+" is not yet assigned to a machine")
	}
	return condition.False(ConditionStaticIP, ReasonStaticIPPending, "no address is chosen yet")
}

// siblings returns the other MaasMachines of the namespace. They are shared with the cache, so callers must not change
// them.
func (r *Reconciler) siblings(ctx context.Context, s *scope) ([]infrav1.MaasMachine, error) {
	list := &infrav1.MaasMachineList{}
	// The copy is avoided: there may be a thousand objects, and few fields are read.
	if err := r.Client.List(ctx, list, client.InNamespace(s.machine.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the MaasMachines of namespace %s: %w", s.machine.Namespace, err)
	}
	others := make([]infrav1.MaasMachine, 0, len(list.Items))
	for i := range list.Items {
		if list.Items[i].UID != s.machine.UID {
			others = append(others, list.Items[i])
		}
	}
	return others, nil
}

// ensureAddress records an address for the MaasMachine and finds its subnet in MAAS. It reports problems before a
// machine is allocated, since another machine would not fix them.
func (r *Reconciler) ensureAddress(ctx context.Context, s *scope) (ctrl.Result, error) {
	spec := s.machine.Spec.StaticIP
	if spec == nil || s.subnet != nil {
		return ctrl.Result{}, nil
	}
	subnets, err := s.identity.Inventory.Subnets(ctx)
	if err != nil {
		return r.problem(ctx, s, err)
	}
	subnet, refusal := staticip.Subnet(spec, subnets)
	if refusal != nil {
		return r.stop(s, refusal.Reason, refusal.Message)
	}
	if addressOf(s.machine).IP == "" {
		if result, err := r.pick(ctx, s, subnet); err != nil {
			return result, err
		}
	}
	s.subnet = subnet
	return ctrl.Result{}, nil
}

// pick chooses an address that neither MAAS nor a sibling uses, and records it. It reads MAAS before it takes the
// lock: a slow MAAS must not block MaasMachines that use another MAAS.
func (r *Reconciler) pick(ctx context.Context, s *scope, subnet *maas.Subnet) (ctrl.Result, error) {
	held, err := s.identity.Inventory.HeldAddresses(ctx, subnet.ID)
	if err != nil {
		return r.problem(ctx, s, err)
	}
	ranges, err := s.identity.Inventory.AddressRanges(ctx)
	if err != nil {
		return r.problem(ctx, s, err)
	}
	ip, refusal, err := r.choice(ctx, s, subnet, staticip.NewTaken(subnet, held, ranges, s.systemID()))
	if err != nil {
		return ctrl.Result{}, err
	}
	if refusal != nil {
		return r.stop(s, refusal.Reason, refusal.Message)
	}
	return ctrl.Result{}, r.keepAddress(ctx, s, address{IP: ip})
}

// choice chooses the address under a lock, so that no two siblings choose the same one.
func (r *Reconciler) choice(ctx context.Context, s *scope, subnet *maas.Subnet, taken *staticip.Taken) (string, *staticip.Refusal, error) {
	r.claims.mu.Lock()
	defer r.claims.mu.Unlock()
	siblings, err := r.siblings(ctx, s)
	if err != nil {
		return "", nil, err
	}
	chosen := r.claims.of(s.machine, siblings)
	if s.observed != nil {
		// A machine keeps an address that the spec permits but that is not recorded.
		if own := staticip.Own(s.observed, s.machine.Spec.StaticIP); own != "" {
			chosen[s.machine.UID] = own
			return own, nil, nil
		}
	}
	for i := range siblings {
		who := fmt.Sprintf("MaasMachine %s of this cluster", siblings[i].Name)
		taken.Add(addressOf(&siblings[i]).IP, who)
		taken.Add(chosen[siblings[i].UID], who)
	}
	if s.machine.Spec.StaticIP.Range != nil {
		r.claims.addRefused(s.machine.Namespace, taken, r.Clock.Now())
	}
	ip, refusal := staticip.Pick(s.machine.Spec.StaticIP, subnet, taken)
	if refusal == nil {
		chosen[s.machine.UID] = ip
	}
	return ip, refusal, nil
}
