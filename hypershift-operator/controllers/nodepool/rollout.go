// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
)

// reportUpdating reports whether nodes still need an update of the release or configuration. It compares the desired
// state with the existing machines, and with the annotations that record the last completed update. It does not use
// Cluster API's totals, because they lag behind a change of its objects. set is the MachineSet of a pool that is
// updated in place, whose annotations contain more details; nil for other pools.
func (s *reconciliation) reportUpdating(set *clusterv1.MachineSet) {
	release, config := s.outdated()
	s.updating(hyperv1.NodePoolUpdatingConfigConditionType,
		s.Pool.Annotations[hyperv1.NodePoolCurrentConfigAnnotation] != s.config.HashWithoutVersion || config > 0,
		fmt.Sprintf("Updating nodes to configuration %s%s", s.config.HashWithoutVersion, s.stillOld(config)))
	s.updating(hyperv1.NodePoolUpdatingVersionConditionType,
		s.Pool.Status.Version != s.Release.Version() || s.otherRelease() || release > 0,
		fmt.Sprintf("Updating nodes to version %s%s", s.Release.Version(), s.stillOld(release)))
	if set != nil {
		s.reportInPlace(set)
	}
}

func (s *reconciliation) stillOld(machines int) string {
	if machines == 0 {
		return ""
	}
	return fmt.Sprintf(": %d of %d machines are to be replaced", machines, len(s.Machines))
}

// outdated counts the machines of a release other than the desired one, and the machines of the desired release with an
// outdated configuration. It returns zero for machines that are updated in place: they keep the user-data that they
// were created with, so their set reports their progress.
func (s *reconciliation) outdated() (release, config int) {
	if s.InPlace() {
		return 0, 0
	}
	for _, machine := range s.Machines {
		switch {
		case s.isConfigured(machine):
		case s.otherRelease() || madeForVersion(machine) != s.Release.Version():
			release++
		default:
			config++
		}
	}
	return release, config
}

// isConfigured reports whether a machine was installed with the desired release and configuration. The name of its
// user-data Secret contains the hash of both.
func (s *reconciliation) isConfigured(machine *clusterv1.Machine) bool {
	return ptr.Equal(machine.Spec.Bootstrap.DataSecretName, &s.Secret(scope.UserDataPrefix, s.config.Hash).Name)
}

func madeForVersion(machine *clusterv1.Machine) string {
	return cmp.Or(machine.Annotations[hyperv1.NodePoolReleaseVersionAnnotation], machine.Spec.Version)
}

// isMadeAfter reports whether a machine was created from the given template. Cluster API records the template in an
// annotation on the platform's object. Without that annotation, isMadeAfter returns true.
func (s *reconciliation) isMadeAfter(machine *clusterv1.Machine, template string) bool {
	infra := s.Infra[machine.Spec.InfrastructureRef.Name]
	if infra == nil {
		return true
	}
	after, noted := infra.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation]
	return !noted || after == template
}

// isRolledOut reports whether every machine is as desired, including machines that are being deleted, and enough
// machines are available.
func (s *reconciliation) isRolledOut(template string, wanted *int32) bool {
	for _, machine := range s.Machines {
		if !s.isConfigured(machine) || !s.isMadeAfter(machine, template) {
			return false
		}
	}
	return (s.Infra != nil || len(s.Machines) == 0) && available(s.Machines) >= ptr.Deref(wanted, 0)
}

func (s *reconciliation) updating(conditionType string, is bool, message string) {
	if is {
		s.SetTrue(conditionType, message)
		return
	}
	s.SetFalse(conditionType, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)
}

// reportTemplate reports whether machines must be replaced because their template changed.
func (s *reconciliation) reportTemplate(template string) {
	last := s.Pool.Annotations[hyperv1.NodePoolPlatformMachineTemplateAnnotation]
	other := slices.ContainsFunc(s.Machines, func(m *clusterv1.Machine) bool { return !s.isMadeAfter(m, template) })
	s.updating(hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType,
		other || last != "" && last != template, fmt.Sprintf("Replacing machines by those of template %s", template))
}

// reportRolledOut reports that all machines are as desired.
func (s *reconciliation) reportRolledOut() {
	for _, conditionType := range []string{
		hyperv1.NodePoolUpdatingConfigConditionType, hyperv1.NodePoolUpdatingVersionConditionType,
		hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType,
	} {
		s.updating(conditionType, false, "")
	}
}

// available counts the machines that are available and not being deleted.
func available(machines []*clusterv1.Machine) int32 {
	count := int32(0)
	for _, machine := range machines {
		if machine.DeletionTimestamp.IsZero() && serves(machine) {
			count++
		}
	}
	return count
}

// serves reports whether a machine's node is available. An older Cluster API sets only the v1beta1 conditions.
func serves(machine *clusterv1.Machine) bool {
	if c := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineAvailableCondition); c != nil {
		return c.Status == metav1.ConditionTrue
	}
	older := machine.GetV1Beta1Conditions()
	//nolint:staticcheck // the type of the older ones
	return machine.Status.NodeRef.IsDefined() && slices.ContainsFunc(older, func(c clusterv1.Condition) bool {
		return c.Type == clusterv1.ReadyV1Beta1Condition && c.Status == corev1.ConditionTrue
	})
}

func (s *reconciliation) observeDeployment(md *clusterv1.MachineDeployment) {
	s.reportReady(md.Spec.Replicas, md.Status.Conditions, clusterv1.MachineDeploymentAvailableCondition)
}

func (s *reconciliation) observeMachineSet(ms *clusterv1.MachineSet) {
	s.reportReady(ms.Spec.Replicas, ms.Status.Conditions, clusterv1.MachineSetMachinesReadyCondition)
}

// reportReady reports whether the pool has its desired number of machines. The message of a failing machine takes
// precedence over Cluster API's summary.
func (s *reconciliation) reportReady(wanted *int32, reported []metav1.Condition, conditionType string) {
	want, have := ptr.Deref(wanted, 0), ptr.Deref(s.replicas, 0)
	if have >= want {
		s.SetTrue(hyperv1.NodePoolReadyConditionType, fmt.Sprintf("%d of %d machines are available", have, want))
		return
	}
	message := fmt.Sprintf("%d of %d machines are available", have, want)
	if trouble, is := s.Conditions[hyperv1.NodePoolAllMachinesReadyConditionType]; is && trouble.Status == metav1.ConditionFalse && trouble.Reason != hyperv1.NodePoolNotFoundReason {
		s.SetFalse(hyperv1.NodePoolReadyConditionType, trouble.Reason, message+". "+trouble.Message)
		return
	}
	if c := meta.FindStatusCondition(reported, conditionType); c != nil && c.Status == metav1.ConditionFalse && c.Message != "" {
		message += ". " + c.Message
	}
	s.SetFalse(hyperv1.NodePoolReadyConditionType, "WaitingForMachines", message)
}
