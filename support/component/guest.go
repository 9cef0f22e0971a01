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
	// GuestLabel is the label of objects in a guest cluster that an operator of its control plane manages.
	GuestLabel = "hypershift.openshift.io/managed"
	// GuestFieldOwner is the field owner of objects that are applied in a guest cluster.
	GuestFieldOwner = "hosted-cluster-config-operator"
	// ReasonPodsFailing is a reason of RolloutComplete: pods of the component do not start, and waiting does not help.
	ReasonPodsFailing = "PodsFailing"
)

// Guest is the guest cluster, for components that run in it.
type Guest struct {
	// Client accesses the guest cluster. Its cache must have all Nodes and all objects with GuestLabel.
	Client client.Client
	// Live reads Pods without the cache, which does not have them.
	Live client.Reader
}

// Nodes returns the nodes of the guest cluster.
func (g *Guest) Nodes(ctx context.Context) ([]corev1.Node, error) {
	nodes := &corev1.NodeList{}
	if err := g.Client.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("listing Nodes: %w", err)
	}
	return nodes.Items, nil
}

// guestWorkload sets the payload's images and the hash of the mounted objects of a workload in the guest cluster. The
// other common settings of a control plane do not apply there.
func (c *Component) guestWorkload(ctx context.Context, scope *Scope, w *workload) error {
	if err := c.setImages(scope, &w.template.Spec); err != nil {
		return err
	}
	return c.stamp(ctx, scope, w)
}

// guestHealth returns the health of a workload in the guest cluster. In a cluster without nodes, the rollout is
// complete. A node that is not Ready does not delay it. The message names failing pods.
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

// daemonSetHealth ignores as many missing pods as there are nodes that are not Ready.
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

// maxNamed is the maximum number of nodes or pods in a message.
const maxNamed = 3

// notReady returns the names of the nodes that are not Ready, sorted.
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

// maxPods is the maximum number of pods to search for failing pods: a message names only a few.
const maxPods = 500

// failingPods describes pods of a workload that do not start, with the reasons; empty if none fails.
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

// failureReasons lists the reasons of waiting containers that will not start without intervention.
var failureReasons = []string{
	"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError",
	"CreateContainerError", "RunContainerError",
}

// failure returns the reason why a pod does not run; empty if it has no problem.
func failure(pod *corev1.Pod) string {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := c.State.Waiting; waiting != nil && slices.Contains(failureReasons, waiting.Reason) {
			// Use only the reason: the messages of pull and crash back-offs change constantly.
			return fmt.Sprintf("pod %s on node %s: %s of image %s", pod.Name, pod.Spec.NodeName, waiting.Reason, c.Image)
		}
	}
	return ""
}

// target returns the client of the cluster that has the component's objects.
func (c *Component) target(scope *Scope) client.Client {
	if c.Guest {
		return scope.Guest.Client
	}
	return scope.Client
}

// markGuest labels an object of the guest cluster as managed.
func markGuest(obj client.Object) {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[GuestLabel] = "true"
	obj.SetLabels(labels)
}

// ApplyGuest applies an object in a guest cluster, and labels it as managed.
func ApplyGuest(ctx context.Context, guest client.Client, obj client.Object) error {
	markGuest(obj)
	_, err := upsert.Apply(ctx, guest, GuestFieldOwner, obj)
	return err
}
