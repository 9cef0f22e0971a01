// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/token"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/reference"
)

const releaseRetry = 20 * time.Second

// reconcileRelease reads the pool's payload and checks it against the control plane's.
func (r *Reconciler) reconcileRelease(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	if err := r.lookup(ctx, s); err != nil {
		return ctrl.Result{RequeueAfter: releaseRetry}, r.refuseRelease(ctx, s, err)
	}
	if err := r.rememberRelease(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.gate(ctx, s); err != nil {
		return ctrl.Result{RequeueAfter: releaseRetry}, r.refuseRelease(ctx, s, err)
	}
	s.SetTrue(hyperv1.NodePoolValidReleaseImageConditionType, "The release image has version "+s.Release.Version())
	s.reportSkew()
	s.validateAutoscaler()
	return ctrl.Result{}, s.validatePlatform()
}

// refuseRelease reports why the pool cannot use its release. Its machines stay unchanged, and their number still
// follows the spec.
func (r *Reconciler) refuseRelease(ctx context.Context, s *reconciliation, why error) error {
	s.SetFalse(hyperv1.NodePoolValidReleaseImageConditionType, hyperv1.NodePoolValidationFailedReason, why.Error())
	if s.Paused() {
		return phase.ErrStop
	}
	return r.stopHolding(ctx, s, hyperv1.NodePoolValidationFailedReason, why.Error())
}

// lookup reads the payload that the pool names.
func (r *Reconciler) lookup(ctx context.Context, s *reconciliation) error {
	if refusals := r.Limits.NodePool(s.Pool); len(refusals) > 0 {
		return errors.New(strings.Join(refusals, "; "))
	}
	if err := r.reachRegistries(ctx, s); err != nil {
		return err
	}
	err := r.observeControlPlane(ctx, s)
	if err != nil {
		return err
	}
	image := release.OfPool(s.Pool, s.hcp)
	s.Release, err = r.Releases.Lookup(ctx, image, s.access)
	if err != nil && image != s.Pool.Spec.Release.Image {
		return fmt.Errorf("%w (spec.release.image %s meant that image when it was set; to use another image, "+
			"set another tag or a digest)", err, s.Pool.Spec.Release.Image)
	}
	return err
}

// observeControlPlane reads the HostedControlPlane, which records the control plane's releases.
func (r *Reconciler) observeControlPlane(ctx context.Context, s *reconciliation) error {
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace(), Name: s.HC.Name}}
	exists, err := scope.Exists(ctx, r.Client, hcp)
	if exists {
		s.hcp = hcp
	}
	return err
}

// reachRegistries gathers the credentials, CAs, and mirrors with which the cluster reads payloads.
func (r *Reconciler) reachRegistries(ctx context.Context, s *reconciliation) error {
	data, err := scope.SecretData(ctx, r.Client, s.Pool.Namespace, s.HC.Spec.PullSecret.Name)
	if err != nil {
		return err
	}
	if s.pullSecret = data[corev1.DockerConfigJsonKey]; len(s.pullSecret) == 0 {
		return fmt.Errorf("the cluster's pull secret %s/%s is missing or has no %s: create it",
			s.Pool.Namespace, s.HC.Spec.PullSecret.Name, corev1.DockerConfigJsonKey)
	}
	bundle, err := r.trustBundle(ctx, s)
	if err != nil {
		return err
	}
	s.access = release.Access{PullSecret: s.pullSecret, TrustBundle: []byte(bundle), Mirrors: s.HC.Spec.ImageContentSources}
	return nil
}

// trustBundle returns the cluster's additional CAs; empty if there are none.
func (r *Reconciler) trustBundle(ctx context.Context, s *reconciliation) (string, error) {
	name := reference.Name(s.HC.Spec.AdditionalTrustBundle)
	if name == "" {
		return "", nil
	}
	bundle := &corev1.ConfigMap{}
	key := ctrlKey(s.Pool.Namespace, name)
	if err := r.Client.Get(ctx, key, bundle); err != nil {
		return "", fmt.Errorf("reading the cluster's trust bundle, ConfigMap %s: %w", key, err)
	}
	return bundle.Data[naming.TrustBundleKey], nil
}

// requireIgnition stops the reconcile until the endpoint and the CA exist that machines need to fetch their
// configuration.
func (r *Reconciler) requireIgnition(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	conditionType := string(hyperv1.IgnitionEndpointAvailable)
	if s.HC.Status.IgnitionEndpoint == "" {
		s.SetFalse(conditionType, hyperv1.IgnitionEndpointMissingReason, "Waiting for the cluster's ignition endpoint"+token.EndpointTrouble(s.HC))
		return ctrl.Result{RequeueAfter: waitPoll}, phase.ErrStop
	}
	data, err := scope.SecretData(ctx, r.Client, s.Namespace(), naming.IgnitionServerCA)
	if err != nil {
		return ctrl.Result{}, err
	}
	if s.ignitionCA = data[corev1.TLSCertKey]; len(s.ignitionCA) == 0 {
		s.SetFalse(conditionType, hyperv1.IgnitionCACertMissingReason, "Waiting for the CA of the cluster's ignition-server")
		return ctrl.Result{RequeueAfter: waitPoll}, phase.ErrStop
	}
	s.Clear(conditionType)
	if s.HC.Status.KubeConfig == nil {
		s.SetFalse(hyperv1.NodePoolValidMachineConfigConditionType, "KubeconfigMissing", "Waiting for the cluster's kubeconfig")
		return ctrl.Result{RequeueAfter: waitPoll}, phase.ErrStop
	}
	return ctrl.Result{}, nil
}
