// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/journey"
)

// controlPlaneOperator is the name of the Deployment that every upgrade of the operator changes.
const controlPlaneOperator = "control-plane-operator"

// controlPlane is a snapshot of the pods of a hosted cluster's control plane.
type controlPlane struct {
	workloads map[string]workload
	pods      []corev1.Pod
}

// workload is a Deployment or a StatefulSet.
type workload struct {
	selector map[string]string
	template corev1.PodTemplateSpec
	rollsOut bool
}

func (s *suite) controlPlane(t *testing.T) *controlPlane {
	t.Helper()
	now, err := s.controlPlaneOnce(t.Context())
	s.must(t, err)
	return now
}

func (s *suite) controlPlaneOnce(ctx context.Context) (*controlPlane, error) {
	deployments, sets, pods := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &corev1.PodList{}
	namespace := client.InNamespace(journey.HostedNamespace(s.cluster))
	err := errors.Join(s.c.List(ctx, deployments, namespace), s.c.List(ctx, sets, namespace),
		s.c.List(ctx, pods, namespace))
	now := &controlPlane{workloads: map[string]workload{}, pods: pods.Items}
	for _, d := range deployments.Items {
		want := ptr.Deref(d.Spec.Replicas, 1)
		now.workloads[d.Name] = workload{d.Spec.Selector.MatchLabels, d.Spec.Template,
			d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas != want ||
				d.Status.Replicas != want || d.Status.AvailableReplicas != want}
	}
	for _, d := range sets.Items {
		want := ptr.Deref(d.Spec.Replicas, 1)
		now.workloads[d.Name] = workload{d.Spec.Selector.MatchLabels, d.Spec.Template,
			d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas != want || d.Status.ReadyReplicas != want}
	}
	return now, err
}

// rollsOut returns the names of the workloads whose pods are not current or not available.
func (c *controlPlane) rollsOut() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.workloads)) {
		if c.workloads[name].rollsOut {
			names = append(names, name)
		}
	}
	return names
}

// podsOf returns the pods of a workload by their UIDs.
func (c *controlPlane) podsOf(name string) map[string]corev1.Pod {
	found := map[string]corev1.Pod{}
	for _, pod := range c.pods {
		if labels.SelectorFromSet(c.workloads[name].selector).Matches(labels.Set(pod.Labels)) {
			found[string(pod.UID)] = pod
		}
	}
	return found
}

// printChanges writes a line for each workload whose pods or template differ from the snapshot.
func (c *controlPlane) printChanges(out io.Writer, now *controlPlane) {
	for _, name := range slices.Sorted(maps.Keys(now.workloads)) {
		before, replaced := c.podsOf(name), 0
		var restarts []string
		for uid, pod := range now.podsOf(name) {
			old, kept := before[uid]
			if !kept {
				replaced++
			}
			restarts = append(restarts, newRestarts(old, pod)...)
		}
		changed := differences("", template(c.workloads[name]), template(now.workloads[name]))
		if replaced > 0 || len(restarts) > 0 || len(changed) > 0 {
			fmt.Fprintf(out, "%s: %d of %d pods new; restarts: %v; changed: %s\n", name, replaced, len(now.podsOf(name)),
				restarts, strings.Join(changed, ", "))
		}
	}
}

// newRestarts describes the restarts of a pod's containers since a snapshot.
func newRestarts(old, pod corev1.Pod) []string {
	before := map[string]int32{}
	for _, c := range old.Status.ContainerStatuses {
		before[c.Name] = c.RestartCount
	}
	var all []string
	for _, c := range pod.Status.ContainerStatuses {
		if count := c.RestartCount - before[c.Name]; count > 0 {
			reason := "unknown"
			if last := c.LastTerminationState.Terminated; last != nil {
				reason = fmt.Sprintf("%s, exit code %d %s", last.Reason, last.ExitCode, strings.TrimSpace(last.Message))
			}
			all = append(all, fmt.Sprintf("%s %d (%s)", c.Name, count, reason))
		}
	}
	return all
}

func template(w workload) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&w.template)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return content
}

// differences lists the paths of the fields that differ. A path contains an element's name, or its index if it has
// none.
func differences(path string, before, after any) []string {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	one, two := fields(before), fields(after)
	if one == nil || two == nil {
		return []string{path}
	}
	keys := maps.Clone(one)
	maps.Copy(keys, two)
	var all []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		all = append(all, differences(strings.TrimPrefix(path+"."+key, "."), one[key], two[key])...)
	}
	return all
}

// fields returns the fields of an object, or the elements of a list by their names or indexes; nil for other values.
func fields(value any) map[string]any {
	list, isList := value.([]any)
	if !isList {
		object, _ := value.(map[string]any)
		return object
	}
	elements := map[string]any{}
	for i, element := range list {
		key := fmt.Sprint(i)
		if object, ok := element.(map[string]any); ok && object["name"] != nil {
			key = fmt.Sprint(object["name"])
		}
		elements[key] = element
	}
	return elements
}

// rolledOut checks that the control plane's operator image has changed since a snapshot. All of its pods must be
// current and must no longer change. Components restart one after another, with pauses for leader elections.
func (s *suite) rolledOut(before *controlPlane) journey.Check {
	last, since := "", time.Now()
	return func(ctx context.Context) (bool, string, error) {
		now, err := s.controlPlaneOnce(ctx)
		if err != nil {
			return false, "", err
		}
		if image(now) == image(before) {
			return false, s.cluster + " has the old control-plane-operator", nil
		}
		done, progress, err := s.completeNow(ctx, now)
		if state := fmt.Sprint(slices.Sorted(maps.Keys(now.uids()))); !done || state != last {
			last, since = state, time.Now()
		}
		return done && time.Since(since) >= 4*rest, progress, err
	}
}

// complete checks that all pods of the control plane are current and available, and that the HostedCluster is no
// longer progressing.
func (s *suite) complete(ctx context.Context) (bool, string, error) {
	now, err := s.controlPlaneOnce(ctx)
	if err != nil {
		return false, "", err
	}
	return s.completeNow(ctx, now)
}

func (s *suite) completeNow(ctx context.Context, now *controlPlane) (bool, string, error) {
	if names := now.rollsOut(); len(names) > 0 {
		return false, s.cluster + " rolls out " + strings.Join(names, ", "), nil
	}
	const progressing = string(hyperv1.HostedClusterProgressing)
	return journey.All(journey.ClusterAvailable(s.c, s.cluster),
		journey.ClusterCondition(s.c, s.cluster, progressing, string(corev1.ConditionFalse)))(ctx)
}

// image returns the image of the control-plane-operator.
func image(c *controlPlane) string {
	for _, container := range c.workloads[controlPlaneOperator].template.Spec.Containers {
		return container.Image
	}
	return ""
}

// uids returns the UIDs of all pods of the control plane.
func (c *controlPlane) uids() map[string]bool {
	all := map[string]bool{}
	for _, pod := range c.pods {
		all[string(pod.UID)] = true
	}
	return all
}
