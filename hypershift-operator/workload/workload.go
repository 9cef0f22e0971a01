// Package workload applies Deployments. The API server fills in so many defaults that a Deployment which was read is
// never equal to the one that is wanted, so what was applied last is remembered by its hash.
package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/upsert"
)

// hashAnnotation holds the hash of the spec that was applied last.
const hashAnnotation = "hypershift.openshift.io/applied-spec-hash"

// Apply brings a Deployment to the wanted one: its spec, and those labels, annotations, finalizers and owners that wanted
// has; others are left. It writes when the wanted spec changed since it was last applied, or when somebody changed a
// field that wanted sets. The selector of an existing Deployment cannot change and is kept.
func Apply(ctx context.Context, c client.Client, wanted *appsv1.Deployment) (*appsv1.Deployment, error) {
	raw, err := json.Marshal(wanted.Spec)
	if err != nil {
		return nil, fmt.Errorf("encoding Deployment %s: %w", client.ObjectKeyFromObject(wanted), err)
	}
	hash := naming.Hash(string(raw))
	live := &appsv1.Deployment{}
	live.Namespace, live.Name = wanted.Namespace, wanted.Name
	_, err = upsert.Object(ctx, c, live, func() error {
		merge(live, wanted)
		if live.Annotations[hashAnnotation] == hash && equality.Semantic.DeepDerivative(wanted.Spec, live.Spec) {
			return nil
		}
		live.Annotations[hashAnnotation] = hash
		selector := live.Spec.Selector
		wanted.Spec.DeepCopyInto(&live.Spec)
		if selector != nil {
			live.Spec.Selector = selector
		}
		return nil
	})
	return live, err
}

func merge(live, wanted *appsv1.Deployment) {
	if live.Labels == nil {
		live.Labels = map[string]string{}
	}
	if live.Annotations == nil {
		live.Annotations = map[string]string{}
	}
	maps.Copy(live.Labels, wanted.Labels)
	maps.Copy(live.Annotations, wanted.Annotations)
	for _, finalizer := range wanted.Finalizers {
		controllerutil.AddFinalizer(live, finalizer)
	}
	for _, owner := range wanted.OwnerReferences {
		sameOwner := func(o metav1.OwnerReference) bool { return o.UID == owner.UID }
		if !slices.ContainsFunc(live.OwnerReferences, sameOwner) {
			live.OwnerReferences = append(live.OwnerReferences, owner)
		}
	}
}
