// SPDX-License-Identifier: Apache-2.0

// Package breakglass signs client certificates for the guest cluster that are requested in the management cluster. A
// request has two objects there. The CertificateSigningRequest names a signer that is named after the hosted
// namespace. A CertificateSigningRequestApproval of the same name in that namespace approves it. The package also
// revokes all certificates of a signer by replacing the signer, as CertificateRevocationRequests request.
package breakglass

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	certificatesv1alpha1 "github.com/openshift/hypershift/api/certificates/v1alpha1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/phase"
	supportpki "github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/upsert"
)

// retry is the requeue interval of a request whose signer is being replaced.
const retry = 10 * time.Second

// signers maps the class of a signer, which is the last part of its name, to the signer's Secret.
var signers = map[string]string{
	certificatesv1alpha1.CustomerBreakGlassSigner: pki.CustomerBreakGlassSigner,
	certificatesv1alpha1.SREBreakGlassSigner:      pki.SREBreakGlassSigner,
}

type csr = *certificatesv1.CertificateSigningRequest

// Signer approves and signs the requests of one hosted namespace.
type Signer struct {
	// Client accesses the management cluster. Its reads are cached.
	Client client.Client
	// Namespace is the hosted namespace. The Signer ignores requests for signers of other namespaces, even if they have
	// an approval here.
	Namespace string
	// Clock provides the start time of certificates.
	Clock clock.PassiveClock
}

// SetupWithManager watches requests and approvals. The CRD of the approvals must be installed.
func (r *Signer) SetupWithManager(mgr ctrl.Manager) error {
	sameName := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, approval client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: approval.GetName()}}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("break-glass").
		For(&certificatesv1.CertificateSigningRequest{}).
		Watches(&certificatesv1alpha1.CertificateSigningRequestApproval{}, sameName).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler. The request names the CertificateSigningRequest.
func (r *Signer) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[csr, csr]{
		Client: r.Client,
		Observe: func(_ context.Context, asked csr) (csr, error) {
			if r.classOf(asked) == "" || has(asked, certificatesv1.CertificateDenied) || has(asked, certificatesv1.CertificateFailed) || len(asked.Status.Certificate) > 0 {
				return nil, phase.ErrStop
			}
			return asked, nil
		},
		Phases: func(csr) []phase.Phase[csr] {
			return []phase.Phase[csr]{{Name: "approval", Critical: true, Run: r.approve}, {Name: "signature", Run: r.sign}}
		},
	}.Reconcile(ctx, req)
}

// classOf returns the class of the requested signer; empty if the signer is not one of this hosted namespace.
func (r *Signer) classOf(asked csr) string {
	class, ours := strings.CutPrefix(asked.Spec.SignerName, "hypershift.openshift.io/"+r.Namespace+".")
	if _, known := signers[class]; !ours || !known {
		return ""
	}
	return class
}

func has(asked csr, t certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(asked.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}

// approve approves a request that has an approval in the hosted namespace. Only a user with write access to that
// namespace can create one.
func (r *Signer) approve(ctx context.Context, asked csr) (ctrl.Result, error) {
	if has(asked, certificatesv1.CertificateApproved) {
		return ctrl.Result{}, nil
	}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: asked.Name}, &certificatesv1alpha1.CertificateSigningRequestApproval{})
	if err != nil {
		if client.IgnoreNotFound(err) == nil {
			return ctrl.Result{}, phase.ErrStop
		}
		return ctrl.Result{}, fmt.Errorf("reading CertificateSigningRequestApproval %s: %w", asked.Name, err)
	}
	asked.Status.Conditions = append(asked.Status.Conditions, r.said(certificatesv1.CertificateApproved, "ApprovalPresent",
		fmt.Sprintf("There is a CertificateSigningRequestApproval %s/%s", r.Namespace, asked.Name)))
	if err := r.Client.SubResource("approval").Update(ctx, asked); err != nil {
		return ctrl.Result{}, fmt.Errorf("approving CertificateSigningRequest %s: %w", asked.Name, err)
	}
	return ctrl.Result{}, nil
}

func (r *Signer) said(t certificatesv1.RequestConditionType, reason, message string) certificatesv1.CertificateSigningRequestCondition {
	now := metav1.NewTime(r.Clock.Now())
	return certificatesv1.CertificateSigningRequestCondition{
		Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now,
	}
}

// sign signs a request, or rejects it permanently with the reason.
func (r *Signer) sign(ctx context.Context, asked csr) (ctrl.Result, error) {
	class := r.classOf(asked)
	request, err := check(asked, class)
	if err != nil {
		return ctrl.Result{}, upsert.Status(ctx, r.Client, asked, func() {
			asked.Status.Conditions = append(asked.Status.Conditions, r.said(certificatesv1.CertificateFailed, "SignerValidationFailure", err.Error()))
		})
	}
	secret := &corev1.Secret{}
	if err := hosted.ReadTrusted(ctx, r.Client, client.ObjectKey{Namespace: r.Namespace, Name: signers[class]},
		secret); err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the signer of CertificateSigningRequest %s: %w", asked.Name, err)
	}
	if supportpki.Revoking(secret) {
		// A certificate signed now would be rejected in a minute, when the signer is replaced.
		return ctrl.Result{RequeueAfter: retry}, nil
	}
	signer, err := supportpki.CAOf(secret)
	if err != nil {
		return ctrl.Result{}, err
	}
	certificate, err := signer.SignClient(request, lifeOf(asked), r.Clock.Now())
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, upsert.Status(ctx, r.Client, asked, func() { asked.Status.Certificate = certificate })
}

// lifeOf returns the lifetime of the requested certificate, limited to the lifetime of break-glass certificates.
func lifeOf(asked csr) time.Duration {
	if asked.Spec.ExpirationSeconds == nil {
		return pki.BreakGlassCertificateLife
	}
	return min(time.Duration(*asked.Spec.ExpirationSeconds)*time.Second, pki.BreakGlassCertificateLife)
}

// usages are the key usages of a client certificate.
var usages = []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment}

// check parses a request, and returns an error that describes what is invalid in it. The user name identifies the user
// in the audit log. It also keeps break-glass users apart from nodes and programs, whose names determine their
// permissions.
func check(asked csr, class string) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(asked.Spec.Request)
	if block == nil {
		return nil, errors.New("spec.request holds no PEM")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("spec.request: %w", err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("spec.request: %w", err)
	}
	prefix := "system:" + class + ":"
	if name, ok := strings.CutPrefix(request.Subject.CommonName, prefix); !ok || name == "" {
		return nil, fmt.Errorf("the common name must be %s followed by a name: it is %q", prefix, request.Subject.CommonName)
	}
	if !slices.Contains(asked.Spec.Usages, certificatesv1.UsageClientAuth) {
		return nil, fmt.Errorf("spec.usages must name %q", certificatesv1.UsageClientAuth)
	}
	for _, usage := range asked.Spec.Usages {
		if !slices.Contains(usages, usage) {
			return nil, fmt.Errorf("spec.usages: %q is not for a client certificate; there are %v", usage, usages)
		}
	}
	return request, nil
}
