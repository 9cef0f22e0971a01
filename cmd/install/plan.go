// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/objects"
	"github.com/openshift/hypershift/support/pause"
)

// plan is what an installation would change.
type plan struct {
	create, change, same int
	// images maps the operator's containers to their current and new image.
	images map[string][2]string
}

// maxPaths is the number of changed fields that are printed for one object.
const maxPaths = 4

// plan asks the API server what the installation would change, and prints it. It changes nothing.
func (i *install) plan(ctx context.Context, c client.Client, out io.Writer) error {
	var all []client.Object
	if i.scope != scopeResources {
		definitions, err := i.definitions()
		if err != nil {
			return err
		}
		others, err := foreign(ctx, c, definitions)
		if err != nil {
			return err
		}
		for _, crd := range definitions {
			if !others[crd.Name] {
				all = append(all, crd)
			}
		}
	}
	if i.scope != scopeCRDs {
		all = append(all, i.resources()...)
	}
	p := plan{images: map[string][2]string{}}
	for _, obj := range all {
		if err := p.add(ctx, c, obj, out); err != nil {
			return err
		}
	}
	return p.print(ctx, c, out)
}

// add compares the current object with the result of a dry run.
func (p *plan) add(ctx context.Context, c client.Client, obj client.Object, out io.Writer) error {
	before, after, err := preview(ctx, c, obj)
	if err != nil {
		return err
	}
	if before == nil {
		p.create++
		_, err = fmt.Fprintf(out, "create  %s\n", objects.Describe(obj))
		return err
	}
	paths := differences("", content(before), content(after))
	if len(paths) == 0 {
		p.same++
		return nil
	}
	p.change++
	if _, ok := obj.(*appsv1.Deployment); ok {
		p.addImages(before, after)
	}
	if more := len(paths) - maxPaths; more > 0 {
		paths = append(paths[:maxPaths], fmt.Sprintf("and %d more", more))
	}
	_, err = fmt.Fprintf(out, "change  %s: %s\n", objects.Describe(obj), strings.Join(paths, ", "))
	return err
}

// preview returns an object as it is, nil if it does not exist, and as it would be.
func preview(ctx context.Context, c client.Client, obj client.Object) (
	before, after *unstructured.Unstructured, err error,
) {
	after, err = objects.ToUnstructured(obj)
	if err != nil {
		return nil, nil, err
	}
	before = &unstructured.Unstructured{}
	before.SetGroupVersionKind(after.GroupVersionKind())
	switch err := c.Get(ctx, client.ObjectKeyFromObject(obj), before); {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil, after, nil
	case err != nil:
		return nil, nil, fmt.Errorf("read %s: %w", objects.Describe(obj), err)
	}
	// An installation does not change an existing PriorityClass.
	if _, ok := obj.(*schedulingv1.PriorityClass); ok {
		return before, before, nil
	}
	config := client.ApplyConfigurationFromUnstructured(after)
	if err := c.Apply(ctx, config, client.FieldOwner(FieldOwner), client.ForceOwnership, client.DryRunAll); err != nil {
		return nil, nil, fmt.Errorf("check %s: %w", objects.Describe(obj), err)
	}
	return before, after, nil
}

// content removes the fields that the API server maintains.
func content(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	unstructured.RemoveNestedField(u.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	return u.Object
}

// differences lists the paths of fields that differ. It omits the values, which may be secret.
func differences(path string, before, after any) []string {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	one, isMap := before.(map[string]any)
	other, both := after.(map[string]any)
	if isMap && both {
		var all []string
		keys := maps.Clone(one)
		maps.Copy(keys, other)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			all = append(all, differences(strings.TrimPrefix(path+"."+key, "."), one[key], other[key])...)
		}
		return all
	}
	list, isList := before.([]any)
	others, both := after.([]any)
	if !isList || !both || len(list) != len(others) {
		return []string{path}
	}
	var all []string
	for i := range list {
		all = append(all, differences(fmt.Sprintf("%s[%d]", path, i), list[i], others[i])...)
	}
	return all
}

// addImages records which images of a Deployment change.
func (p *plan) addImages(before, after *unstructured.Unstructured) {
	images := func(u *unstructured.Unstructured) map[string]string {
		containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		all := map[string]string{}
		for _, c := range containers {
			if container, ok := c.(map[string]any); ok {
				all[fmt.Sprint(container["name"])] = fmt.Sprint(container["image"])
			}
		}
		return all
	}
	old := images(before)
	for name, image := range images(after) {
		if old[name] != "" && old[name] != image {
			p.images[name] = [2]string{old[name], image}
		}
	}
}

// print writes the totals, and the consequences for hosted clusters.
func (p *plan) print(ctx context.Context, c client.Client, out io.Writer) error {
	for _, name := range slices.Sorted(maps.Keys(p.images)) {
		image := p.images[name]
		fmt.Fprintf(out, "\nThe image of container %s changes\n  from %s\n  to   %s\n", name, image[0], image[1])
	}
	if len(p.images) > 0 {
		if err := printControlPlanes(ctx, c, out); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "\n%d objects to create, %d to change, %d unchanged. Nothing was changed.\n",
		p.create, p.change, p.same)
	return err
}

// printControlPlanes lists the hosted clusters whose control plane gets the new image.
func printControlPlanes(ctx context.Context, c client.Client, out io.Writer) error {
	var clusters hyperv1.HostedClusterList
	if err := c.List(ctx, &clusters); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("list HostedClusters: %w", err)
	}
	if len(clusters.Items) == 0 {
		return nil
	}
	fmt.Fprint(out, "\nThe control planes of these HostedClusters take the image, "+
		"unless an OpenShift payload brings their operators:\n")
	for i := range clusters.Items {
		hc, when := &clusters.Items[i], ""
		if pause.Until(hc.Spec.PausedUntil, time.Now()).Paused {
			when = " (when spec.pausedUntil is over)"
		}
		fmt.Fprintf(out, "  %s%s\n", client.ObjectKeyFromObject(hc), when)
	}
	_, err := fmt.Fprintln(out, "An upgrade of the operator rolls no NodePool and calls MAAS for no machine that is well.")
	return err
}
