// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Keys and annotations of the Secret of an authority during its rotation.
const (
	nextCertKey   = "next-ca.crt"
	nextKeyKey    = "next-ca.key"
	formerCertKey = "former-ca.crt"
	chainKey      = "chain-ca.crt"

	// requestAnnotation is the last Request that was started.
	requestAnnotation = "hypershift.openshift.io/rotated-for"
	// formerSinceAnnotation is the time when all components had migrated to the new signer (RFC 3339).
	formerSinceAnnotation = "hypershift.openshift.io/former-since"
)

// RotationRecord returns the annotations of a signer's Secret that record the progress of its rotation; nil if there
// are none. A backup includes them: without them a restored signer would be rotated again.
func RotationRecord(annotations map[string]string) map[string]string {
	var record map[string]string
	keep := func(name, value string) {
		if record == nil {
			record = map[string]string{}
		}
		record[name] = value
	}
	if request, ok := annotations[requestAnnotation]; ok {
		keep(requestAnnotation, request)
	}
	if since, err := time.Parse(time.RFC3339, annotations[formerSinceAnnotation]); err == nil {
		keep(formerSinceAnnotation, since.UTC().Format(time.RFC3339))
	}
	return record
}

// Stage is the progress of the rotation of a signer. It is read from the signer's Secret. Each step is a single write
// to that Secret:
//
//	Settled      one key signs and is trusted        -- requested, or the authority nears its end -->
//	Trusting     the next key is trusted as well     -- by all that verify -->
//	Signing      the next key signs                  -- everything that it signed is in use -->
//	Overlapping  the previous key is still trusted     -- for as long as its signatures may be valid --> Settled
type Stage string

// The stages, in order.
const (
	Settled     Stage = "Settled"
	Trusting    Stage = "Trusting"
	Signing     Stage = "Signing"
	Overlapping Stage = "Overlapping"
)

// StageOf returns the stage of the authority, or of the service account keys, in secret.
func StageOf(secret *corev1.Secret) Stage {
	switch {
	case len(secret.Data[nextKeyKey])+len(secret.Data[nextServiceAccountKey]) > 0:
		return Trusting
	case len(secret.Data[formerCertKey])+len(secret.Data[formerServiceAccountKeys]) == 0:
		return Settled
	case secret.Annotations[formerSinceAnnotation] == "":
		return Signing
	default:
		return Overlapping
	}
}

// Rotation defines how a signer is replaced.
type Rotation struct {
	// Name is the subject of the first authority. Successors append the time of their creation to the common name, because
	// some clients distinguish authorities only by name.
	Name Name
	// Request starts a rotation if it differs from the last request that was started; empty requests none.
	Request string
	// Validity is the lifetime of an authority; zero means CAValidity. The successor is created when a fifth of it is
	// left, but at most two years before the end.
	Validity time.Duration
	// Overlap is how long a previous signer remains trusted after its successor signs everything. An authority that
	// expires is dropped at its expiry.
	Overlap time.Duration
	// KeepChain keeps the chain from a previous authority to this one until the previous one expires. It serves clients
	// that know only the previous authority and cannot be updated. Otherwise the chain is dropped at the end of the
	// overlap.
	KeepChain bool
}

// renewCABefore is the remaining lifetime at which an authority gets a successor. Certificates that it signs until then
// last a year.
const renewCABefore = 2 * 365 * 24 * time.Hour

func (r Rotation) validity() time.Duration {
	if r.Validity == 0 {
		return CAValidity
	}
	return r.Validity
}

// Ensure fills secret with an authority unless it holds one; see EnsureCA.
func (r Rotation) Ensure(secret *corev1.Secret, now time.Time) (*KeyPair, error) {
	if len(secret.Data[CACertKey]) > 0 || len(secret.Data[CAKeyKey]) > 0 {
		return EnsureCA(secret, r.Name, now)
	}
	first, err := newCA(r.Name, r.validity(), now)
	if err != nil {
		return nil, err
	}
	setCA(secret, first)
	if r.Request != "" {
		// A new authority fulfills any rotation that was requested before it existed.
		annotate(secret, requestAnnotation, r.Request)
	}
	return first, nil
}

// Advance moves the rotation of the authority in secret, or its revocation (see Revoke), one step forward if a step is
// due. taken reports whether all components use the state of the current stage.
func (r Rotation) Advance(secret *corev1.Secret, taken bool, now time.Time) error {
	ca, err := CAOf(secret)
	if err != nil {
		return err
	}
	r = r.heeding(secret)
	switch StageOf(secret) {
	case Settled:
		if r.requested(secret) || expiresSoon(ca.Cert, now) {
			return r.announce(secret, now)
		}
		pruneChain(secret, now)
		revoked(secret)
	case Trusting:
		if taken {
			return promote(secret, ca)
		}
	case Signing:
		if taken {
			annotate(secret, formerSinceAnnotation, now.UTC().Format(time.RFC3339))
		}
	case Overlapping:
		if r.overlapped(secret, now) || len(living(secret.Data[formerCertKey], now)) == 0 {
			r.forget(secret)
		}
	}
	return nil
}

func (r Rotation) requested(secret *corev1.Secret) bool {
	return r.Request != "" && r.Request != secret.Annotations[requestAnnotation]
}

func expiresSoon(cert *x509.Certificate, now time.Time) bool {
	return cert.NotAfter.Sub(now) <= min(renewCABefore, cert.NotAfter.Sub(cert.NotBefore)/5)
}

// announce creates the next authority.
func (r Rotation) announce(secret *corev1.Secret, now time.Time) error {
	name := r.Name
	name.CommonName = fmt.Sprintf("%s@%d", name.CommonName, now.Unix())
	next, err := newCA(name, r.validity(), now)
	if err != nil {
		return err
	}
	if r.Request != "" {
		annotate(secret, requestAnnotation, r.Request)
	}
	set(secret, nextCertKey, next.CertPEM)
	set(secret, nextKeyKey, next.KeyPEM)
	return nil
}

// promote makes the next authority the signer. The previous authority's key is not needed any more.
func promote(secret *corev1.Secret, ca *KeyPair) error {
	next, err := Parse(secret.Data[nextCertKey], secret.Data[nextKeyKey])
	if err != nil {
		return fmt.Errorf("the next CA in Secret %s/%s: %w: delete its keys %s and %s to have another one made",
			secret.Namespace, secret.Name, err, nextCertKey, nextKeyKey)
	}
	cross, err := ca.cross(next)
	if err != nil {
		return err
	}
	set(secret, chainKey, Bundle(cross, ca.Chain))
	set(secret, formerCertKey, ca.CertPEM)
	setCA(secret, next)
	delete(secret.Data, nextCertKey)
	delete(secret.Data, nextKeyKey)
	return nil
}

// overlapped reports whether the overlap of the previous signer is over. An unreadable time counts as long ago.
func (r Rotation) overlapped(secret *corev1.Secret, now time.Time) bool {
	since, _ := time.Parse(time.RFC3339, secret.Annotations[formerSinceAnnotation])
	return !now.Before(since.Add(r.Overlap))
}

func (r Rotation) forget(secret *corev1.Secret) {
	delete(secret.Data, formerCertKey)
	delete(secret.Annotations, formerSinceAnnotation)
	if !r.KeepChain {
		delete(secret.Data, chainKey)
	}
}

// pruneChain removes the expired certificates of the chain.
func pruneChain(secret *corev1.Secret, now time.Time) {
	if kept := living(secret.Data[chainKey], now); len(kept) > 0 {
		set(secret, chainKey, kept)
	} else {
		delete(secret.Data, chainKey)
	}
}

// living returns the certificates of a bundle that have not expired.
func living(bundle []byte, now time.Time) []byte {
	var kept [][]byte
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && now.Before(cert.NotAfter) {
			kept = append(kept, pem.EncodeToMemory(block))
		}
	}
	return bytes.Join(kept, nil)
}
