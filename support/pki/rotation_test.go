// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// signer is an authority that is rotated, with one leaf.
type signer struct {
	t        *testing.T
	rotation Rotation
	secret   *corev1.Secret
	leaf     *corev1.Secret
	now      time.Time
}

func newSigner(t *testing.T, r Rotation) *signer {
	r.Name = Name{CommonName: "root-ca"}
	s := &signer{t: t, rotation: r, secret: &corev1.Secret{}, leaf: &corev1.Secret{}, now: now}
	s.pass(false)
	return s
}

// pass performs one reconcile: the signer, its leaf, and then a step of the rotation.
func (s *signer) pass(taken bool) Stage {
	s.t.Helper()
	ca, err := s.rotation.Ensure(s.secret, s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := EnsureLeaf(s.leaf, TLSKeys, ca, serverLeaf(), Lifetime{}, s.now); err != nil {
		s.t.Fatal(err)
	}
	if err := s.rotation.Advance(s.secret, taken, s.now); err != nil {
		s.t.Fatal(err)
	}
	return StageOf(s.secret)
}

func (s *signer) trust() []byte {
	s.t.Helper()
	ca, err := CAOf(s.secret)
	if err != nil {
		s.t.Fatal(err)
	}
	return ca.Trust()
}

// verify checks a certificate with its chain, as a TLS client that trusts bundle does.
func verify(shown, bundle []byte, at time.Time) error {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	block, rest := pem.Decode(shown)
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	between.AppendCertsFromPEM(rest)
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: at})
	return err
}

func TestRotation(t *testing.T) {
	const week = 7 * 24 * time.Hour

	t.Run("When a CA is rotated, every certificate should be trusted at every stage", func(t *testing.T) {
		g := NewWithT(t)
		s := newSigner(t, Rotation{Overlap: week, KeepChain: true})
		first, firstLeaf := s.secret.Data[CACertKey], s.leaf.Data["tls.crt"]
		trusted, shown := [][]byte{s.trust()}, [][]byte{firstLeaf}
		remember := func() {
			trusted, shown = append(trusted, s.trust()), append(shown, s.leaf.Data["tls.crt"])
			// Between two reconciles, a pod has the files of this reconcile or of the previous one.
			for _, bundle := range trusted[len(trusted)-2:] {
				for _, certificate := range shown[len(shown)-2:] {
					g.Expect(verify(certificate, bundle, s.now)).To(Succeed(), StageOf(s.secret))
				}
			}
			// A machine that was installed long ago has only the first authority.
			g.Expect(verify(s.leaf.Data["tls.crt"], first, s.now)).To(Succeed(), StageOf(s.secret))
		}
		s.rotation.Request = "once"
		for _, step := range []struct {
			taken bool
			after time.Duration
			want  Stage
		}{
			{want: Trusting}, {want: Trusting}, {taken: true, want: Signing}, {want: Signing}, {taken: true, want: Overlapping},
			{taken: true, want: Overlapping}, {after: week - time.Second, taken: true, want: Overlapping}, {after: time.Second, want: Settled},
			{taken: true, want: Settled}, {taken: true, want: Settled},
		} {
			s.now = s.now.Add(step.after)
			g.Expect(s.pass(step.taken)).To(Equal(step.want))
			remember()
		}
		g.Expect(s.secret.Data[CACertKey]).NotTo(Equal(first))
		g.Expect(verify(firstLeaf, s.trust(), s.now)).NotTo(Succeed(), "the former authority is dropped")
		g.Expect(s.secret.Data[corev1.TLSCertKey]).To(Equal(s.secret.Data[CACertKey]))
	})

	t.Run("When a CA is rotated twice, clients that have only the first CA should still trust the server", func(t *testing.T) {
		g := NewWithT(t)
		s := newSigner(t, Rotation{KeepChain: true})
		first := s.secret.Data[CACertKey]
		for _, mark := range []string{"one", "two"} {
			s.rotation.Request = mark
			s.now = s.now.Add(time.Hour)
			for range 6 {
				s.pass(true)
			}
			g.Expect(StageOf(s.secret)).To(Equal(Settled))
		}
		g.Expect(bytes.Count(s.secret.Data[chainKey], []byte("BEGIN"))).To(Equal(2))
		g.Expect(verify(s.leaf.Data["tls.crt"], first, s.now)).To(Succeed())
		g.Expect(verify(s.leaf.Data["tls.crt"], s.trust(), s.now)).To(Succeed())
	})

	t.Run("When the chain from the previous CA is not kept, it should be removed with that CA", func(t *testing.T) {
		g := NewWithT(t)
		s := newSigner(t, Rotation{})
		first := s.secret.Data[CACertKey]
		s.rotation.Request = "once"
		for range 6 {
			s.pass(true)
		}
		g.Expect(verify(s.leaf.Data["tls.crt"], first, s.now)).NotTo(Succeed())
		g.Expect(s.secret.Data).To(HaveLen(4))
	})

	t.Run("When a request is repeated or older than the first CA, it should change nothing", func(t *testing.T) {
		g := NewWithT(t)
		s := newSigner(t, Rotation{Request: "before"})
		for range 3 {
			before := s.secret.DeepCopy()
			g.Expect(s.pass(true)).To(Equal(Settled))
			g.Expect(s.secret).To(Equal(before))
		}
		s.rotation.Request = ""
		g.Expect(s.pass(true)).To(Equal(Settled))
	})

	t.Run("When a CA is about to expire, it should rotate automatically and trust the previous CA until it expires", func(t *testing.T) {
		g := NewWithT(t)
		s := newSigner(t, Rotation{Validity: 10 * time.Minute, Overlap: time.Hour, KeepChain: true})
		made := map[string]bool{}
		for range 200 {
			s.now = s.now.Add(10 * time.Second)
			s.pass(true)
			made[string(s.secret.Data[CACertKey])] = true
			ca, err := CAOf(s.secret)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(ca.Cert.NotAfter).To(BeTemporally(">", s.now))
			g.Expect(verify(s.leaf.Data["tls.crt"], s.trust(), s.now)).To(Succeed())
		}
		g.Expect(len(made)).To(BeNumerically(">=", 4))
		g.Expect(living(s.secret.Data[formerCertKey], s.now)).To(Equal(s.secret.Data[formerCertKey]), "what has expired is dropped")
		g.Expect(bytes.Count(s.secret.Data[chainKey], []byte("BEGIN"))).To(BeNumerically("<=", 2))
	})

	t.Run("When the next CA is damaged, it should name the keys to delete", func(t *testing.T) {
		g := NewWithT(t)
		s := newSigner(t, Rotation{})
		s.rotation.Request = "once"
		s.pass(false)
		s.secret.Data[nextKeyKey] = []byte("hush")
		err := s.rotation.Advance(s.secret, true, s.now)
		g.Expect(err).To(MatchError(ContainSubstring("delete its keys next-ca.crt and next-ca.key")))
		g.Expect(err.Error()).NotTo(ContainSubstring("hush"))
	})
}

func TestRevocation(t *testing.T) {
	const day = 24 * time.Hour
	t.Run("When a CA is revoked, it should be trusted only until its successor signs, and later rotate as usual", func(t *testing.T) {
		g := NewWithT(t)
		s := newSigner(t, Rotation{Overlap: day, KeepChain: true})
		first := s.leaf.Data["tls.crt"]
		Revoke(s.secret, "a")
		g.Expect(Revoking(s.secret)).To(BeTrue())
		for _, want := range []Stage{Trusting, Signing, Overlapping, Settled} {
			g.Expect(verify(first, s.trust(), s.now)).To(Succeed(), "before "+string(want))
			g.Expect(s.pass(true)).To(Equal(want))
			g.Expect(Revoked(s.secret, "a")).To(BeFalse())
		}
		g.Expect(verify(first, s.trust(), s.now)).NotTo(Succeed())
		g.Expect(s.secret.Data).NotTo(HaveKey(chainKey), "who trusts the former authority must not trust this one by it")
		g.Expect(s.pass(true)).To(Equal(Settled))
		g.Expect(Revoked(s.secret, "a")).To(BeTrue())
		g.Expect(Revoking(s.secret)).To(BeFalse())
		settled := s.secret.DeepCopy()
		g.Expect(s.pass(true)).To(Equal(Settled))
		g.Expect(s.secret).To(Equal(settled), "it is done once")

		s.rotation.Request = "later"
		for range 6 {
			s.pass(true)
		}
		g.Expect(StageOf(s.secret)).To(Equal(Overlapping), "another rotation trusts the former authority for its time")
	})
	t.Run("When another rotation is in progress, it should still distrust certificates from before the revocation", func(t *testing.T) {
		for steps := range 4 {
			g := NewWithT(t)
			s := newSigner(t, Rotation{Overlap: day})
			s.rotation.Request = "once"
			for range steps {
				s.pass(true)
			}
			shown := s.leaf.Data["tls.crt"]
			Revoke(s.secret, "a")
			for range 12 {
				s.pass(true)
			}
			g.Expect(Revoked(s.secret, "a")).To(BeTrue())
			g.Expect(verify(shown, s.trust(), s.now)).NotTo(Succeed())
		}
	})
}

func TestServiceAccountKeyRotation(t *testing.T) {
	g := NewWithT(t)
	secret := &corev1.Secret{}
	r := Rotation{Request: "before", Overlap: time.Hour}
	at := now
	pass := func(taken bool) Stage {
		g.Expect(r.EnsureServiceAccountKey(secret)).To(Succeed())
		g.Expect(r.AdvanceServiceAccountKey(secret, taken, at)).To(Succeed())
		return StageOf(secret)
	}
	accepted := func(private []byte) bool {
		public, err := publicOf(private)
		g.Expect(err).NotTo(HaveOccurred())
		return strings.Contains(string(secret.Data[ServiceAccountPublicKey]), string(public))
	}
	g.Expect(pass(true)).To(Equal(Settled), "a mark from before the first key asks for nothing")
	first := secret.Data[ServiceAccountPrivateKey]

	r.Request = "once"
	g.Expect(pass(false)).To(Equal(Trusting))
	next := secret.Data[nextServiceAccountKey]
	g.Expect(secret.Data[ServiceAccountPrivateKey]).To(Equal(first), "it signs until the next one is accepted everywhere")
	g.Expect(accepted(first) && accepted(next)).To(BeTrue())
	g.Expect(pass(false)).To(Equal(Trusting))
	g.Expect(pass(true)).To(Equal(Signing))
	g.Expect(secret.Data[ServiceAccountPrivateKey]).To(Equal(next))
	g.Expect(accepted(first) && accepted(next)).To(BeTrue())
	g.Expect(pass(false)).To(Equal(Signing))
	g.Expect(pass(true)).To(Equal(Overlapping))
	at = at.Add(time.Hour - time.Second)
	g.Expect(pass(true)).To(Equal(Overlapping))
	g.Expect(accepted(first)).To(BeTrue())
	at = at.Add(time.Second)
	g.Expect(pass(false)).To(Equal(Settled))
	g.Expect(accepted(first)).To(BeFalse())
	g.Expect(accepted(next)).To(BeTrue())
	g.Expect(pass(true)).To(Equal(Settled))
	g.Expect(secret.Data).To(HaveLen(2))
}

func TestOverdue(t *testing.T) {
	s := newSigner(t, Rotation{KeepChain: true})
	for _, tc := range []struct {
		name   string
		secret *corev1.Secret
		left   time.Duration
		want   bool
	}{
		{"a leaf is valid for a little more than a month", s.leaf, DefaultRenewBefore + time.Hour, false},
		{"a leaf is hours past its renewal", s.leaf, DefaultRenewBefore - 2*time.Hour, true},
		{"a leaf has expired", s.leaf, -time.Hour, true},
		{"a CA is valid for a year", s.secret, CAValidity - 9*365*24*time.Hour, false},
		{"a CA is valid for a week", s.secret, 7 * 24 * time.Hour, true},
		{"a Secret has no certificate", &corev1.Secret{Data: map[string][]byte{"tls.crt": []byte("x"), "password": []byte("y")}}, 0, false},
	} {
		t.Run("When "+tc.name+", it should report whether the renewal is overdue", func(t *testing.T) {
			NewWithT(t).Expect(Overdue(tc.secret, FirstToExpire(tc.secret).Add(-tc.left)).IsZero()).To(Equal(!tc.want))
		})
	}
	t.Run("When machines know only a previous CA, it should report the expiry of that CA", func(t *testing.T) {
		g := NewWithT(t)
		end := FirstToExpire(s.secret)
		s.rotation.Request = "once"
		s.now = s.now.Add(365 * 24 * time.Hour)
		for range 6 {
			s.pass(true)
		}
		g.Expect(FirstToExpire(s.secret)).To(Equal(end))
		g.Expect(Overdue(s.secret, end.Add(-24*time.Hour))).To(Equal(end))
	})
}
