// SPDX-License-Identifier: Apache-2.0

// Package hostedcontrolplane reconciles a HostedControlPlane: it publishes its endpoints, creates its PKI and rolls out
// its components from the release payload.
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

// Finalizer keeps a HostedControlPlane until its control plane is deleted.
const Finalizer = hyperv1.HostedClusterFinalizer

const (
	// waitRequeue is the requeue interval of a control plane that is not ready, for changes that no watch reports.
	waitRequeue = 15 * time.Second
	// settledRequeue is the requeue interval of a ready control plane. At that interval, a reconcile renews certificates
	// and repairs changes that no watch reports.
	settledRequeue = time.Minute
)

// Reconciler reconciles HostedControlPlanes.
type Reconciler struct {
	// Client accesses the management cluster. Its reads are cached.
	Client client.Client
	// Clock provides the current time.
	Clock clock.PassiveClock
	// Releases reads release payloads.
	Releases releaseinfo.Provider
	// OperateOnReleaseImage restricts the operator to control planes of this release image; empty means any.
	OperateOnReleaseImage string
	// StaticImages are the images that the operator provides, by tag. They take precedence over the payload's.
	StaticImages map[string]string
	// Components configures the components that run the operator's own image.
	Components v2.Config
	// Infra publishes endpoints.
	Infra *infra.Reconciler
	// PKI manages certificates and kubeconfigs.
	PKI *pki.Reconciler
	// Health checks a published API server; the error says why it is not healthy.
	Health func(ctx context.Context, e component.Endpoint) error
	// Plugins asks the API server at a pod's address whether its encryption plugins answer; empty if they do.
	Plugins func(ctx context.Context, address string) string
	// Shows checks that the server at host:port has a certificate of these CAs (PEM) that names a host; the error says why
	// not.
	Shows func(ctx context.Context, address, host string, cas []byte) error
	// OwnEtcd checks that an etcd that the user provides serves the API server; the error says why not.
	OwnEtcd func(ctx context.Context, reader client.Reader, hcp *hyperv1.HostedControlPlane) error
	// MetricsSet selects the metrics that the components' monitors keep.
	MetricsSet string
	// PodUID runs pods as this user; nil leaves the choice to their images.
	PodUID *int64
}

// SetupWithManager watches HostedControlPlanes and all objects that their reconcile reads or writes.
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

// everyControlPlane maps an object that the control plane depends on but does not own to the control plane of its
// namespace.
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

// scope is the state of one reconcile of one control plane.
type scope struct {
	hcp *hyperv1.HostedControlPlane
	// paused is set by pause.
	paused bool
	// invalid says what in the spec cannot work; set by the validation phase.
	invalid error
	// valid is hcp with its last valid spec, which the later phases use; nil if there was none. Set by the validation
	// phase.
	valid *hyperv1.HostedControlPlane
	// release and guestRelease are the releases of the control plane and of its guest, which are usually the same. Set by
	// the release phase, which sets releaseErr if they could not be read.
	release, guestRelease *releaseinfo.ReleaseImage
	releaseErr            error
	// infra and waiting are set by the infrastructure phase.
	infra    *component.Infra
	waiting  string
	infraErr error
	// wanted is the desired address, and served are the published ones. Set by the infrastructure phase once an address
	// was published. wanted is nil until the address is known.
	wanted *hyperv1.ServedAddress
	served []hyperv1.ServedAddress
	// tunnel are the addresses of the tunnel; nil until the tunnel phase set them.
	tunnel *[]string
	// pkiErr is why certificates or kubeconfigs could not be created; set by the certificates phase.
	pkiErr error
	// missing are the payload tags that components lack; set by the components phase.
	missing []string
	// placing reports that pods wait for a node; set when the status is computed.
	placing bool
}

// applied returns the control plane as it is rolled out: by the valid spec of this reconcile or, if the reconcile did
// not get that far, by the existing one.
func (s *scope) applied() *hyperv1.HostedControlPlane {
	if s.valid != nil {
		return s.valid
	}
	return s.hcp
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// The HostedControlPlane owns all objects of its control plane, so the garbage collector deletes them.
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

// controlPlaneRelease returns the release image that the control plane runs.
func controlPlaneRelease(hcp *hyperv1.HostedControlPlane) string {
	if image := hcp.Spec.ControlPlaneReleaseImage; image != nil && *image != "" {
		return *image
	}
	return hcp.Spec.ReleaseImage
}
