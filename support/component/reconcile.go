// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/manifest"
	"github.com/openshift/hypershift/support/upsert"
)

// fieldOwner is the field owner of objects that the control-plane-operator applies.
const fieldOwner = "control-plane-component"

// outcome is the result of one reconcile of a component, from which its status is computed.
type outcome struct {
	unmet     []string
	health    *health
	resources []hyperv1.ComponentResource
	err       error
}

// Reconcile applies the component for the scope and writes its ControlPlaneComponent. That object's conditions also
// have the error.
func (c *Component) Reconcile(ctx context.Context, scope *Scope) error {
	if c.Enabled != nil {
		wanted, err := c.Enabled(ctx, scope)
		if err != nil {
			return fmt.Errorf("evaluating whether component %s is enabled: %w", c.Name, err)
		}
		if !wanted {
			return c.remove(ctx, scope)
		}
	}
	result := c.roll(ctx, scope)
	return errors.Join(result.err, c.report(ctx, scope, result))
}

func (c *Component) roll(ctx context.Context, scope *Scope) outcome {
	unmet, err := c.unmet(ctx, scope)
	if err != nil || len(unmet) > 0 {
		return outcome{unmet: unmet, err: err}
	}
	auxiliary, _, err := c.files()
	if err != nil {
		return outcome{err: err}
	}
	var result outcome
	for _, file := range auxiliary {
		if err := c.applyAuxiliary(ctx, scope, file, &result); err != nil {
			result.err = err
			return result
		}
	}
	// Apply the binding after the Role: the API server lets only an administrator bind a Role that does not exist.
	for _, obj := range c.access(auxiliary) {
		if result.err = c.own(scope, obj); result.err == nil {
			result.err = c.apply(ctx, scope, obj, &result)
		}
		if result.err != nil {
			return result
		}
	}
	h, err := c.applyWorkload(ctx, scope, &result)
	result.health, result.err = h, err
	return result
}

// unmet returns the dependencies that are not available at the desired release. A dependency that never completed a
// rollout does not hold back a component whose pods wait for it.
func (c *Component) unmet(ctx context.Context, scope *Scope) ([]string, error) {
	var unmet []string
	for _, name := range c.dependencies(scope.HCP) {
		dependency, err := scope.dependency(ctx, name)
		if err != nil {
			return nil, err
		}
		if c.WaitsInPod && (dependency == nil || dependency.Status.Version == "") {
			continue
		}
		if dependency == nil || !Done(dependency, cmp.Or(scope.ControlPlaneVersion, scope.Version), scope.HCP.Generation) {
			unmet = append(unmet, name)
		}
	}
	return unmet, nil
}

// dependency returns the ControlPlaneComponent of a component, nil if there is none. The client may read from a cache
// that does not have the status yet which this reconcile has written. That status is the first that says that the
// component rolls out, so it counts until the client reads a newer one.
func (s *Scope) dependency(ctx context.Context, name string) (*hyperv1.ControlPlaneComponent, error) {
	written := s.reported[name]
	found := &hyperv1.ControlPlaneComponent{}
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.HCP.Namespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return written, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ControlPlaneComponent %s: %w", name, err)
	}
	if written != nil {
		age, err := resourceversion.CompareResourceVersion(written.ResourceVersion, found.ResourceVersion)
		if err == nil && age > 0 {
			return written, nil
		}
	}
	return found, nil
}

// Done reports whether a component is available and has rolled out version for the HostedControlPlane's generation. The
// generation matters because two releases may have the same version: the status for the previous release says nothing
// about the next.
func Done(c *hyperv1.ControlPlaneComponent, version string, generation int64) bool {
	return c.Status.Version == version && c.Status.ObservedGeneration >= generation &&
		meta.IsStatusConditionTrue(c.Status.Conditions, string(hyperv1.ControlPlaneComponentAvailable)) &&
		meta.IsStatusConditionTrue(c.Status.Conditions, string(hyperv1.ControlPlaneComponentRolloutComplete))
}

// load reads a manifest of the component.
func (c *Component) load(scope *Scope, file string) (client.Object, error) {
	obj, err := manifest.Load(c.target(scope).Scheme(), c.Manifests, file)
	if err != nil {
		return nil, err
	}
	return obj, c.own(scope, obj)
}

// own sets the namespace and the owner of an object of the component.
func (c *Component) own(scope *Scope, obj client.Object) error {
	if c.Guest {
		return nil
	}
	obj.SetNamespace(scope.HCP.Namespace)
	switch o := obj.(type) {
	case *rbacv1.RoleBinding:
		for i := range o.Subjects {
			if o.Subjects[i].Kind == rbacv1.ServiceAccountKind {
				o.Subjects[i].Namespace = scope.HCP.Namespace
			}
		}
	case *corev1.ServiceAccount:
		o.ImagePullSecrets = []corev1.LocalObjectReference{{Name: pullSecretName}}
	}
	if _, workload := obj.(*appsv1.Deployment); c.Held && !workload {
		// The service account, the Role and the other objects that a held Deployment needs outlive the control plane too.
		// They are deleted with the namespace.
		return nil
	}
	if err := controllerutil.SetControllerReference(scope.HCP, obj, scope.Client.Scheme()); err != nil {
		return fmt.Errorf("owning %s: %w", obj.GetName(), err)
	}
	return nil
}

func (c *Component) adapt(ctx context.Context, scope *Scope, file string, obj client.Object) error {
	adapter, ok := c.Adapters[file]
	if !ok || adapter.adapt == nil {
		return nil
	}
	if err := adapter.adapt(ctx, scope, obj); err != nil {
		return fmt.Errorf("adapting %s of component %s: %w", file, c.Name, err)
	}
	return nil
}

func (c *Component) applyAuxiliary(ctx context.Context, scope *Scope, file string, result *outcome) error {
	obj, err := c.load(scope, file)
	if err != nil {
		return err
	}
	if adapter, ok := c.Adapters[file]; ok && !adapter.wants(scope) {
		return c.delete(ctx, scope, obj)
	}
	if err := c.adapt(ctx, scope, file, obj); err != nil {
		return err
	}
	if optional(scope.Client.Scheme(), obj) {
		return c.applyOptional(ctx, scope, obj, result)
	}
	return c.apply(ctx, scope, obj, result)
}

// Render returns the component's workload as it would be applied. The scope must have Infra and the images of the
// payload.
func (c *Component) Render(ctx context.Context, scope *Scope) (client.Object, error) {
	_, file, err := c.files()
	if err != nil {
		return nil, err
	}
	obj, err := c.load(scope, file)
	if err != nil {
		return nil, err
	}
	w, err := newWorkload(obj)
	if err != nil {
		return nil, err
	}
	if err := c.adapt(ctx, scope, file, obj); err != nil {
		return nil, err
	}
	if c.Guest {
		return obj, c.guestWorkload(ctx, scope, w)
	}
	return obj, c.setDefaults(ctx, scope, w)
}

func (c *Component) applyWorkload(ctx context.Context, scope *Scope, result *outcome) (*health, error) {
	obj, err := c.Render(ctx, scope)
	if err != nil {
		return nil, err
	}
	if job, ok := obj.(*batchv1.Job); ok {
		gone, err := c.replaceJob(ctx, scope, job)
		if err != nil || !gone {
			return nil, err
		}
	}
	if set, ok := obj.(*appsv1.StatefulSet); ok {
		gone, err := c.replaceStatefulSet(ctx, scope, set)
		if err != nil || !gone {
			return nil, err
		}
	}
	if c.Held {
		if terminating, err := c.endDeletion(ctx, scope); err != nil || terminating {
			return nil, err
		}
	}
	if err := c.apply(ctx, scope, obj, result); err != nil {
		return nil, err
	}
	if c.Guest {
		h, err := guestHealth(ctx, scope.Guest, scope.GuestNodes, obj)
		return &h, err
	}
	h := healthOf(obj)
	return &h, nil
}

// replaceJob deletes a Job of an older manifest, because its pod template is immutable. It reports whether the new Job
// can be applied.
func (c *Component) replaceJob(ctx context.Context, scope *Scope, wanted *batchv1.Job) (bool, error) {
	live := &batchv1.Job{}
	err := scope.Client.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Job %s: %w", wanted.Name, err)
	}
	same, err := upsert.AppliedFrom(scope.Client.Scheme(), live, wanted.DeepCopy())
	if err != nil || same {
		return same, err
	}
	err = scope.Client.Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationForeground))
	return false, client.IgnoreNotFound(err)
}

func (c *Component) apply(ctx context.Context, scope *Scope, obj client.Object, result *outcome) error {
	var err error
	if c.Guest {
		err = ApplyGuest(ctx, scope.Guest.Client, obj)
	} else if err = c.refuseCopy(ctx, scope, obj); err == nil {
		_, err = upsert.Apply(ctx, scope.Client, cmp.Or(scope.Operator, fieldOwner), obj)
	}
	if err != nil {
		return fmt.Errorf("component %s: %w", c.Name, err)
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	result.resources = append(result.resources, hyperv1.ComponentResource{Kind: gvk.Kind, Group: gvk.Group, Name: obj.GetName()})
	return nil
}

// refuseCopy returns an error if a user may have written the existing Secret or ConfigMap: an apply would keep the
// fields that obj does not set.
func (c *Component) refuseCopy(ctx context.Context, scope *Scope, obj client.Object) error {
	var live client.Object
	switch obj.(type) {
	case *corev1.Secret:
		live = &corev1.Secret{}
	case *corev1.ConfigMap:
		live = &corev1.ConfigMap{}
	default:
		return nil
	}
	return client.IgnoreNotFound(hosted.ReadTrusted(ctx, scope.Client, client.ObjectKeyFromObject(obj), live))
}

func waitingFor(unmet []string) string {
	return "Waiting for " + strings.Join(unmet, ", ")
}
