// SPDX-License-Identifier: Apache-2.0

// Package podfailure finds out what keeps the pods of a control plane from running. Causes are admission that rejects
// them, objects and images that they wait for, and containers that exit and restart.
package podfailure

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

const (
	// recent is how long a container is reported after its last failure. It is longer than the kubelet's maximum restart
	// delay.
	recent = 6 * time.Minute
	// loop is the number of restarts from which a container counts as crash looping. Fewer are common while a control
	// plane starts.
	loop = 2
	// named is the number of findings that a message lists.
	named = 3
	// maxMessage is the maximum length of a quoted message, in bytes.
	maxMessage = 400
)

// Namespace holds the objects of a hosted namespace that Find needs.
type Namespace struct {
	Deployments  []appsv1.Deployment
	StatefulSets []appsv1.StatefulSet
	Pods         []corev1.Pod
	// Events are the events that explain why a StatefulSet has no pod, and those with reason FailedMount.
	Events []corev1.Event
}

// Finding is one reason why pods do not run.
type Finding struct {
	// Message is a sentence without its final period.
	Message string
	// Stuck reports that the pods will not run without a change. Otherwise a container has exited, and may run after its
	// restart.
	Stuck bool
}

// Find returns the findings, rejected pods first, in a stable order.
func Find(in Namespace, now time.Time) []Finding {
	var refused, restarting []Finding
	for i := range in.Deployments {
		if message := refusedDeployment(&in.Deployments[i]); message != "" {
			refused = append(refused, refusal("Deployment", in.Deployments[i].Name, message))
		}
	}
	for i := range in.StatefulSets {
		if message := refusedStatefulSet(&in.StatefulSets[i], in.Events); message != "" {
			refused = append(refused, refusal("StatefulSet", in.StatefulSets[i].Name, message))
		}
	}
	for i := range in.Pods {
		refused = append(refused, waiting(&in.Pods[i], in.Events, now)...)
		restarting = append(restarting, restarts(&in.Pods[i], now)...)
	}
	byMessage := func(a, b Finding) int { return cmp.Compare(a.Message, b.Message) }
	slices.SortFunc(refused, byMessage)
	slices.SortFunc(restarting, byMessage)
	return append(refused, restarting...)
}

// Text joins findings into one message; empty if there are none.
func Text(findings []Finding) string {
	var all []string
	for _, f := range findings[:min(len(findings), named)] {
		all = append(all, f.Message)
	}
	if more := len(findings) - named; more > 0 {
		all = append(all, fmt.Sprintf("And %d more", more))
	}
	return strings.Join(all, ". ")
}

// refusedDeployment returns the reason why a Deployment's newest pods cannot be created; empty if they can.
func refusedDeployment(d *appsv1.Deployment) string {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return cmp.Or(c.Message, c.Reason)
		}
	}
	return ""
}

// refusedStatefulSet returns the message of the last event about a StatefulSet that lacks pods; empty without one.
func refusedStatefulSet(s *appsv1.StatefulSet, events []corev1.Event) string {
	if !LacksPods(s) {
		return ""
	}
	var last *corev1.Event
	for i := range events {
		e := &events[i]
		of := e.InvolvedObject
		if of.Kind == "StatefulSet" && of.Name == s.Name && of.UID == s.UID && (last == nil || when(last).Before(when(e))) {
			last = e
		}
	}
	if last == nil {
		return ""
	}
	return last.Message
}

// LacksPods reports whether some pods of a StatefulSet have not been created.
func LacksPods(s *appsv1.StatefulSet) bool { return s.Status.Replicas < ptr.Deref(s.Spec.Replicas, 1) }

// when returns the last time of an event.
func when(e *corev1.Event) time.Time {
	at := e.LastTimestamp.Time
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	for _, other := range []time.Time{e.EventTime.Time, e.CreationTimestamp.Time} {
		if at.IsZero() {
			at = other
		}
	}
	return at
}

// podName matches the beginning of an API server's rejection. The name of the pod differs in each attempt.
var podName = regexp.MustCompile(`^(?:create Pod \S+ in StatefulSet \S+ failed error: )?(?:pods "[^"]*" is )?`)

func refusal(kind, name, message string) Finding {
	text := fmt.Sprintf("Pods of %s %s cannot be created: %s", kind, name,
		quote(podName.ReplaceAllString(message, ""), false))
	if strings.Contains(message, "violates PodSecurity") {
		text += "; an administrator sets the level of the namespace by its annotation " +
			hyperv1.PodSecurityAdmissionLabelOverrideAnnotation
	}
	return Finding{Message: text, Stuck: true}
}

// restarts returns findings for the containers of a pod that exited recently and are restarted. It skips pods of Jobs,
// because a Job reports its own failures.
func restarts(pod *corev1.Pod, now time.Time) []Finding {
	if !pod.DeletionTimestamp.IsZero() || pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		return nil
	}
	var found []Finding
	for _, status := range pod.Status.InitContainerStatuses {
		if done := status.State.Terminated; done == nil || done.ExitCode != 0 {
			found = append(found, restart(pod, status, now)...)
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		found = append(found, restart(pod, status, now)...)
	}
	return found
}

// restart returns the finding about one container, or none.
func restart(pod *corev1.Pod, status corev1.ContainerStatus, now time.Time) []Finding {
	ended := status.State.Terminated
	if ended == nil {
		ended = status.LastTerminationState.Terminated
	}
	if ended == nil || now.Sub(lastEnd(ended, now)) > recent {
		return nil
	}
	text := fmt.Sprintf("Container %s of pod %s ended with exit code %d (%s); restarts: %d",
		status.Name, pod.Name, ended.ExitCode, cmp.Or(ended.Reason, "Error"), status.RestartCount)
	if message := quote(ended.Message, true); message != "" && isOperator(pod) {
		text += "; last message: " + message
	}
	return []Finding{{Message: text, Stuck: status.RestartCount >= loop}}
}

// lastEnd returns when a container exited; now if the status does not record it.
func lastEnd(ended *corev1.ContainerStateTerminated, now time.Time) time.Time {
	if ended.FinishedAt.IsZero() {
		return now
	}
	return ended.FinishedAt.Time
}

// isOperator reports whether a pod calls the management cluster. The messages of other pods are not quoted, because
// these pods connect to addresses that a tenant chose and their messages may reveal the responses.
func isOperator(pod *corev1.Pod) bool {
	if pod.Labels[hyperv1.NeedManagementKASAccessLabel] == "true" {
		return true
	}
	account := pod.Spec.ServiceAccountName
	return account != "" && account != "default" && ptr.Deref(pod.Spec.AutomountServiceAccountToken, true)
}

// quote returns a message as one line. If the line is too long, quote truncates it. With end, it keeps the end of the
// line, because the last lines of a log matter most.
func quote(message string, end bool) string {
	line := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(message, "?"), func(r rune) bool {
		return r <= ' ' || r >= 0x7f && r <= 0xa0 || r >= 0x200b && r <= 0x200f ||
			r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
	}), " ")
	line = strings.TrimSuffix(line, ".")
	switch {
	case len(line) <= maxMessage:
		return line
	case end:
		return "... " + strings.ToValidUTF8(line[len(line)-maxMessage:], "")
	default:
		return strings.ToValidUTF8(line[:maxMessage], "") + " ..."
	}
}
