// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift/hypershift/support/operatorwebhook"
	"github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/upsert"
)

// Secrets in the operator's namespace, and the common names of their certificates.
const (
	caSecret      = "webhook-serving-ca"
	caName        = "hypershift-webhook-ca"
	servingSecret = "manager-serving-cert"
	servingName   = "hypershift-operator"
)

const (
	// recheck is the interval between expiry checks; certificates are renewed a month before they expire.
	recheck = 12 * time.Hour
	// retry is the delay after a write conflict, usually with another replica.
	retry = time.Second
)

// caRenewBefore is the remaining validity at which the CA is replaced. It exceeds the validity of the certificates that
// the CA signs, so that none of them outlives it.
const caRenewBefore = pki.DefaultValidity + pki.DefaultRenewBefore

// Certificate creates and renews the certificate of the webhook server and its CA, and configures the CA in the API
// server. Replicas need no leader election for this: the first write succeeds, and the other replicas use its result.
type Certificate struct {
	Client client.Client
	// Reader is uncached: CRDs are large, rarely read, and the operator needs only a few of them.
	Reader client.Reader
	Clock  clock.PassiveClock
	// Namespace is the operator's own namespace.
	Namespace string

	serving atomic.Pointer[tls.Certificate]
}

// Serving returns the current certificate, with the signature that tls.Config requires.
func (c *Certificate) Serving(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if pair := c.serving.Load(); pair != nil {
		return pair, nil
	}
	return nil, errors.New("the certificate of the webhook server is not made yet")
}

// SetupWithManager registers the controller. All events map to the same request.
func (c *Certificate) SetupWithManager(mgr ctrl.Manager) error {
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: c.Namespace, Name: servingSecret}}
	same := ctrlhandler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []ctrl.Request { return []ctrl.Request{request} })
	ours := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return obj.GetNamespace() == c.Namespace && slices.Contains([]string{caSecret, servingSecret}, obj.GetName())
	})
	clusterAPIs := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return labels.SelectorFromSet(labels.Set(clusterAPI)).Matches(labels.Set(obj.GetLabels()))
	})
	start := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		queue.Add(request)
		return nil
	})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("webhook-certificate").
		WatchesMetadata(&corev1.Secret{}, same, builder.WithPredicates(ours)).
		Watches(&admissionv1.MutatingWebhookConfiguration{}, same).
		WatchesMetadata(&apiextensionsv1.CustomResourceDefinition{}, same, builder.WithPredicates(clusterAPIs)).
		WatchesRawSource(start).
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(false)}).
		Complete(c)
	if err != nil {
		return fmt.Errorf("setting up the controller of the webhook's certificate: %w", err)
	}
	return nil
}

// Reconcile creates or renews missing and expiring certificates. It configures a CA in the API server before the
// webhook server uses its certificate.
func (c *Certificate) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	again, err := c.ensure(ctx)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: retry}, nil
	}
	return ctrl.Result{RequeueAfter: again}, err
}

// ensure creates and renews the certificates, and returns the delay until the next check.
func (c *Certificate) ensure(ctx context.Context) (again time.Duration, err error) {
	ca, err := c.ensureCA(ctx)
	if err != nil {
		return 0, err
	}
	pair, err := c.ensureLeaf(ctx, ca)
	if err != nil {
		return 0, err
	}
	again, err = c.announce(ctx, ca)
	if err != nil {
		return 0, err
	}
	serving, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		return 0, fmt.Errorf("reading the certificate in Secret %s/%s: %w", c.Namespace, servingSecret, err)
	}
	c.serving.Store(&serving)
	return again, nil
}

func (c *Certificate) ensureCA(ctx context.Context) (*pki.KeyPair, error) {
	var ca *pki.KeyPair
	secret := c.secret(caSecret)
	_, err := upsert.Object(ctx, c.Client, secret, func() error {
		now := c.Clock.Now()
		// EnsureCA never renews a CA by default. This CA has only one client, which learns about a new CA immediately.
		if old, err := pki.CAOf(secret); err != nil || old.Cert.NotAfter.Sub(now) <= caRenewBefore {
			secret.Data = nil
		}
		var err error
		ca, err = pki.EnsureCA(secret, pki.Name{CommonName: caName, OrganizationalUnits: []string{"openshift"}}, now)
		return err
	})
	return ca, err
}

func (c *Certificate) ensureLeaf(ctx context.Context, ca *pki.KeyPair) (*pki.KeyPair, error) {
	var pair *pki.KeyPair
	host := operatorwebhook.Service + "." + c.Namespace
	leaf := pki.Leaf{
		Name: pki.Name{CommonName: servingName, Organizations: []string{"openshift"}}, Server: true,
		Hosts: []string{operatorwebhook.Service, host, host + ".svc", host + ".svc.cluster.local"},
	}
	secret := c.secret(servingSecret)
	_, err := upsert.Object(ctx, c.Client, secret, func() error {
		var err error
		pair, err = pki.EnsureLeaf(secret, pki.TLSKeys, ca, leaf, pki.Lifetime{}, c.Clock.Now())
		return err
	})
	return pair, err
}

func (c *Certificate) secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name}}
}
