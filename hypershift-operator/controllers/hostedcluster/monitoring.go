// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"strings"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/management"
)

// servedAfter is how long an API server may take to serve a kind after its CRD was created.
const servedAfter = 10 * time.Second

// whenMonitored reconciles all clusters when a Prometheus operator is installed. It delays the reconcile, because the
// API server serves a kind some time after its CRD was created.
func (r *Reconciler) whenMonitored() handler.EventHandler {
	all := func(ctx context.Context, crd client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		clusters := &hyperv1.HostedClusterList{}
		if !strings.HasSuffix(crd.GetName(), "."+management.Monitoring) || r.Client.List(ctx, clusters) != nil {
			return
		}
		for i := range clusters.Items {
			queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&clusters.Items[i])}, servedAfter)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			all(ctx, e.Object, queue)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			all(ctx, e.ObjectNew, queue)
		},
	}
}
