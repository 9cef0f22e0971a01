// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cmd/objects"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/skew"
)

// written counts the objects of an installation by what happened to them.
type written struct {
	created, changed, same int
	// started is true from the first request that writes, also if that request fails.
	started bool
}

// report prints the summary of an installation. before is the version that was installed; empty if there was none.
func (w *written) report(report *progress.Reporter, before string) {
	replaced := ""
	if before != "" {
		replaced = " in place of " + before
	}
	report.Printf("version %s is installed%s: %d objects created, %d changed, %d unchanged", skew.Version, replaced,
		w.created, w.changed, w.same)
}

// incomplete adds the remedy to the error of an installation that may have written some of its objects.
func (w *written) incomplete(err error) error {
	if !w.started {
		return err
	}
	return fmt.Errorf("%w; run the command again to complete the installation", err)
}

// applyResource applies an object. It only creates PriorityClasses: their value is immutable, and an administrator may
// have chosen another.
func (w *written) applyResource(ctx context.Context, c client.Client, obj client.Object) error {
	if _, ok := obj.(*schedulingv1.PriorityClass); !ok {
		return w.apply(ctx, c, obj)
	}
	w.started = true
	switch err := objects.Create(ctx, c, obj); {
	case apierrors.IsAlreadyExists(err):
		w.same++
	case err != nil:
		return fmt.Errorf("create %s: %w", objects.Describe(obj), err)
	default:
		w.created++
	}
	return nil
}

// apply applies an object, and compares its resource version with the one before.
func (w *written) apply(ctx context.Context, c client.Client, obj client.Object) error {
	after, err := objects.ToUnstructured(obj)
	if err != nil {
		return err
	}
	before := &metav1.PartialObjectMetadata{}
	before.SetGroupVersionKind(after.GroupVersionKind())
	err = c.Get(ctx, client.ObjectKeyFromObject(obj), before)
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return fmt.Errorf("read %s: %w", objects.Describe(obj), err)
	}
	w.started = true
	config := client.ApplyConfigurationFromUnstructured(after)
	if err := c.Apply(ctx, config, client.FieldOwner(FieldOwner), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply %s: %w", objects.Describe(obj), err)
	}
	w.count(before, after)
	return nil
}

func (w *written) count(before *metav1.PartialObjectMetadata, after *unstructured.Unstructured) {
	switch before.ResourceVersion {
	case "":
		w.created++
	case after.GetResourceVersion():
		w.same++
	default:
		w.changed++
	}
}
