// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/condition"
	supportpki "github.com/openshift/hypershift/support/pki"
)

func (r *Reconciler) certify(ctx context.Context, s *scope) (ctrl.Result, error) {
	s.pkiErr = r.PKI.Reconcile(ctx, s.valid, s.infra)
	return ctrl.Result{}, s.pkiErr
}

// certifyPaused renews the certificates of a paused control plane.
func (r *Reconciler) certifyPaused(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !s.paused {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.renew(ctx, s)
}

// renew renews certificates by the last valid spec when the rest of the control plane cannot be reconciled, and
// restarts the pods that use them. Certificates expire regardless of what blocks the rest.
func (r *Reconciler) renew(ctx context.Context, s *scope) error {
	spec, err := r.rememberedSpec(ctx, s.hcp)
	if err != nil || spec == nil || s.hcp.Status.ControlPlaneEndpoint.Host == "" {
		return err
	}
	hcp := s.hcp.DeepCopy()
	hcp.Spec = *spec
	if s.pkiErr = r.PKI.Reconcile(ctx, hcp, r.Infra.Published(hcp)); s.pkiErr != nil {
		return s.pkiErr
	}
	return component.Refresh(ctx, r.Client, hcp.Namespace)
}

// certificatesValid reports certificates that expire soon although they should have been renewed.
func certificatesValid(secrets []corev1.Secret, now time.Time) metav1.Condition {
	t := string(hyperv1.CertificatesValid)
	var expiring []string
	for i := range secrets {
		if at := supportpki.Overdue(&secrets[i], now); !at.IsZero() {
			expiring = append(expiring, fmt.Sprintf("Secret %s: %s", secrets[i].Name, at.Format(time.RFC3339)))
		}
	}
	if len(expiring) == 0 {
		return condition.True(t, hyperv1.AsExpectedReason, "")
	}
	slices.Sort(expiring)
	return condition.False(t, "CertificatesExpiring", "Certificates expire soon: "+strings.Join(expiring, ", "))
}

// stageReasons are the reasons and messages of SignersUpToDate, by the stage of a rotation.
var stageReasons = map[supportpki.Stage]struct{ reason, does string }{
	supportpki.Trusting:    {"TrustInProgress", "all pods learn to trust the next signer"},
	supportpki.Signing:     {"SigningInProgress", "all pods switch to certificates of the next signer"},
	supportpki.Overlapping: {"FormerTrusted", "the previous signer is still trusted"},
}

// signersUpToDate reports the progress of rotations. A previous signer that is still trusted needs no action.
func signersUpToDate(secrets []corev1.Secret) metav1.Condition {
	t := string(hyperv1.SignersUpToDate)
	rotating := pki.Rotating(secrets)
	var parts []string
	reason := hyperv1.AsExpectedReason
	for _, stage := range []supportpki.Stage{supportpki.Overlapping, supportpki.Signing, supportpki.Trusting} {
		var names []string
		for _, name := range slices.Sorted(maps.Keys(rotating)) {
			if rotating[name] == stage {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			reason = stageReasons[stage].reason
			parts = append(parts, fmt.Sprintf("%s: %s", strings.Join(names, ", "), stageReasons[stage].does))
		}
	}
	message := strings.Join(parts, "; ")
	if reason == hyperv1.AsExpectedReason || reason == stageReasons[supportpki.Overlapping].reason {
		return condition.True(t, reason, message)
	}
	return condition.False(t, reason, message)
}
