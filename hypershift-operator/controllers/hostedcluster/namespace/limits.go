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
	"github.com/openshift/hypershift/support/upsert"
)

// limitRangeName is the LimitRange of a hosted namespace.
const limitRangeName = "hypershift-defaults"

// LimitRange sets default requests for containers that a release payload's operator or a third-party provider
// runs without any, so that the scheduler counts them. It sets no default limits, because they would also apply to the
// pods of virtual machines.
type LimitRange struct {
	Client client.Client
}

// Reconcile writes the LimitRange.
func (r LimitRange) Reconcile(ctx context.Context, s *cluster.Scope) (ctrl.Result, error) {
	live := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: limitRangeName}}
	_, err := upsert.Object(ctx, r.Client, live, func() error {
		s.Own(live)
		live.Spec.Limits = []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer,
			DefaultRequest: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
			},
		}}
		return nil
	})
	return ctrl.Result{}, err
}
