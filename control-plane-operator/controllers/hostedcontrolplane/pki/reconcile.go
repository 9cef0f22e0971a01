// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/upsert"
)

// Reconciler manages the PKI of hosted control planes.
type Reconciler struct {
	// Client writes to the management cluster.
	Client crclient.Client
	// Clock provides the time for expiry checks.
	Clock clock.PassiveClock
	// Lifetime is the lifetime of leaf certificates unless the HostedControlPlane overrides it.
	Lifetime pki.Lifetime
}

// pass is one reconcile of one hosted control plane's PKI.
type pass struct {
	*Reconciler
	hcp      *hyperv1.HostedControlPlane
	infra    *component.Infra
	lifetime pki.Lifetime
	turnover turnover
	// signers and leaves are the reconciled key pairs by Secret name.
	signers, leaves map[string]*pki.KeyPair
	// wrote reports that an object had to be changed, so that no pod can have loaded it yet.
	wrote bool
}

// Reconcile updates all Secrets and ConfigMaps of the PKI. It does nothing if the user supplies the PKI. An invalid
// annotation, or a missing input for the user's etcd, is only returned as an error after all certificates are renewed.
// They expire whether or not the user fixes the error.
func (r *Reconciler) Reconcile(ctx context.Context, hcp *hyperv1.HostedControlPlane, infra *component.Infra) error {
	if _, disabled := hcp.Annotations[DisableAnnotation]; disabled {
		return nil
	}
	lifetime, fault := LifetimeOf(hcp, r.Lifetime)
	turnover, wrong := turnoverOf(hcp, lifetime)
	fault = errors.Join(fault, wrong)
	p := &pass{
		Reconciler: r, hcp: hcp, infra: infra, lifetime: lifetime, turnover: turnover,
		signers: map[string]*pki.KeyPair{}, leaves: map[string]*pki.KeyPair{},
	}
	// An API server can keep using the current certificates for the user's etcd until the user fixes their replacement.
	// All other certificates must not wait for that.
	fault = errors.Join(fault, p.reconcileUnmanagedEtcd(ctx))
	steps := []func(context.Context) error{
		p.reconcileSigners, p.reconcileBundles, p.reconcileLeaves, p.reconcileServiceAccountKeys, p.reconcileKubeconfigs,
		p.rotate,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return errors.Join(fault, err)
		}
	}
	return fault
}

// LifetimeOf reads the annotations about certificates, with a fallback for values that they do not set.
func LifetimeOf(hcp *hyperv1.HostedControlPlane, fallback pki.Lifetime) (pki.Lifetime, error) {
	lifetime := fallback
	if text, ok := hcp.Annotations[ValidityAnnotation]; ok {
		validity, err := time.ParseDuration(text)
		if err != nil || validity <= 0 {
			return lifetime, fmt.Errorf("annotation %s: %q is not a duration; write it as in 8760h", ValidityAnnotation, text)
		}
		lifetime.Validity = validity
	}
	if text, ok := hcp.Annotations[RenewalAnnotation]; ok {
		fraction, err := RenewalFraction(text)
		if err != nil {
			return lifetime, fmt.Errorf("annotation %s: %w", RenewalAnnotation, err)
		}
		lifetime.RenewAfter = fraction
	}
	return lifetime, nil
}

// RenewalFraction reads the fraction of a certificate's lifetime after which it is renewed: 0.7 or, as a percentage,
// 70.
func RenewalFraction(text string) (float64, error) {
	fraction, err := strconv.ParseFloat(text, 64)
	if fraction >= 1 {
		fraction /= 100
	}
	// The comparison is written so that NaN is rejected: NaN compares false with everything.
	if err != nil || !(fraction > 0 && fraction < 1) {
		return 0, fmt.Errorf("%q is not a fraction of a certificate's lifetime; write it as in 0.7", text)
	}
	return fraction, nil
}

func (p *pass) secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.hcp.Namespace, Name: name}}
}

// upsert writes one object of the PKI, owned by the HostedControlPlane.
func (p *pass) upsert(ctx context.Context, obj crclient.Object, mutate func() error) error {
	result, err := upsert.Object(ctx, p.Client, obj, func() error {
		if err := hosted.Trusted(obj); err != nil {
			return err
		}
		if err := controllerutil.SetControllerReference(p.hcp, obj, p.Client.Scheme()); err != nil {
			return err
		}
		return mutate()
	})
	p.wrote = p.wrote || result != upsert.Unchanged
	return err
}

func (p *pass) reconcileSigners(ctx context.Context) error {
	for _, a := range authorities {
		secret := p.secret(a.secret)
		err := p.upsert(ctx, secret, func() error {
			ca, err := p.turnover.of(a).Ensure(secret, p.Clock.Now())
			p.signers[a.secret] = ca
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) reconcileBundles(ctx context.Context) error {
	for _, b := range bundles {
		if b.configMap == EtcdBundle && BringsEtcd(p.hcp) {
			continue
		}
		var certificates [][]byte
		for _, signer := range b.signers {
			certificates = append(certificates, p.signers[signer].Trust())
		}
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.hcp.Namespace, Name: b.configMap}}
		err := p.upsert(ctx, cm, func() error {
			cm.Data = map[string]string{pki.CACertKey: string(pki.Bundle(certificates...))}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) reconcileLeaves(ctx context.Context) error {
	wanted, err := certificates(p.hcp, p.infra)
	if err != nil {
		return err
	}
	for _, c := range wanted {
		if c.signer == EtcdSigner && BringsEtcd(p.hcp) {
			continue
		}
		secret := p.secret(c.secret)
		err := p.upsert(ctx, secret, func() error {
			leaf, err := pki.EnsureLeaf(secret, c.keys, p.signers[c.signer], c.leaf, p.lifetime, p.Clock.Now())
			p.leaves[c.secret] = leaf
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reconcileServiceAccountKeys creates the keys once. It sets no owner, because the hypershift-operator also writes this
// Secret if the user provides a key.
func (p *pass) reconcileServiceAccountKeys(ctx context.Context) error {
	secret := p.secret(ServiceAccountKeys)
	result, err := upsert.Object(ctx, p.Client, secret, func() error {
		if p.hcp.Spec.ServiceAccountSigningKey != nil {
			return pki.EnsureServiceAccountKey(secret)
		}
		return p.turnover.ofKeys().EnsureServiceAccountKey(secret)
	})
	p.wrote = p.wrote || result != upsert.Unchanged
	return err
}
