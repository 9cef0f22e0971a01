// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/upsert"
)

// everySigner is the annotation's entry for all signers except the signer of the provider's break-glass certificates.
// Tenants may write this entry. The provider's signer has a separate entry, which an admission policy reserves to
// administrators.
const everySigner = "all"

// Signers returns the Secrets of everything that can be rotated: the authorities and the keys of service account
// tokens.
func Signers() []string {
	names := []string{ServiceAccountKeys}
	for _, a := range authorities {
		names = append(names, a.secret)
	}
	slices.Sort(names)
	return names
}

// turnover holds the rotation settings from the annotations of a hosted control plane.
type turnover struct {
	// requests maps the name of a signer to its rotation request.
	requests map[string]string
	// overlap is how long a previous signer remains trusted; nil if the cluster does not set it.
	overlap *time.Duration
	// life is the lifetime of the certificates that authorities sign, caLife the lifetime of the authorities; zero for the
	// default.
	life, caLife time.Duration
}

// turnoverOf reads the rotation settings from the annotations. An invalid entry requests no rotation and is returned
// as an error.
func turnoverOf(hcp *hyperv1.HostedControlPlane, lifetime pki.Lifetime) (turnover, error) {
	t := turnover{life: lifetime.Validity, caLife: lifetime.CAValidity}
	if t.life == 0 {
		t.life = pki.DefaultValidity
	}
	if text, ok := hcp.Annotations[OverlapAnnotation]; ok {
		overlap, err := time.ParseDuration(text)
		if err != nil || overlap < 0 {
			return t, fmt.Errorf("annotation %s: %q is not a duration; write it as in 24h", OverlapAnnotation, text)
		}
		t.overlap = &overlap
	}
	var err error
	if t.requests, err = requestsOf(hcp.Annotations[RotationAnnotation]); err != nil {
		return t, fmt.Errorf("annotation %s: %w", RotationAnnotation, err)
	}
	if hcp.Spec.ServiceAccountSigningKey != nil && t.requests[ServiceAccountKeys] != "" {
		return t, fmt.Errorf("annotation %s: %s is the key of spec.serviceAccountSigningKey; rotate it there: name a Secret with the new key "+
			"and, under %s, the old public ones", RotationAnnotation, ServiceAccountKeys, hyperv1.OldServiceAccountSigningKeySecretKey)
	}
	return t, nil
}

// requestsOf parses a list such as "root-ca=1,all=2026-11", which maps signers to texts. A text that differs
// from the signer's previous one requests a rotation.
func requestsOf(text string) (map[string]string, error) {
	marks := map[string]string{}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, mark, _ := strings.Cut(item, "=")
		if mark == "" {
			return nil, fmt.Errorf("%q has no value; write it as in %s=2026-11-22, and use another date to rotate again", item, name)
		}
		if name != everySigner && !slices.Contains(Signers(), name) {
			return nil, fmt.Errorf("there is no signer %q; there are %s, or %s", name, strings.Join(Signers(), ", "), everySigner)
		}
		marks[name] = mark
	}
	requests := map[string]string{}
	for _, name := range Signers() {
		own, all := marks[name], marks[everySigner]
		if name == SREBreakGlassSigner {
			all = ""
		}
		if own != "" || all != "" {
			requests[name] = strings.Trim(all+" "+own, " ")
		}
	}
	return requests, nil
}

// of returns the rotation settings of an authority.
func (t turnover) of(a authority) pki.Rotation {
	overlap := a.overlap
	if t.overlap != nil {
		// The user may lengthen the overlap, but not shorten it so much that nodes no longer trust the control plane.
		overlap = max(overlap, *t.overlap)
	} else if a.handedOut {
		overlap = max(overlap, cmp.Or(a.life, t.life))
	}
	return pki.Rotation{
		Name:    pki.Name{CommonName: a.commonName, OrganizationalUnits: []string{"openshift"}},
		Request: t.requests[a.secret], Validity: t.caLife, Overlap: overlap, KeepChain: a.onNodes,
	}
}

// ofKeys returns the rotation settings of the keys of service account tokens. Tokens may live for a year if clients do
// not reload them.
func (t turnover) ofKeys() pki.Rotation {
	overlap := pki.DefaultValidity
	if t.overlap != nil {
		overlap = *t.overlap
	}
	return pki.Rotation{Request: t.requests[ServiceAccountKeys], Overlap: overlap}
}

// rotate advances rotations by one step. A step that other pods must load first waits until all pods of the control
// plane have loaded the result of the previous step.
func (p *pass) rotate(ctx context.Context) error {
	if p.wrote {
		return nil
	}
	outdated, err := component.Outdated(ctx, p.Client, p.hcp.Namespace, p.Clock.Now())
	if err != nil {
		return err
	}
	taken := len(outdated) == 0
	for _, a := range authorities {
		if a.secret == EtcdSigner && BringsEtcd(p.hcp) {
			continue
		}
		secret := p.secret(a.secret)
		if err := p.upsert(ctx, secret, func() error { return p.turnover.of(a).Advance(secret, taken, p.Clock.Now()) }); err != nil {
			return err
		}
	}
	if p.hcp.Spec.ServiceAccountSigningKey != nil {
		return nil
	}
	secret := p.secret(ServiceAccountKeys)
	_, err = upsert.Object(ctx, p.Client, secret, func() error {
		return p.turnover.ofKeys().AdvanceServiceAccountKey(secret, taken, p.Clock.Now())
	})
	return err
}

// Rotating returns the stages of the signers that are not settled, by the names of their Secrets.
func Rotating(secrets []corev1.Secret) map[string]pki.Stage {
	signers, stages := Signers(), map[string]pki.Stage{}
	for i := range secrets {
		if stage := pki.StageOf(&secrets[i]); slices.Contains(signers, secrets[i].Name) && stage != pki.Settled {
			stages[secrets[i].Name] = stage
		}
	}
	return stages
}
