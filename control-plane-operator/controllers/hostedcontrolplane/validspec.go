// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	v2 "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// validSpecSecret stores the last valid spec. It is not a ConfigMap, since the URL of a proxy may contain a password.
	validSpecSecret = hosted.LastValidSpec
	validSpecKey    = hosted.LastValidSpecKey
)

// validate selects the spec for this reconcile. If the current spec is invalid, the reconcile uses the last valid
// spec. Certificates expire, key migrations continue and pods fail, whether or not the user fixes a field.
func (r *Reconciler) validate(ctx context.Context, s *scope) (ctrl.Result, error) {
	s.invalid = errors.Join(r.Infra.Validate(s.hcp), v2.Validate(s.hcp))
	if s.invalid == nil {
		s.valid = s.hcp
		return ctrl.Result{}, r.rememberSpec(ctx, s.hcp)
	}
	spec, err := r.rememberedSpec(ctx, s.hcp)
	if err != nil {
		return ctrl.Result{}, err
	}
	if spec == nil {
		return ctrl.Result{}, phase.ErrStop
	}
	s.valid = s.hcp.DeepCopy()
	s.valid.Spec = *spec
	return ctrl.Result{}, nil
}

func (r *Reconciler) rememberSpec(ctx context.Context, hcp *hyperv1.HostedControlPlane) error {
	raw, err := json.Marshal(hcp.Spec)
	if err != nil {
		return fmt.Errorf("encoding the spec of HostedControlPlane %s/%s: %w", hcp.Namespace, hcp.Name, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: validSpecSecret}}
	_, err = upsert.Object(ctx, r.Client, secret, func() error {
		if err := hosted.Trusted(secret); err != nil {
			return err
		}
		secret.Data = map[string][]byte{validSpecKey: raw}
		return controllerutil.SetControllerReference(hcp, secret, r.Client.Scheme())
	})
	return err
}

// rememberedSpec returns the last valid spec; nil for a control plane that never had one.
func (r *Reconciler) rememberedSpec(ctx context.Context, hcp *hyperv1.HostedControlPlane) (*hyperv1.HostedControlPlaneSpec, error) {
	secret := &corev1.Secret{}
	found, err := r.find(ctx, hcp.Namespace, validSpecSecret, secret)
	if err != nil || !found {
		return nil, err
	}
	if err := hosted.Trusted(secret); err != nil {
		return nil, err
	}
	// The Secret must be owned by the control plane: a tenant's Secret that was copied here has no owner, and its spec
	// would bypass all validation.
	if !metav1.IsControlledBy(secret, hcp) {
		return nil, fmt.Errorf("reading the last valid spec: Secret %s/%s was not written by this control plane; delete it",
			hcp.Namespace, validSpecSecret)
	}
	spec := &hyperv1.HostedControlPlaneSpec{}
	if err := json.Unmarshal(secret.Data[validSpecKey], spec); err != nil {
		return nil, fmt.Errorf("reading the last valid spec in Secret %s/%s: %w", hcp.Namespace, validSpecSecret, err)
	}
	hosted.UpgradeReferences(spec, &hcp.Spec)
	return spec, nil
}
