// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/upsert"
)

const (
	// GuestLabel marks the objects in a guest that an operator of its control plane keeps.
	GuestLabel = "hypershift.openshift.io/managed"
	// GuestFieldOwner is the name under which a guest's API server keeps the fields that are applied there.
	GuestFieldOwner = "hosted-cluster-config-operator"
	// ReasonPodsFailing of RolloutComplete: pods of the component do not start, and will not by waiting.
	ReasonPodsFailing = "PodsFailing"
)

// Guest is the cluster whose control plane is hosted, for the components that run there.
type Guest struct {
	// Client reads and writes the guest. Its cache must hold all Nodes and what carries GuestLabel.
	Client client.Client
	// Live reads Pods past the cache, which does not hold them.
	Live client.Reader
}

// Nodes are the guest's.
func (g *Guest) Nodes(ctx context.Context) ([]corev1.Node, error) {
	nodes := &corev1.NodeList{}
	if err := g.Client.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("listing Nodes: %w", err)
	}
	return nodes.Items, nil
}

// guestWorkload fits a workload of the guest: the payload's images, a hash of what it mounts, and nothing else. What else
// pods of a control plane have means nothing there.
func (c *Component) guestWorkload(ctx context.Context, scope *Scope, w *workload) error {
	if err := c.setImages(scope, &w.template.Spec); err != nil {
		return err
	}
	return c.stamp(ctx, scope, w)
}

// guestHealth is that of a workload on the guest's nodes as far as there are nodes: a cluster without any is complete, and one
// that is not Ready holds up nobody. A failing pod is told of by name.
func guestHealth(ctx context.Context, guest *Guest, nodes []corev1.Node, obj client.Object) (health, error) {
	var h health
	var selector *metav1.LabelSelector
	switch o := obj.(type) {
	case *appsv1.DaemonSet:
		h, selector = daemonSetHealth(o, notReady(nodes)), o.Spec.Selector
	case *appsv1.Deployment:
		h, selector = deploymentHealth(o), o.Spec.Selector
		if len(nodes) == len(notReady(nodes)) {
			h = health{available: available(), rolledOut: rolledOut()}
		}
	default:
		return health{}, fmt.Errorf("%T is not a kind of workload for a guest", obj)
	}
	if h.rolledOut.Status == metav1.ConditionTrue {
		return h, nil
	}
	failing, err := failingPods(ctx, guest.Live, obj.GetNamespace(), selector)
	if err == nil && failing != "" {
		h.rolledOut = rollingOut(ReasonPodsFailing, h.rolledOut.Message+"; "+failing)
	}
	return h, err
}

// daemonSetHealth leaves as many pods out as there are nodes that are not Ready.
func daemonSetHealth(d *appsv1.DaemonSet, notReady []string) health {
	h := health{available: available(), rolledOut: rolledOut()}
	s, wanted := d.Status, max(d.Status.DesiredNumberScheduled-int32(len(notReady)), 0) //nolint:gosec // a list that fits into memory
	if s.NumberAvailable == 0 && wanted > 0 {
		h.available = unavailable(reasonWaitingForAvailable, fmt.Sprintf("DaemonSet %s has no available pod", d.Name))
	}
	if s.ObservedGeneration < d.Generation || s.UpdatedNumberScheduled < wanted || s.NumberAvailable < wanted {
		message := fmt.Sprintf("DaemonSet %s: %d of %d nodes updated, %d available", d.Name, s.UpdatedNumberScheduled, s.DesiredNumberScheduled, s.NumberAvailable)
		if len(notReady) > 0 {
			message += "; not Ready: " + strings.Join(notReady[:min(len(notReady), maxNamed)], ", ")
		}
		h.rolledOut = rollingOut(reasonWaitingForRollout, message)
	}
	return h
}

// maxNamed is how many nodes or pods a message names.
const maxNamed = 3

// notReady are the names of the nodes that are not Ready, sorted.
func notReady(nodes []corev1.Node) []string {
	var names []string
	for i := range nodes {
		ready := slices.ContainsFunc(nodes[i].Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		if !ready {
			names = append(names, nodes[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// maxPods bounds what is read to find a failing pod: a few are enough to tell of.
const maxPods = 500

// failingPods says which pods of a workload do not start and why; empty if none fails.
func failingPods(ctx context.Context, reader client.Reader, namespace string, selector *metav1.LabelSelector) (string, error) {
	labels, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return "", fmt.Errorf("reading a workload's selector: %w", err)
	}
	pods := &corev1.PodList{}
	err = reader.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: labels}, client.Limit(maxPods))
	if err != nil {
		return "", fmt.Errorf("listing Pods of namespace %s: %w", namespace, err)
	}
	var failing []string
	for i := range pods.Items {
		if why := failure(&pods.Items[i]); why != "" {
			failing = append(failing, why)
		}
	}
	slices.Sort(failing)
	return strings.Join(failing[:min(len(failing), maxNamed)], "; "), nil
}

// failureReasons are those for which a container waits that does not start by itself.
var failureReasons = []string{
	"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError",
	"CreateContainerError", "RunContainerError",
}

// failure says why a pod does not run, empty if nothing is wrong with it.
func failure(pod *corev1.Pod) string {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := c.State.Waiting; waiting != nil && slices.Contains(failureReasons, waiting.Reason) {
			// The back-off of a pull and of a crash change their words all the time, so that only the reason is told.
			return fmt.Sprintf("pod %s on node %s: %s of image %s", pod.Name, pod.Spec.NodeName, waiting.Reason, c.Image)
		}
	}
	return ""
}

// target is the cluster that the component's objects live in.
func (c *Component) target(scope *Scope) client.Client {
	if c.Guest {
		return scope.Guest.Client
	}
	return scope.Client
}

// markGuest labels an object of the guest as kept.
func markGuest(obj client.Object) {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[GuestLabel] = "true"
	obj.SetLabels(labels)
}

// ApplyGuest brings one object of a guest to its wanted shape, and marks it as kept.
func ApplyGuest(ctx context.Context, guest client.Client, obj client.Object) error {
	markGuest(obj)
	_, err := upsert.Apply(ctx, guest, GuestFieldOwner, obj)
	return err
}
