package nodepool

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
)

// judgeUpdating tells whether nodes still have to get a configuration or version, from the annotations that remember what
// all of them have.
func (s *scope) judgeUpdating() {
	s.updating(hyperv1.NodePoolUpdatingConfigConditionType,
		s.pool.Annotations[hyperv1.NodePoolCurrentConfigAnnotation] != s.config.hashWithoutVersion,
		fmt.Sprintf("Updating nodes to configuration %s", s.config.hashWithoutVersion))
	s.updating(hyperv1.NodePoolUpdatingVersionConditionType,
		s.pool.Status.Version != s.release.Version(),
		fmt.Sprintf("Updating nodes to version %s", s.release.Version()))
}

func (s *scope) updating(conditionType string, is bool, message string) {
	if is {
		s.accept(conditionType, message)
		return
	}
	s.reject(conditionType, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)
}

// judgeRollout tells whether machines have to be replaced because their template changed.
func (s *scope) judgeRollout(template string) {
	last := s.pool.Annotations[hyperv1.NodePoolPlatformMachineTemplateAnnotation]
	s.updating(hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType,
		last != "" && last != template, fmt.Sprintf("Replacing machines of template %s by those of %s", last, template))
}

// judgeRolledOut tells that all machines are as wanted.
func (s *scope) judgeRolledOut() {
	for _, conditionType := range []string{
		hyperv1.NodePoolUpdatingConfigConditionType, hyperv1.NodePoolUpdatingVersionConditionType,
		hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType,
	} {
		s.updating(conditionType, false, "")
	}
}

// judgeInPlace repeats what the in-place upgrader says.
func (s *scope) judgeInPlace(ms *clusterv1.MachineSet) {
	failed, text := ms.Annotations[hyperv1.NodePoolUpgradeInProgressFalseAnnotation], ms.Annotations[hyperv1.NodePoolUpgradeInProgressTrueAnnotation]
	for _, conditionType := range []string{hyperv1.NodePoolUpdatingConfigConditionType, hyperv1.NodePoolUpdatingVersionConditionType} {
		switch {
		case s.verdicts[conditionType].Status != metav1.ConditionTrue:
		case failed != "":
			s.reject(conditionType, hyperv1.NodePoolInplaceUpgradeFailedReason, failed)
		case text != "":
			s.accept(conditionType, text)
		}
	}
}

func (s *scope) observeDeployment(md *clusterv1.MachineDeployment) {
	s.replicas = ptr.To(ptr.Deref(md.Status.AvailableReplicas, 0))
	s.judgeReady(md.Status.Conditions, clusterv1.MachineDeploymentAvailableCondition, md.Spec.Replicas)
}

func (s *scope) observeMachineSet(ms *clusterv1.MachineSet) {
	s.replicas = ptr.To(ptr.Deref(ms.Status.AvailableReplicas, 0))
	s.judgeReady(ms.Status.Conditions, clusterv1.MachineSetMachinesReadyCondition, ms.Spec.Replicas)
}

// judgeReady tells whether the pool has its machines. A machine that is in trouble says more than Cluster API's summary.
func (s *scope) judgeReady(reported []metav1.Condition, conditionType string, wanted *int32) {
	want, have := ptr.Deref(wanted, 0), ptr.Deref(s.replicas, 0)
	if have >= want {
		s.accept(hyperv1.NodePoolReadyConditionType, fmt.Sprintf("%d of %d machines are available", have, want))
		return
	}
	message := fmt.Sprintf("%d of %d machines are available", have, want)
	if trouble, is := s.verdicts[hyperv1.NodePoolAllMachinesReadyConditionType]; is && trouble.Status == metav1.ConditionFalse && trouble.Reason != hyperv1.NodePoolNotFoundReason {
		s.reject(hyperv1.NodePoolReadyConditionType, trouble.Reason, message+". "+trouble.Message)
		return
	}
	c := condition.Copy(reported, conditionType, "WaitingForMachines")
	if c.Status == metav1.ConditionFalse && c.Message != "" {
		message += ". " + c.Message
	}
	s.reject(hyperv1.NodePoolReadyConditionType, "WaitingForMachines", message)
}
