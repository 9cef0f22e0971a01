// SPDX-License-Identifier: Apache-2.0

// Package hostedcontrolplane reconciles a HostedControlPlane: it publishes its endpoints, makes its PKI and rolls out its
// components from the release payload.
package hostedcontrolplane

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/infra"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	v2 "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// Finalizer keeps a HostedControlPlane until its control plane is gone.
const Finalizer = hyperv1.HostedClusterFinalizer

const (
	// waitRequeue is how soon a control plane that is not ready is looked at again if no watch fires.
	waitRequeue = 15 * time.Second
	// settledRequeue renews certificates and heals what no watch tells of.
	settledRequeue = time.Minute
)

// Reconciler reconciles HostedControlPlanes.
type Reconciler struct {
	// Client reads (cached) and writes the management cluster.
	Client client.Client
	// Clock tells the time.
	Clock clock.PassiveClock
	// Releases reads release payloads.
	Releases releaseinfo.Provider
	// OperateOnReleaseImage restricts the operator to control planes of this release image; empty means any.
	OperateOnReleaseImage string
	// StaticImages are images that the operator brings itself, by tag; they win over the payload's.
	StaticImages map[string]string
	// Components is what the components that run the operator's own image get.
	Components v2.Config
	// Infra publishes endpoints.
	Infra *infra.Reconciler
	// PKI keeps certificates and kubeconfigs.
	PKI *pki.Reconciler
	// Health asks a published API server whether it is well; an error says why not.
	Health func(ctx context.Context, e component.Endpoint) error
	// Plugins asks the API server at a pod's address whether the plugins that encrypt Secrets answer; empty if they do.
	Plugins func(ctx context.Context, address string) string
	// Shows asks the server at host:port for a certificate of these CAs (PEM) that names a host; an error says why it shows none.
	Shows func(ctx context.Context, address, host string, cas []byte) error
	// OwnEtcd asks an etcd that the user brings whether it serves the API server; an error says why not.
	OwnEtcd func(ctx context.Context, reader client.Reader, hcp *hyperv1.HostedControlPlane) error
	// MetricsSet says which metrics monitors of the components keep.
	MetricsSet string
	// PodUID runs pods as this user; nil leaves the choice to their images.
	PodUID *int64
}

// SetupWithManager watches HostedControlPlanes and all that their reconcile reads or writes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(r.everyControlPlane)
	return ctrl.NewControllerManagedBy(mgr).
		For(&hyperv1.HostedControlPlane{}).
		Owns(&hyperv1.ControlPlaneComponent{}).
		Owns(&appsv1.Deployment{}).
		Owns(&appsv1.StatefulSet{}).
		Owns(&batchv1.Job{}).
		Owns(&corev1.Service{}).
		Watches(&corev1.Secret{}, all).
		Watches(&corev1.ConfigMap{}, all).
		WithOptions(controller.Options{RateLimiter: phase.Backoff(time.Second, 10*time.Second)}).
		Complete(r)
}

// everyControlPlane maps an input, which has no owner of ours, to the one control plane of its namespace.
func (r *Reconciler) everyControlPlane(ctx context.Context, obj client.Object) []reconcile.Request {
	list := &hyperv1.HostedControlPlaneList{}
	if err := r.Client.List(ctx, list, client.InNamespace(obj.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing HostedControlPlanes", "namespace", obj.GetNamespace())
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// scope is one pass over one control plane.
type scope struct {
	hcp *hyperv1.HostedControlPlane
	// paused is set by pause.
	paused bool
	// invalid is set by the validation phase: what of the spec cannot work here.
	invalid error
	// valid is hcp with the last spec that can, which the phases after go by; nil while there was none. Set by the validation
	// phase.
	valid *hyperv1.HostedControlPlane
	// release and guestRelease are set by the release phase: what the control plane and its guest run, mostly one and the
	// same. releaseErr is set when they could not be.
	release, guestRelease *releaseinfo.ReleaseImage
	releaseErr            error
	// infra and waiting are set by the infrastructure phase.
	infra    *component.Infra
	waiting  string
	infraErr error
	// wanted is the address that the spec asks for, and served are those that are there; set by the infrastructure phase once one was
	// published. wanted is nil while it is waited for.
	wanted *hyperv1.ServedAddress
	served []hyperv1.ServedAddress
	// pkiErr is set by the certificates phase: why certificates or kubeconfigs could not be made.
	pkiErr error
	// missing are the payload tags that components lack; set by the components phase.
	missing []string
	// placing tells that pods wait for a node; set when the status is computed.
	placing bool
}

// applied is the control plane as it is rolled out: by the spec of this pass, or, in one that did not come as far, by the one
// that is there.
func (s *scope) applied() *hyperv1.HostedControlPlane {
	if s.valid != nil {
		return s.valid
	}
	return s.hcp
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// All that a control plane has is owned by it, so a deletion is the garbage collector's work.
	return phase.Driver[*hyperv1.HostedControlPlane, *scope]{
		Client: r.Client, Finalizers: []string{Finalizer}, Observe: r.begin, Pause: r.pause, Phases: r.phases, Report: r.updateStatus, Resync: resync,
	}.Reconcile(ctx, req)
}

func (r *Reconciler) begin(ctx context.Context, hcp *hyperv1.HostedControlPlane) (*scope, error) {
	release := controlPlaneRelease(hcp)
	if hcp.DeletionTimestamp.IsZero() && r.OperateOnReleaseImage != "" && r.OperateOnReleaseImage != release {
		ctrl.LoggerFrom(ctx).Info("Leaving the control plane to the operator of its own release", "release", release)
		return nil, phase.ErrStop
	}
	if hcp.DeletionTimestamp.IsZero() && hcp.Annotations[hyperv1.RestoringAnnotation] != "" {
		ctrl.LoggerFrom(ctx).Info("Waiting for the keys and the data of a backup")
		if err := r.tellRestoring(ctx, hcp); err != nil {
			return nil, err
		}
		return nil, phase.ErrStop
	}
	return &scope{hcp: hcp}, nil
}

func resync(s *scope) time.Duration {
	if s.hcp.Status.Ready && !s.placing && !meta.IsStatusConditionFalse(s.hcp.Status.Conditions, string(hyperv1.PublishedAddressUpToDate)) {
		return settledRequeue
	}
	return waitRequeue
}

// controlPlaneRelease is the release image that the control plane runs.
func controlPlaneRelease(hcp *hyperv1.HostedControlPlane) string {
	if image := hcp.Spec.ControlPlaneReleaseImage; image != nil && *image != "" {
		return *image
	}
	return hcp.Spec.ReleaseImage
}
