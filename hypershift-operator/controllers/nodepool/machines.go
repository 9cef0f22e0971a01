// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/condition"
)

// Maximum lengths of a condition message about many machines, in bytes.
const (
	maxBucketMessage = 1000
	maxMessage       = 3000
)

// reportMachines summarizes the pool's machines. The platform's message about a failing machine comes first, since it
// says what to do. It is reported as soon as the provider writes it.
func (r *Reconciler) reportMachines(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	if err := r.observeInfra(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	s.reportTroubles()
	s.countMachines()
	return ctrl.Result{}, nil
}

func (s *reconciliation) reportTroubles() {
	ready, healthy := hyperv1.NodePoolAllMachinesReadyConditionType, hyperv1.NodePoolAllNodesHealthyConditionType
	staying := slices.DeleteFunc(slices.Clone(s.Machines), func(m *clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() })
	if len(staying) == 0 {
		s.SetFalse(ready, hyperv1.NodePoolNotFoundReason, "There are no machines")
		s.SetFalse(healthy, hyperv1.NodePoolNotFoundReason, "There are no machines")
		return
	}
	troubles := buckets{}
	unhealthy := buckets{}
	for _, machine := range staying {
		if reason, message := s.machineTrouble(machine, s.Infra[machine.Spec.InfrastructureRef.Name]); reason != "" {
			troubles.add(reason, machine.Name, message)
		}
		if reason, message := notTrue(machine, clusterv1.MachineNodeHealthyCondition, "WaitingForNode"); reason != "" {
			unhealthy.add(reason, machine.Name, message)
		}
	}
	s.SetCondition(troubles.condition(ready))
	s.SetCondition(unhealthy.condition(healthy))
	s.reportInfra(staying)
}

// reportInfra sets the conditions that only the platform can determine from its machines.
func (s *reconciliation) reportInfra(machines []*clusterv1.Machine) {
	reporter, ok := s.Platform.(platform.MachineReporter)
	if !ok {
		return
	}
	var infra []client.Object
	for _, machine := range machines {
		if obj := s.Infra[machine.Spec.InfrastructureRef.Name]; obj != nil {
			infra = append(infra, obj)
		}
	}
	if len(infra) == 0 {
		return
	}
	for _, c := range reporter.MachineConditions(infra) {
		s.SetCondition(c)
	}
}

// observeInfra lists the platform's objects behind the machines, if there are machines.
func (r *Reconciler) observeInfra(ctx context.Context, s *reconciliation) error {
	if len(s.Machines) == 0 {
		return nil
	}
	infra, err := r.infraMachines(ctx, s)
	s.Infra = infra
	return err
}

// countMachines counts the available machines in every reconcile, so that a reconcile that stops early does not leave
// an old number. The number that the autoscaler sets is not known yet.
func (s *reconciliation) countMachines() {
	if s.Platform.MachineTemplates() == nil {
		return
	}
	s.replicas = ptr.To(available(s.Machines))
	s.reportReady(replicas(s.Pool, nil), nil, clusterv1.AvailableCondition)
}

// infraMachines returns the platform's objects behind the machines, by name.
func (r *Reconciler) infraMachines(ctx context.Context, s *reconciliation) (map[string]client.Object, error) {
	list := s.Platform.Machines()
	if list == nil {
		return nil, nil
	}
	if err := r.Client.List(ctx, list, client.InNamespace(s.Namespace())); err != nil {
		return nil, fmt.Errorf("listing the platform's machines in namespace %s: %w", s.Namespace(), err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, fmt.Errorf("reading the list of the platform's machines: %w", err)
	}
	machines := map[string]client.Object{}
	for _, item := range items {
		if obj, ok := item.(client.Object); ok {
			machines[obj.GetName()] = obj
		}
	}
	return machines, nil
}

// machineTrouble returns the reason why a machine is not ready; empty if it is ready.
func (s *reconciliation) machineTrouble(machine *clusterv1.Machine, infra client.Object) (reason, message string) {
	reason, message = notTrue(machine, clusterv1.MachineReadyCondition, "WaitingForMachine")
	if reason == "" || infra == nil {
		return reason, message
	}
	if infraReason, infraMessage := s.Platform.MachineProblem(infra); infraReason != "" {
		return infraReason, infraMessage
	}
	return reason, message
}

func notTrue(machine *clusterv1.Machine, conditionType, otherwise string) (reason, message string) {
	c := meta.FindStatusCondition(machine.Status.Conditions, conditionType)
	if c == nil {
		return otherwise, "Cluster API has not checked the machine yet"
	}
	if c.Status == metav1.ConditionTrue {
		return "", ""
	}
	return cmp.Or(c.Reason, otherwise), c.Message
}

// buckets group messages by reason.
type buckets map[string][]string

func (b buckets) add(reason, machine, message string) {
	b[reason] = append(b[reason], fmt.Sprintf("Machine %s: %s", machine, cmp.Or(message, reason)))
}

func (b buckets) condition(conditionType string) metav1.Condition {
	if len(b) == 0 {
		return condition.True(conditionType, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)
	}
	reasons := slices.Sorted(maps.Keys(b))
	var messages []string
	for _, reason := range reasons {
		slices.Sort(b[reason])
		messages = append(messages, condition.Shorten(strings.Join(b[reason], "\n"), maxBucketMessage))
	}
	return condition.False(conditionType, strings.Join(reasons, ","), condition.Shorten(strings.Join(messages, "\n"), maxMessage))
}

// nodesInfo counts the pool's nodes by their release and kubelet versions.
func nodesInfo(machines []*clusterv1.Machine, releaseVersion string) *hyperv1.NodePoolNodesInfo {
	type versions struct{ release, kubelet string }
	ready, unready := map[versions]int32{}, map[versions]int32{}
	for _, machine := range machines {
		if !machine.Status.NodeRef.IsDefined() || machine.Status.NodeInfo == nil {
			continue
		}
		v := versions{cmp.Or(machine.Annotations[hyperv1.NodePoolReleaseVersionAnnotation], machine.Spec.Version, releaseVersion), machine.Status.NodeInfo.KubeletVersion}
		if condition.IsTrue(machine.Status.Conditions, clusterv1.MachineNodeHealthyCondition) {
			ready[v]++
		} else {
			unready[v]++
		}
	}
	info := &hyperv1.NodePoolNodesInfo{}
	all := maps.Clone(ready)
	maps.Copy(all, unready)
	for v := range all {
		info.NodeVersions = append(info.NodeVersions, hyperv1.NodeVersion{
			OCPVersion: v.release, KubeletVersion: v.kubelet,
			ReadyNodeCount: ptr.To(ready[v]), UnreadyNodeCount: ptr.To(unready[v]),
		})
	}
	if len(info.NodeVersions) == 0 {
		return nil
	}
	slices.SortFunc(info.NodeVersions, func(a, b hyperv1.NodeVersion) int {
		return strings.Compare(a.OCPVersion+" "+a.KubeletVersion, b.OCPVersion+" "+b.KubeletVersion)
	})
	return info
}
