// Package workloads rolls out the components that run in the guest, on its nodes.
package workloads

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/guestcomponents"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/pausegate"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// resync heals what no watch tells of, such as a pod whose image cannot be pulled.
const resync = time.Minute

// Reconciler rolls out the components of one guest and reports each in a ControlPlaneComponent of the hosted namespace.
type Reconciler struct {
	// Management reads the hosted namespace and writes ControlPlaneComponents.
	Management client.Client
	// Guest is where the components run.
	Guest *component.Guest
	// Releases reads the release payload.
	Releases releaseinfo.Provider
	// Pause is heeded.
	Pause pausegate.Gate
	// OperateOnReleaseImage restricts the operator to control planes of this release image; empty means any.
	OperateOnReleaseImage string
}

// Reconcile implements reconcile.Reconciler. The request names the HostedControlPlane.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if closed, wait, err := r.Pause.Closed(ctx); err != nil || closed {
		return ctrl.Result{RequeueAfter: wait}, err
	}
	hcp := &hyperv1.HostedControlPlane{}
	if err := r.Management.Get(ctx, req.NamespacedName, hcp); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if hcp.DeletionTimestamp != nil || hcp.Status.ControlPlaneEndpoint.Host == "" {
		return ctrl.Result{}, nil
	}
	if r.OperateOnReleaseImage != "" && r.OperateOnReleaseImage != hcp.Spec.ReleaseImage {
		return ctrl.Result{}, nil
	}
	release, err := r.release(ctx, hcp)
	if err != nil {
		return ctrl.Result{}, err
	}
	scope := &component.Scope{
		Client: r.Management, Guest: r.Guest, HCP: hcp, Version: release.Version(), Images: release,
		ControlPlaneVersion: controlPlaneVersion(hcp),
	}
	var failures []error
	for _, c := range guestcomponents.Kubernetes() {
		failures = append(failures, c.Reconcile(ctx, scope))
	}
	return ctrl.Result{RequeueAfter: resync}, errors.Join(failures...)
}

// controlPlaneVersion is the version of the control plane where it has a release of its own; else empty.
func controlPlaneVersion(hcp *hyperv1.HostedControlPlane) string {
	if image := hcp.Spec.ControlPlaneReleaseImage; image == nil || *image == "" {
		return ""
	}
	return hcp.Status.ControlPlaneVersion.Desired.Version
}

func (r *Reconciler) release(ctx context.Context, hcp *hyperv1.HostedControlPlane) (*releaseinfo.ReleaseImage, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: hcp.Namespace, Name: hcp.Spec.PullSecret.Name}
	if err := r.Management.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading pull secret %s: %w", key, err)
	}
	return r.Releases.Lookup(ctx, hcp.Spec.ReleaseImage, secret.Data[corev1.DockerConfigJsonKey])
}
