// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/upsert"
)

// limitRangeName is the LimitRange of a hosted namespace.
const limitRangeName = "hypershift-defaults"

// LimitRange sets default requests and limits for containers that a release payload's operator or a third-party
// provider creates without any. The scheduler then counts these containers, and none of them can use all of a node. A
// platform whose machines run as pods gets no default limits, because they would also apply to the machines.
type LimitRange struct {
	Client client.Client
}

// Reconcile writes the LimitRange.
func (r LimitRange) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	live := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: limitRangeName}}
	_, err := upsert.Object(ctx, r.Client, live, func() error {
		s.Own(live)
		item := corev1.LimitRangeItem{
			Type: corev1.LimitTypeContainer,
			DefaultRequest: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
			},
		}
		if len(machinePods(s)) == 0 {
			item.Default = component.NamespaceLimits(s.HC.Annotations)
		}
		live.Spec.Limits = []corev1.LimitRangeItem{item}
		return nil
	})
	return ctrl.Result{}, err
}
