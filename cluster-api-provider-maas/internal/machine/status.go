// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/guest"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/upsert"
)

// Condition types.
const (
	// ConditionReady summarises the other conditions; Cluster API mirrors it into InfrastructureReady of the Machine.
	ConditionReady = clusterv1.ReadyCondition
	// ConditionAllocated reports whether a machine is allocated to the MaasMachine.
	ConditionAllocated = infrav1.MachineAllocatedCondition
	// ConditionDeployed reports whether the machine runs its image.
	ConditionDeployed = infrav1.MachineDeployedCondition
	// ConditionNode reports whether the Node has the provider ID.
	ConditionNode = infrav1.NodeProviderIDSetCondition
	// ConditionStaticIP reports whether the machine has its static address. It is present only with spec.staticIP.
	ConditionStaticIP = infrav1.StaticIPAssignedCondition
	// ConditionOutstanding reports whether MAAS has released the machines on which a deployment failed. It is present only
	// when the release took long.
	ConditionOutstanding = infrav1.FailedMachinesReleasedCondition
	// ConditionDeleting is present while the machine is released.
	ConditionDeleting = clusterv1.DeletingCondition
)

// Reasons of NodeProviderIDSet.
const (
	ReasonNodeFound      = infrav1.NodeFoundReason
	ReasonWaitingForNode = infrav1.WaitingForNodeReason
	ReasonNodeTimedOut   = infrav1.NodeTimedOutReason
	ReasonNodeFailed     = infrav1.NodeProviderUpdateFailedReason
)

// findings holds the results of the phases of one reconcile.
type findings struct {
	// problem is the reason why the next step is not possible now.
	problem *Problem
	// outcome is the evaluation of the machine state; empty when it was not evaluated.
	outcome lifecycle.Outcome
	// ready reports whether the machine runs its image.
	ready bool
	// outstanding is the progress of the failed machines that are released in the background.
	outstanding []unreleased
	// host is the problem with the host of a running virtual machine; nil without a problem.
	host *Problem
	// node is the condition of the Node; nil when the Node was not checked.
	node *metav1.Condition
}

// report computes the status from the findings and writes it if it changed.
func (r *Reconciler) report(ctx context.Context, s *scope, _ error) error {
	if s.paused() {
		return r.writePaused(ctx, s)
	}
	before := s.machine.Status.DeepCopy()
	err := upsert.StatusLatest(ctx, r.Client, s.machine, func() { r.computeStatus(s) })
	if err != nil {
		return err
	}
	r.tell(s, before)
	return nil
}

func (r *Reconciler) computeStatus(s *scope) {
	status := &s.machine.Status
	wanted := []metav1.Condition{condition.False(clusterv1.PausedCondition, clusterv1.NotPausedReason, "")}
	if s.machine.DeletionTimestamp.IsZero() {
		wanted = append(wanted, r.conditions(s)...)
	} else {
		wanted = append(wanted, s.deletingConditions()...)
	}
	r.observeStatus(s)
	r.failure(s)
	now := metav1.NewTime(r.Clock.Now())
	for i := range wanted {
		wanted[i].LastTransitionTime = now
	}
	status.Conditions = condition.Merge(status.Conditions, s.machine.Generation, wanted...)
}

// conditions returns the conditions of a MaasMachine that is not deleted. While MAAS cannot be reached, the conditions
// of a running machine do not change.
func (r *Reconciler) conditions(s *scope) []metav1.Condition {
	allocated, deployed := r.allocatedCondition(s), s.deployedCondition()
	if s.provisioned() && s.findings.problem != nil && s.findings.outcome.Action == "" {
		return s.credentialsConditions()
	}
	ready := deployed
	if allocated.Status != metav1.ConditionTrue {
		ready = allocated
	}
	ready.Type = ConditionReady
	if ready.Status == metav1.ConditionTrue {
		ready.Reason = clusterv1.ReadyReason
	}
	wanted := append(s.credentialsConditions(), allocated, deployed, ready)
	if s.findings.node != nil {
		wanted = append(wanted, *s.findings.node)
	}
	if s.machine.Spec.StaticIP != nil {
		wanted = append(wanted, s.addressCondition())
	}
	if s.machine.Spec.IsLXD() {
		wanted = append(wanted, s.vmConditions(deployed)...)
	}
	if c := s.outstandingCondition(); c != nil {
		wanted = append(wanted, *c)
	}
	return wanted
}

func (r *Reconciler) allocatedCondition(s *scope) metav1.Condition {
	switch {
	case s.systemID() != "" && s.observed != nil:
		return condition.True(ConditionAllocated, ReasonAllocated, fmt.Sprintf("machine %s (%s)", s.observed.Hostname, s.observed.SystemID))
	case s.systemID() != "":
		return condition.True(ConditionAllocated, ReasonAllocated, fmt.Sprintf("machine %s", s.systemID()))
	case s.findings.problem != nil:
		return condition.False(ConditionAllocated, s.findings.problem.Reason, s.findings.problem.Message)
	}
	return condition.False(ConditionAllocated, ReasonAllocating, "a machine is being allocated")
}

func (s *scope) deployedCondition() metav1.Condition {
	f := s.findings
	switch {
	case f.ready:
		return condition.True(ConditionDeployed, lifecycle.ReasonDeployed, f.outcome.Message)
	case f.problem != nil && s.systemID() != "":
		return condition.False(ConditionDeployed, f.problem.Reason, f.problem.Message)
	case f.outcome.Reason == lifecycle.ReasonUndefined, f.outcome.Reason == lifecycle.ReasonNotFound:
		return condition.Unknown(ConditionDeployed, f.outcome.Reason, f.outcome.Message)
	case f.outcome.Action != "":
		return condition.False(ConditionDeployed, f.outcome.Reason, f.outcome.Message)
	}
	return condition.False(ConditionDeployed, ReasonAllocating, "a machine must be allocated first")
}

func (s *scope) deletingConditions() []metav1.Condition {
	reason, message := lifecycle.ReasonReleasing, "the machine is being released"
	switch {
	case s.findings.problem != nil:
		reason, message = s.findings.problem.Reason, s.findings.problem.Message
	case s.findings.outcome.Action != "":
		reason, message = s.findings.outcome.Reason, s.findings.outcome.Message
	}
	return append(s.credentialsConditions(),
		condition.True(ConditionDeleting, reason, message),
		condition.False(ConditionReady, reason, message))
}

// excluded returns the recently failed machines that are not tried again, at most maxExcluded.
func (r *Reconciler) excluded(failures []failure) []string {
	var ids []string
	for _, f := range failures {
		if !slices.Contains(ids, f.SystemID) && r.Clock.Since(f.At) < r.Timing.SetAside && len(ids) < maxExcluded {
			ids = append(ids, f.SystemID)
		}
	}
	return ids
}

// observeStatus copies the observed state of MAAS to the status. The last known values stay while MAAS cannot be
// reached.
func (r *Reconciler) observeStatus(s *scope) {
	status := &s.machine.Status
	failures := failuresOf(s.machine)
	status.Attempts = int32(len(failures)) //nolint:gosec // a handful
	status.ExcludedSystemIDs = r.excluded(failures)
	s.observeVM(status)
	state := ""
	switch {
	case s.observed != nil:
		state = lifecycle.StateName(s.observed)
		status.Hostname, status.Zone, status.FailureDomain = &s.observed.Hostname, s.observed.Zone.Name, &s.observed.Zone.Name
		status.MachinePowered = s.observed.PowerState == maas.PowerOn
		status.Addresses = addresses(s.observed)
	case s.systemID() == "", s.findings.outcome.Reason == lifecycle.ReasonNotFound:
		status.Hostname, status.Zone, status.FailureDomain, status.MachinePowered, status.Addresses = nil, "", nil, false, nil
	default:
		state = deref(status.MachineState)
	}
	if s.seen.state != state || status.StateSince == nil || s.seen.since.IsZero() && state != deref(status.MachineState) {
		now := metav1.NewTime(r.Clock.Now())
		status.StateSince = &now
	}
	status.MachineState = nil
	if state != "" {
		status.MachineState = &state
	}
	if s.findings.problem == nil || s.findings.outcome.Action != "" {
		status.Ready = s.findings.ready
	}
	if s.findings.ready {
		provisioned := true
		status.Initialization.Provisioned = &provisioned
	}
}

// failure sets the failure fields of the older Cluster API contract. It clears them when the machine recovers.
func (r *Reconciler) failure(s *scope) {
	if s.findings.outcome.Action == "" {
		return
	}
	s.machine.Status.FailureReason, s.machine.Status.FailureMessage = nil, nil
	if s.findings.outcome.Action.Terminal() {
		reason, message := "UpdateError", s.findings.outcome.Message
		if !s.provisioned() {
			reason = "CreateError"
		}
		s.machine.Status.FailureReason, s.machine.Status.FailureMessage = &reason, &message
	}
}

// noticedLoss reports whether an earlier reconcile found that the machine was lost.
func noticedLoss(m *infrav1.MaasMachine) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, ConditionDeployed)
	return c != nil && slices.Contains([]string{lifecycle.ReasonTerminated, lifecycle.ReasonNotFound, lifecycle.ReasonTakenOver, lifecycle.ReasonBroken}, c.Reason)
}

// since returns when a condition took its current status. Without the condition it returns the creation time of the
// MaasMachine.
func (s *scope) since(conditionType string) time.Time {
	if c := meta.FindStatusCondition(s.machine.Status.Conditions, conditionType); c != nil {
		return c.LastTransitionTime.Time
	}
	return s.machine.CreationTimestamp.Time
}

// tell emits an event when the reason of Ready changes, and none while the reason stays the same.
func (r *Reconciler) tell(s *scope, before *infrav1.MaasMachineStatus) {
	was, is := meta.FindStatusCondition(before.Conditions, ConditionReady), meta.FindStatusCondition(s.machine.Status.Conditions, ConditionReady)
	if is == nil || was != nil && was.Reason == is.Reason {
		return
	}
	quiet := []string{ReasonWaitingForInfrastructure, ReasonWaitingForBootstrapData, ReasonAllocating, ReasonVMCommissioning, lifecycle.ReasonDeploying,
		lifecycle.ReasonReleasing}
	switch {
	case is.Status == metav1.ConditionTrue:
		r.normal(s, lifecycle.ReasonDeployed, is.Message)
	case !slices.Contains(quiet, is.Reason):
		r.warn(s, is.Reason, is.Message)
	}
}

// maxAddresses is the maximum number of addresses that the API accepts in a MaasMachine; Cluster API has the same limit
// for a Machine.
const maxAddresses = 128

// maxExcluded is the maximum number of failed machines that the API accepts.
const maxExcluded = 20

// addresses returns the addresses of a machine. The host name and the DNS names are in lower case, as kubelets write
// them. Every IP is listed as internal and as external, since MAAS does not distinguish them. If there are more than
// maxAddresses, the first ones are listed, and names come before IPs.
func addresses(m *maas.Machine) []infrav1.MachineAddress {
	var all []infrav1.MachineAddress
	add := func(kind infrav1.MachineAddressType, address string) {
		next := infrav1.MachineAddress{Type: kind, Address: address}
		if address != "" && !slices.Contains(all, next) && len(all) < maxAddresses {
			all = append(all, next)
		}
	}
	hostname, fqdn := strings.ToLower(m.Hostname), strings.ToLower(m.FQDN)
	add(infrav1.MachineHostname, hostname)
	add(infrav1.MachineInternalDNS, fqdn)
	add(infrav1.MachineInternalDNS, hostname)
	add(infrav1.MachineExternalDNS, fqdn)
	for _, ip := range m.IPAddresses {
		add(infrav1.MachineInternalIP, ip)
		add(infrav1.MachineExternalIP, ip)
	}
	return all
}

// nodeNames returns the names under which the kubelet of the machine may register.
func nodeNames(m *maas.Machine) []string {
	return []string{strings.ToLower(m.Hostname), strings.ToLower(m.FQDN)}
}

func nodeFound() *metav1.Condition {
	c := condition.True(ConditionNode, ReasonNodeFound, "")
	return &c
}

// nodeCondition reports whether the Node was found, and whether the search exceeds its timeout.
func (r *Reconciler) nodeCondition(s *scope, err error) *metav1.Condition {
	name := strings.ToLower(s.observed.Hostname)
	limit := timeout(s.machine.Spec.Timeouts.Boot, r.Timing.Boot) + timeout(s.machine.Spec.Timeouts.Join, r.Timing.Join)
	late := condition.IsTrue(s.machine.Status.Conditions, ConditionDeployed) && r.Clock.Since(s.since(ConditionDeployed)) > limit
	var c metav1.Condition
	switch {
	case err == nil:
		return nodeFound()
	case errors.Is(err, guest.ErrNoNode) && late:
		c = condition.False(ConditionNode, ReasonNodeTimedOut, fmt.Sprintf(
			"no Node named %s has registered within %s of the deployment: check the machine's console, and whether it reaches the ignition-server and the API", name, limit))
	case errors.Is(err, guest.ErrNoNode):
		c = condition.False(ConditionNode, ReasonWaitingForNode, fmt.Sprintf("no Node named %s has registered yet", name))
	default:
		c = condition.False(ConditionNode, ReasonNodeFailed, err.Error())
	}
	return &c
}

// writePaused sets the Paused condition to true.
func (r *Reconciler) writePaused(ctx context.Context, s *scope) error {
	return upsert.Status(ctx, r.Client, s.machine, func() {
		paused := condition.True(clusterv1.PausedCondition, clusterv1.PausedReason, "the Cluster or this MaasMachine is paused")
		paused.LastTransitionTime = metav1.NewTime(r.Clock.Now())
		s.machine.Status.Conditions = condition.Merge(s.machine.Status.Conditions, s.machine.Generation, paused)
	})
}
