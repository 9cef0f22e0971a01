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

// AddressAnnotation holds, as JSON, the static address of a MaasMachine. It is written before MAAS is asked for the address, so
// that it is kept by whoever comes after a crash, and no sibling takes it.
const AddressAnnotation = "infrastructure.cluster.x-k8s.io/static-ip"

// address is what the annotation holds.
type address struct {
	IP string `json:"ip"`
	// SystemID is the machine that MAAS was asked to give the address; empty before that.
	SystemID string `json:"systemID,omitempty"`
	// Replaced is the mode of the link that made room for the address and comes back when it is given back: auto or dhcp;
	// empty when there was none.
	Replaced string `json:"replaced,omitempty"`
}

// addressOf reads the annotation; one that a person broke counts as none.
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
	ReasonStaticIPAssigned = "StaticIPAssigned"
	ReasonStaticIPPending  = "StaticIPPending"
	ReasonStaticIPTooLate  = "MachineDeployedBefore"
)

// addressCondition tells which address the machine has, or why it has none.
func (s *scope) addressCondition() metav1.Condition {
	ip := addressOf(s.machine).IP
	if s.observed != nil && ip != "" {
		if nic, link := staticip.Find(s.observed, ip); link != nil {
			return condition.True(ConditionStaticIP, ReasonStaticIPAssigned, fmt.Sprintf("%s on %s", ip, nic.Name))
		}
	}
	switch {
	case s.findings.ready:
		return condition.False(ConditionStaticIP, ReasonStaticIPTooLate, "the machine was deployed without its static address, and MAAS changes "+
			"no link of a machine that runs: staticIP has no effect until the machine is replaced")
	case s.findings.problem != nil:
		return condition.False(ConditionStaticIP, s.findings.problem.Reason, s.findings.problem.Message)
	case ip != "":
		return condition.False(ConditionStaticIP, ReasonStaticIPPending, ip+" is to be given to a machine")
	}
	return condition.False(ConditionStaticIP, ReasonStaticIPPending, "an address is to be chosen")
}

// siblings are the MaasMachines of the namespace but this one. They are shared with the cache: nobody may change them.
func (r *Reconciler) siblings(ctx context.Context, s *scope) ([]infrav1.MaasMachine, error) {
	list := &infrav1.MaasMachineList{}
	// Little is read of what may be a thousand objects.
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

// ensureAddress makes sure that the MaasMachine has an address written down and that MAAS has the subnet for it. What is wrong with
// either is told before a machine is taken, since no machine would mend it.
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

// pick chooses an address that neither MAAS nor a sibling has, and writes it down. MAAS is asked first: one that does not answer
// must not keep those waiting who pick addresses of another.
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

// choice is made one after the other, so that no two siblings choose the same address.
func (r *Reconciler) choice(ctx context.Context, s *scope, subnet *maas.Subnet, taken *staticip.Taken) (string, *staticip.Refusal, error) {
	r.claims.mu.Lock()
	defer r.claims.mu.Unlock()
	siblings, err := r.siblings(ctx, s)
	if err != nil {
		return "", nil, err
	}
	chosen := r.claims.of(s.machine, siblings)
	if s.observed != nil {
		// A machine may carry an address that the spec allows and that nobody wrote down: it keeps it.
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
