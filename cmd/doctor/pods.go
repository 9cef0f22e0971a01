// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// starting are the reasons of containers that wait for no longer than usual.
var starting = []string{"PodInitializing", "ContainerCreating"}

// podTrouble describes why a pod does not run; empty if it runs, has completed, or starts.
func podTrouble(pod *corev1.Pod) string {
	if !pod.DeletionTimestamp.IsZero() || pod.Status.Phase == corev1.PodSucceeded || ofJob(pod) {
		return ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "it cannot be scheduled: " + c.Message
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if text := containerTrouble(status); text != "" {
			return text
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return strings.TrimSuffix(fmt.Sprintf("it failed: %s: %s", pod.Status.Reason, pod.Status.Message), ": ")
	}
	return ""
}

func containerTrouble(status corev1.ContainerStatus) string {
	waiting, ended := status.State.Waiting, status.LastTerminationState.Terminated
	if status.State.Terminated != nil {
		ended = status.State.Terminated
	}
	end := ""
	if ended != nil && ended.ExitCode != 0 {
		end = strings.TrimSuffix(fmt.Sprintf("; it ended with exit code %d: %s", ended.ExitCode,
			strings.TrimSpace(ended.Message)), ": ")
	}
	switch {
	case waiting != nil && !slices.Contains(starting, waiting.Reason):
		return strings.TrimSuffix(fmt.Sprintf("container %s: %s: %s", status.Name, waiting.Reason, waiting.Message),
			": ") + end
	case status.State.Terminated != nil && end != "":
		return fmt.Sprintf("container %s does not run%s", status.Name, end)
	case status.State.Running != nil && !status.Ready && status.RestartCount > 0:
		return fmt.Sprintf("container %s is not ready and has restarted %d times%s", status.Name, status.RestartCount, end)
	}
	return ""
}

// ofJob reports whether a pod belongs to a Job, which reports its own failures.
func ofJob(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Job" })
}
