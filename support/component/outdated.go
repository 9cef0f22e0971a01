// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// goneAfter is the time after the end of its grace period for which a terminating pod still counts. A pod on a dead
// host never disappears.
const goneAfter = 5 * time.Minute

// Outdated returns the sorted names of the control plane's workloads and pods that run with previous contents of the
// objects that they mount. Terminating pods count: they still serve.
func Outdated(ctx context.Context, c client.Reader, namespace string, now time.Time) ([]string, error) {
	workloads, err := controlPlaneWorkloads(ctx, c, namespace)
	if err != nil {
		return nil, err
	}
	var outdated, components []string
	for _, w := range workloads {
		components = append(components, w.template.Labels[componentLabel])
		current, err := isCurrent(ctx, c, namespace, &w.template.Spec, w.template.Annotations)
		if err != nil {
			return nil, err
		}
		if !current {
			outdated = append(outdated, w.object.GetName())
		}
	}
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(namespace), client.HasLabels{componentLabel}); err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %s: %w", namespace, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !slices.Contains(components, pod.Labels[componentLabel]) || ended(pod, now) {
			continue
		}
		current, err := isCurrent(ctx, c, namespace, &pod.Spec, pod.Annotations)
		if err != nil {
			return nil, err
		}
		if !current {
			outdated = append(outdated, "pod "+pod.Name)
		}
	}
	slices.Sort(outdated)
	return outdated, nil
}

// Refresh updates the config hash of the control plane's workloads, so that they use the current contents of the
// objects that they mount. It changes nothing else. It serves paused control planes, whose certificates are renewed
// too.
func Refresh(ctx context.Context, c client.Client, namespace string) error {
	workloads, err := controlPlaneWorkloads(ctx, c, namespace)
	if err != nil {
		return err
	}
	for _, w := range workloads {
		before := w.object.DeepCopyObject().(client.Object)
		hash, err := configHash(ctx, c, namespace, &w.template.Spec)
		if err != nil {
			return err
		}
		if w.template.Annotations[configHashAnnotation] == hash {
			continue
		}
		metav1.SetMetaDataAnnotation(&w.template.ObjectMeta, configHashAnnotation, hash)
		if err := c.Patch(ctx, w.object, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("updating the config hash of %s: %w", w.object.GetName(), err)
		}
	}
	return nil
}

// controlPlaneWorkloads returns the workloads that the control-plane-operator rolls out.
func controlPlaneWorkloads(ctx context.Context, c client.Reader, namespace string) ([]*workload, error) {
	options := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{managedByLabel: managedByValue}}
	deployments, sets := &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}
	for _, list := range []client.ObjectList{deployments, sets} {
		if err := c.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("listing the workloads of namespace %s: %w", namespace, err)
		}
	}
	var all []*workload
	for i := range deployments.Items {
		all = append(all, &workload{object: &deployments.Items[i], template: &deployments.Items[i].Spec.Template})
	}
	for i := range sets.Items {
		all = append(all, &workload{object: &sets.Items[i], template: &sets.Items[i].Spec.Template})
	}
	return all, nil
}

func isCurrent(ctx context.Context, c client.Reader, namespace string, pod *corev1.PodSpec, annotations map[string]string) (bool, error) {
	hash, err := configHash(ctx, c, namespace, pod)
	return annotations[configHashAnnotation] == hash, err
}

func ended(pod *corev1.Pod, now time.Time) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	return pod.DeletionTimestamp != nil && now.Sub(pod.DeletionTimestamp.Time) > goneAfter
}
