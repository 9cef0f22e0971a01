// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
)

// The reasons of the conditions of a ControlPlaneComponent.
const (
	reasonNotFound             = "NotFound"
	reasonWaitingForAvailable  = "WaitingForAvailable"
	reasonWaitingForRollout    = "WaitingForRolloutComplete"
	reasonWaitingForDependency = "WaitingForDependencies"
	ReasonError                = "ReconciliationError"
	reasonJobActive            = "JobActive"
	reasonJobComplete          = "JobComplete"
	reasonJobFailed            = "JobFailed"
)

// workload is the common part of all kinds of workload.
type workload struct {
	object   client.Object
	template *corev1.PodTemplateSpec
	// replicas is nil for kinds without replicas.
	replicas **int32
}

func newWorkload(obj client.Object) (*workload, error) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return &workload{object: o, template: &o.Spec.Template, replicas: &o.Spec.Replicas}, nil
	case *appsv1.StatefulSet:
		return &workload{object: o, template: &o.Spec.Template, replicas: &o.Spec.Replicas}, nil
	case *appsv1.DaemonSet:
		return &workload{object: o, template: &o.Spec.Template}, nil
	case *batchv1.Job:
		return &workload{object: o, template: &o.Spec.Template}, nil
	case *batchv1.CronJob:
		return &workload{object: o, template: &o.Spec.JobTemplate.Spec.Template}, nil
	default:
		return nil, fmt.Errorf("%T is not a kind of workload", obj)
	}
}

// health is the health that the live workload reports.
type health struct {
	available, rolledOut metav1.Condition
}

func healthOf(obj client.Object) health {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return deploymentHealth(o)
	case *appsv1.StatefulSet:
		return statefulSetHealth(o)
	case *batchv1.Job:
		return jobHealth(o)
	default:
		return health{available: available(), rolledOut: rolledOut()}
	}
}

func available() metav1.Condition {
	return condition.True(string(hyperv1.ControlPlaneComponentAvailable), hyperv1.AsExpectedReason, "")
}

func unavailable(reason, message string) metav1.Condition {
	return condition.False(string(hyperv1.ControlPlaneComponentAvailable), reason, message)
}

func rolledOut() metav1.Condition {
	return condition.True(string(hyperv1.ControlPlaneComponentRolloutComplete), hyperv1.AsExpectedReason, "")
}

func rollingOut(reason, message string) metav1.Condition {
	return condition.False(string(hyperv1.ControlPlaneComponentRolloutComplete), reason, message)
}

func deploymentHealth(d *appsv1.Deployment) health {
	h := health{available: available(), rolledOut: rolledOut()}
	if c := deploymentAvailable(d); c == nil {
		h.available = unavailable(reasonWaitingForAvailable, fmt.Sprintf("Waiting for Deployment %s to report its availability", d.Name))
	} else if c.Status != corev1.ConditionTrue {
		h.available = unavailable(reasonWaitingForAvailable, fmt.Sprintf("Deployment %s is not available: %s", d.Name, c.Message))
	}
	wanted, s := ptr.Deref(d.Spec.Replicas, 1), d.Status
	// The rollout is complete when pods of other revisions are gone and enough pods of this one serve.
	done := s.ObservedGeneration >= d.Generation && s.Replicas == wanted && s.UpdatedReplicas == wanted && s.AvailableReplicas >= enough(wanted)
	if !done {
		h.rolledOut = rollingOut(reasonWaitingForRollout, fmt.Sprintf("Deployment %s: %d of %d replicas updated, %d available",
			d.Name, s.UpdatedReplicas, wanted, s.AvailableReplicas))
	}
	return h
}

// enough returns how many replicas must serve, so that one dead host does not block a rollout. For three members, the
// result is the quorum.
func enough(wanted int32) int32 {
	if wanted < 2 {
		return wanted
	}
	return wanted - 1
}

func deploymentAvailable(d *appsv1.Deployment) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == appsv1.DeploymentAvailable {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}

func statefulSetHealth(s *appsv1.StatefulSet) health {
	h := health{available: available(), rolledOut: rolledOut()}
	if s.Status.AvailableReplicas == 0 {
		h.available = unavailable(reasonWaitingForAvailable, fmt.Sprintf("StatefulSet %s has no available replica", s.Name))
	}
	wanted, status := ptr.Deref(s.Spec.Replicas, 1), s.Status
	// A pod on a dead host is not replaced before the host is removed, and counts for no revision.
	former := status.CurrentRevision != status.UpdateRevision && status.CurrentReplicas > 0
	done := status.ObservedGeneration >= s.Generation && !former &&
		status.UpdatedReplicas >= enough(wanted) && status.AvailableReplicas >= enough(wanted) && status.Replicas <= wanted
	if !done {
		h.rolledOut = rollingOut(reasonWaitingForRollout, fmt.Sprintf("StatefulSet %s: %d of %d replicas updated, %d available",
			s.Name, status.UpdatedReplicas, wanted, status.AvailableReplicas))
	}
	return h
}

func jobHealth(j *batchv1.Job) health {
	for _, c := range j.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		if c.Type == batchv1.JobComplete {
			done := available()
			done.Reason = reasonJobComplete
			return health{available: done, rolledOut: rolledOut()}
		}
		if c.Type == batchv1.JobFailed {
			message := fmt.Sprintf("Job %s failed: %s", j.Name, c.Message)
			return health{available: unavailable(reasonJobFailed, message), rolledOut: rollingOut(reasonWaitingForRollout, message)}
		}
	}
	message := fmt.Sprintf("Job %s has not finished", j.Name)
	return health{available: unavailable(reasonJobActive, message), rolledOut: rollingOut(reasonWaitingForRollout, message)}
}
