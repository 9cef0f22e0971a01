// SPDX-License-Identifier: Apache-2.0

package podfailure

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FailedMount is the reason of the kubelet's events about volumes that it cannot mount.
const FailedMount = "FailedMount"

// settled is how long a new pod may wait for an object that another component is about to create.
const settled = time.Minute

// unstarted lists the kubelet's reasons for a container that it cannot start, and whether the message is quoted.
// Messages that are not quoted may contain a registry's address or response.
var unstarted = map[string]bool{
	"CreateContainerConfigError": true, "CreateContainerError": false, "InvalidImageName": false,
	"ErrImageNeverPull": false, "ErrImagePull": false, "ImagePullBackOff": false,
}

// absent matches what the kubelet reports of a volume whose object or key does not exist.
var absent = regexp.MustCompile(`volume "([^"]*)"\s*: ` +
	`((?:secret|configmap) "[^"]*" not found|references non-existent (?:secret|config) key: \S+)$`)

// Waits reports whether a pod has a container that has not started.
func Waits(pod *corev1.Pod) bool {
	if !pod.DeletionTimestamp.IsZero() {
		return false
	}
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	return slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool { return s.State.Waiting != nil })
}

// waiting returns findings for a pod that waits for a Secret, a ConfigMap or an image.
func waiting(pod *corev1.Pod, events []corev1.Event, now time.Time) []Finding {
	if !Waits(pod) {
		return nil
	}
	stuck := now.Sub(pod.CreationTimestamp.Time) >= settled
	var found []Finding
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waits := status.State.Waiting
		if waits == nil {
			continue
		}
		quoted, known := unstarted[waits.Reason]
		if !known {
			continue
		}
		reason := waits.Reason
		if reason == "ErrImagePull" {
			reason = "ImagePullBackOff" // The kubelet alternates between the two reasons; the message should stay the same.
		}
		text := fmt.Sprintf("Container %s of pod %s cannot start: %s", status.Name, pod.Name, reason)
		if message := quote(waits.Message, false); quoted && message != "" {
			text += ": " + message
		}
		found = append(found, Finding{Message: text, Stuck: stuck})
	}
	for _, message := range unmounted(pod.UID, events, now) {
		found = append(found, Finding{Message: fmt.Sprintf("Pod %s cannot start: %s", pod.Name, message), Stuck: stuck})
	}
	return found
}

// unmounted returns recent reports of the kubelet about volumes of a pod.
func unmounted(pod types.UID, events []corev1.Event, now time.Time) []string {
	var all []string
	for i := range events {
		e := &events[i]
		if e.Reason != FailedMount || e.InvolvedObject.UID != pod || now.Sub(when(e)) > recent {
			continue
		}
		if match := absent.FindStringSubmatch(e.Message); match != nil {
			all = append(all, fmt.Sprintf("volume %s: %s", match[1], match[2]))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
