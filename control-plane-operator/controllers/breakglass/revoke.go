// SPDX-License-Identifier: Apache-2.0

package breakglass

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	certificatesv1alpha1 "github.com/openshift/hypershift/api/certificates/v1alpha1"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/phase"
	supportpki "github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/upsert"
)

// again is the requeue interval of a revocation in progress: no watch reports that pods have rolled out.
const again = 10 * time.Second

type revocation = *certificatesv1alpha1.CertificateRevocationRequest

// Revoker processes the CertificateRevocationRequests of the hosted namespace, one after another for each signer. The
// signer's Secret holds the state of the rotation (support/pki), which the controller of the HostedControlPlane
// advances. The Revoker requests the rotation and reports its progress.
type Revoker struct {
	// Client accesses the management cluster. Its reads are cached.
	Client client.Client
	// Clock provides the time of the revocation request.
	Clock clock.PassiveClock
}

// scope is the state of one reconcile of one request.
type scope struct {
	request revocation
	// signer is the Secret of the signer, nil if there is none.
	signer *corev1.Secret
	// previous is the certificate that is revoked (PEM); empty until it is stored.
	previous []byte
	// before names the request that must finish first; empty if this request is next.
	before string
	// outdated are the pods and workloads that do not yet run with the current content of their mounts.
	outdated []string
}

// SetupWithManager watches the requests and the signers. The CRD of the requests must be installed.
func (r *Revoker) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&certificatesv1alpha1.CertificateRevocationRequest{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.ofSigner)).
		Complete(r)
}

func (r *Revoker) ofSigner(ctx context.Context, secret client.Object) []reconcile.Request {
	list := &certificatesv1alpha1.CertificateRevocationRequestList{}
	if err := r.Client.List(ctx, list, client.InNamespace(secret.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing CertificateRevocationRequests")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if signers[list.Items[i].Spec.SignerClass] == secret.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (r *Revoker) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[revocation, *scope]{
		Client: r.Client, Observe: r.observe, Report: r.report,
		Phases: func(*scope) []phase.Phase[*scope] {
			return []phase.Phase[*scope]{
				{Name: "former signer", Critical: true, Run: r.remember}, {Name: "revocation", Critical: true, Run: r.revoke}, {Name: "roll-out", Run: r.watch},
			}
		},
	}.Reconcile(ctx, req)
}

func (r *Revoker) observe(ctx context.Context, asked revocation) (*scope, error) {
	if done(asked) || !asked.DeletionTimestamp.IsZero() {
		return nil, phase.ErrStop
	}
	s := &scope{request: asked}
	name, known := signers[asked.Spec.SignerClass]
	if !known {
		return s, nil
	}
	signer := &corev1.Secret{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: asked.Namespace, Name: name}, signer)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Secret %s of the signer: %w", name, err)
	}
	if err == nil {
		s.signer = signer
	}
	if s.before, err = r.before(ctx, asked); err != nil {
		return nil, err
	}
	return s, nil
}

func done(asked revocation) bool {
	return condition.IsTrue(asked.Status.Conditions, certificatesv1alpha1.PreviousCertificatesRevokedType)
}

// before returns an older request for the same signer that is not done.
func (r *Revoker) before(ctx context.Context, asked revocation) (string, error) {
	list := &certificatesv1alpha1.CertificateRevocationRequestList{}
	if err := r.Client.List(ctx, list, client.InNamespace(asked.Namespace)); err != nil {
		return "", fmt.Errorf("listing CertificateRevocationRequests: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.Spec.SignerClass == asked.Spec.SignerClass && other.DeletionTimestamp.IsZero() && !done(other) && older(other, asked) {
			return other.Name, nil
		}
	}
	return "", nil
}

func older(a, b revocation) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// ready reports whether there is a signer, and no other request must finish first.
func (s *scope) ready() bool { return s.signer != nil && s.before == "" }

// remember stores the certificate of the signer, without its key, in a Secret that is deleted with the request.
func (r *Revoker) remember(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !s.ready() {
		return ctrl.Result{}, nil
	}
	previous := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.request.Namespace, Name: "revoked-" + string(s.request.UID)}}
	_, err := upsert.Object(ctx, r.Client, previous, func() error {
		if err := controllerutil.SetControllerReference(s.request, previous, r.Client.Scheme()); err != nil {
			return err
		}
		if len(previous.Data) == 0 {
			previous.Data = map[string][]byte{supportpki.CACertKey: s.signer.Data[supportpki.CACertKey]}
		}
		return nil
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	s.previous = previous.Data[supportpki.CACertKey]
	if s.request.Status.PreviousSigner != nil {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, upsert.Status(ctx, r.Client, s.request, func() {
		now := metav1.NewTime(r.Clock.Now())
		s.request.Status.RevocationTimestamp = &now
		s.request.Status.PreviousSigner = &corev1.LocalObjectReference{Name: previous.Name}
	})
}

// revoke requests the rotation, once.
func (r *Revoker) revoke(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !s.ready() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, upsert.Patch(ctx, r.Client, s.signer, func() { supportpki.Revoke(s.signer, string(s.request.UID)) })
}

// watch finds the pods and workloads that still trust the previous signer after it was removed from all bundles.
func (r *Revoker) watch(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !s.ready() || !supportpki.Revoked(s.signer, string(s.request.UID)) {
		return ctrl.Result{RequeueAfter: again}, nil
	}
	var err error
	if s.outdated, err = component.Outdated(ctx, r.Client, s.request.Namespace, r.Clock.Now()); err != nil {
		return ctrl.Result{}, err
	}
	if len(s.outdated) > 0 {
		return ctrl.Result{RequeueAfter: again}, nil
	}
	return ctrl.Result{}, nil
}

// report writes the progress. After a failure it writes nothing; the next reconcile observes the progress again.
func (r *Revoker) report(ctx context.Context, s *scope, failure error) error {
	if failure != nil {
		return nil //nolint:nilerr // The driver returns it.
	}
	return client.IgnoreNotFound(upsert.Status(ctx, r.Client, s.request, func() {
		s.request.Status.Conditions = condition.Merge(s.request.Status.Conditions, s.request.Generation, conditions(s)...)
	}))
}
