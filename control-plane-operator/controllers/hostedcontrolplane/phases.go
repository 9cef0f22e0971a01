// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	v2 "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/clusterautoscaler"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/releaseinfo"
)

func (r *Reconciler) phases(*scope) []phase.Phase[*scope] {
	return []phase.Phase[*scope]{
		{Name: "validation", Critical: true, Run: r.validate},
		{Name: "infrastructure", Critical: true, Run: r.publish},
		{Name: "certificates", Critical: true, Run: r.certify},
		{Name: "certificates while paused", WhilePaused: true, Run: r.certifyPaused},
		{Name: "release payload", Critical: true, Run: r.readRelease},
		{Name: "tunnel", Run: r.publishTunnel},
		{Name: "components", Run: r.rollOut},
	}
}

// pause keeps the control plane unchanged except for its certificates, and requeues at the usual interval.
func (r *Reconciler) pause(_ context.Context, s *scope) (pause.State, error) {
	state := pause.Until(s.hcp.Spec.PausedUntil, r.Clock.Now())
	if s.paused = state.Paused; s.paused && (state.For == 0 || state.For > resync(s)) {
		state.For = resync(s)
	}
	return state, nil
}

func (r *Reconciler) publish(ctx context.Context, s *scope) (ctrl.Result, error) {
	result, err := r.Infra.Reconcile(ctx, s.valid)
	s.infra, s.waiting, s.infraErr = result.Infra, result.Waiting, err
	r.goOver(s)
	if err == nil && s.infra != nil {
		return ctrl.Result{}, nil
	}
	// Certificates expire regardless of what blocks the endpoints.
	if err := errors.Join(err, r.renew(ctx, s)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, phase.ErrStop
}

// publishTunnel publishes the tunnel to the cluster network, if the release has it.
func (r *Reconciler) publishTunnel(ctx context.Context, s *scope) (ctrl.Result, error) {
	if _, ok := s.release.ComponentImage(kubeapiserver.TunnelImage); !ok {
		s.tunnel = &[]string{}
		return ctrl.Result{}, r.Infra.NoTunnel(ctx, s.valid)
	}
	addresses, err := r.Infra.Tunnel(ctx, s.valid)
	if err == nil {
		s.tunnel = &addresses
	}
	return ctrl.Result{}, err
}

func (r *Reconciler) readRelease(ctx context.Context, s *scope) (ctrl.Result, error) {
	if s.release, s.releaseErr = r.lookup(ctx, s.valid, controlPlaneRelease(s.valid)); s.releaseErr != nil {
		return ctrl.Result{}, s.releaseErr
	}
	if s.guestRelease, s.releaseErr = r.lookup(ctx, s.valid, s.valid.Spec.ReleaseImage); s.releaseErr != nil {
		return ctrl.Result{}, s.releaseErr
	}
	if d := s.release.Distribution(); distributions.Of(d).OwnOperators {
		s.releaseErr = fmt.Errorf("release %s is of the %s distribution, which brings a control-plane-operator of its own; "+
			"remove the annotation hypershift.openshift.io/control-plane-operator-image from the HostedCluster", s.release.Version(), d)
		return ctrl.Result{}, phase.ErrStop
	}
	return ctrl.Result{}, nil
}

func (r *Reconciler) lookup(ctx context.Context, hcp *hyperv1.HostedControlPlane, image string) (*releaseinfo.ReleaseImage, error) {
	pullSecret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: hcp.Namespace, Name: hcp.Spec.PullSecret.Name}
	if err := r.Client.Get(ctx, key, pullSecret); err != nil {
		return nil, fmt.Errorf("reading pull secret %s: %w", key, err)
	}
	return r.Releases.Lookup(ctx, image, pullSecret.Data[corev1.DockerConfigJsonKey])
}

// images finds images in the payload and among those that the operator provides.
type images struct {
	static  map[string]string
	release *releaseinfo.ReleaseImage
}

// ComponentImage implements component.Images.
func (i images) ComponentImage(tag string) (string, bool) {
	if image, ok := i.static[tag]; ok {
		return image, true
	}
	return i.release.ComponentImage(tag)
}

// staticImages returns the images that take precedence over the payload's: those that the operator provides, and those
// that the cluster specifies.
func (r *Reconciler) staticImages(hcp *hyperv1.HostedControlPlane) map[string]string {
	static := map[string]string{}
	maps.Copy(static, r.StaticImages)
	if image := hcp.Annotations[hyperv1.ClusterAutoscalerImage]; image != "" {
		static[clusterautoscaler.Name] = image
	}
	return static
}

func (r *Reconciler) rollOut(ctx context.Context, s *scope) (ctrl.Result, error) {
	cs := &component.Scope{
		Client: r.Client, HCP: s.valid, Version: s.release.Version(), Infra: s.infra, PodUID: r.PodUID, MetricsSet: r.MetricsSet,
		Images: images{static: r.staticImages(s.valid), release: s.release},
	}
	var failures []error
	for _, c := range v2.Kubernetes(r.Components) {
		err := c.Reconcile(ctx, cs)
		if missing, ok := errors.AsType[*component.MissingImagesError](err); ok {
			s.missing = append(s.missing, missing.Tags...)
		}
		failures = append(failures, err)
	}
	slices.Sort(s.missing)
	s.missing = slices.Compact(s.missing)
	return ctrl.Result{}, errors.Join(failures...)
}
