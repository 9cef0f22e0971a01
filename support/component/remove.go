// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// remove deletes all objects that the component may have created.
func (c *Component) remove(ctx context.Context, scope *Scope) error {
	auxiliary, workloadFile, err := c.files()
	if err != nil {
		return err
	}
	var failures []error
	for _, file := range append([]string{workloadFile}, auxiliary...) {
		obj, err := c.load(scope, file)
		if err == nil {
			err = c.delete(ctx, scope, obj)
		}
		failures = append(failures, err)
	}
	for _, obj := range c.access(auxiliary) {
		failures = append(failures, c.own(scope, obj), c.delete(ctx, scope, obj))
	}
	report := &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: scope.HCP.Namespace, Name: c.Name}}
	failures = append(failures, c.deleteFrom(ctx, scope.Client, report, scope.made))
	return errors.Join(failures...)
}

// delete deletes obj if it exists and belongs to the component. It leaves an object with the same name that another
// user created.
func (c *Component) delete(ctx context.Context, scope *Scope, obj client.Object) error {
	ours := scope.made
	if optional(scope.Client.Scheme(), obj) {
		var err error
		if obj, err = uncached(scope.Client.Scheme(), obj); err != nil {
			return err
		}
		// Objects of a held component have no owner; their label identifies the component.
		ours = func(obj client.Object) bool { return obj.GetLabels()[componentLabel] == c.Name }
	}
	if c.Guest {
		ours = func(obj client.Object) bool { return obj.GetLabels()[GuestLabel] != "" }
	}
	return c.deleteFrom(ctx, c.target(scope), obj, ours)
}

// made reports whether the hosted control plane of the scope owns obj.
func (s *Scope) made(obj client.Object) bool { return metav1.IsControlledBy(obj, s.HCP) }

func (c *Component) deleteFrom(ctx context.Context, cluster client.Client, obj client.Object, ours func(client.Object) bool) error {
	err := cluster.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if absent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %T %s of component %s: %w", obj, obj.GetName(), c.Name, err)
	}
	if !ours(obj) || obj.GetDeletionTimestamp() != nil {
		return nil
	}
	err = cluster.Delete(ctx, obj, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %T %s of component %s: %w", obj, obj.GetName(), c.Name, err)
	}
	return nil
}
