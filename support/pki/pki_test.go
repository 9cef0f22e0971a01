// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"math/big"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

var now = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// ca returns an authority that all tests share, because creating its key takes a while. Tests do not change it.
func ca(t testing.TB) *KeyPair {
	t.Helper()
	pair, err := NewCA(Name{CommonName: "root-ca", OrganizationalUnits: []string{"openshift"}}, now)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func serverLeaf() Leaf {
	return Leaf{
		Name:   Name{CommonName: "kubernetes", Organizations: []string{"kubernetes"}},
		Server: true, Hosts: []string{"localhost", "127.0.0.1", "kubernetes.default", "localhost", ""},
	}
}

func TestIssue(t *testing.T) {
	root := ca(t)
	t.Run("When a leaf certificate is issued, it should be valid only for its hosts and under its signer", func(t *testing.T) {
		g := NewWithT(t)
		pair, err := root.Issue(serverLeaf(), Lifetime{}, now)
		g.Expect(err).NotTo(HaveOccurred())
		roots := x509.NewCertPool()
		roots.AddCert(root.Cert)
		for host, valid := range map[string]bool{"localhost": true, "127.0.0.1": true, "kubernetes.default": true, "example.com": false} {
			_, err := pair.Cert.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
			g.Expect(err == nil).To(Equal(valid), "%s: %v", host, err)
		}
		_, err = pair.Cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		g.Expect(err).To(HaveOccurred(), "a server certificate is no client certificate")
		g.Expect(pair.Cert.NotAfter).To(Equal(now.Add(DefaultValidity)))
		g.Expect(pair.Cert.DNSNames).To(Equal([]string{"localhost", "kubernetes.default"}))
	})
	t.Run("When a leaf certificate would outlive its signer, it should expire with the signer", func(t *testing.T) {
		g := NewWithT(t)
		pair, err := root.Issue(serverLeaf(), Lifetime{Validity: 2 * CAValidity}, now)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pair.Cert.NotAfter).To(Equal(root.Cert.NotAfter))
	})
}

func TestMismatch(t *testing.T) {
	root, other := ca(t), ca(t)
	cases := []struct {
		name   string
		change func(*Leaf)
		signer *KeyPair
		life   Lifetime
		after  time.Duration
		want   string
	}{
		{name: "nothing changed"},
		{name: "hosts are only reordered", change: func(l *Leaf) { l.Hosts = []string{"127.0.0.1", "kubernetes.default", "localhost"} }},
		{name: "a DNS name was added", change: func(l *Leaf) { l.Hosts = append(l.Hosts, "api.example.com") }, want: "its DNS names changed"},
		{name: "an address was removed", change: func(l *Leaf) { l.Hosts = []string{"localhost", "kubernetes.default"} }, want: "its IP addresses changed"},
		{name: "the user changed", change: func(l *Leaf) { l.CommonName = "other" }, want: "its common name changed"},
		{name: "the groups changed", change: func(l *Leaf) { l.Organizations = nil }, want: "its organizations changed"},
		{name: "it is also used for clients", change: func(l *Leaf) { l.Client = true }, want: "its usages changed"},
		{name: "the signer was recreated", signer: other, want: "its signer changed"},
		{name: "a month and a day are left", after: DefaultValidity - DefaultRenewBefore - 24*time.Hour},
		{name: "less than a month is left", after: DefaultValidity - DefaultRenewBefore + time.Minute, want: "it is about to expire"},
		{name: "half its lifetime is over and the limit is a quarter", life: Lifetime{RenewAfter: 0.25}, after: DefaultValidity / 2, want: "it is about to expire"},
		{name: "half its lifetime is over and the limit is three quarters", life: Lifetime{RenewAfter: 0.75}, after: DefaultValidity / 2},
		{name: "the clock was set back", after: -time.Hour, want: "it is not valid yet"},
	}
	pair, err := root.Issue(serverLeaf(), Lifetime{}, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range cases {
		t.Run("When "+tc.name+", it should return the reason for renewal, if any", func(t *testing.T) {
			leaf := serverLeaf()
			if tc.change != nil {
				tc.change(&leaf)
			}
			signer := root
			if tc.signer != nil {
				signer = tc.signer
			}
			NewWithT(t).Expect(signer.Mismatch(pair, leaf, tc.life, now.Add(tc.after))).To(Equal(tc.want))
		})
	}
	t.Run("When a certificate is valid for an hour, it should not be renewed immediately", func(t *testing.T) {
		g := NewWithT(t)
		life := Lifetime{Validity: time.Hour}
		short, err := root.Issue(serverLeaf(), life, now)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(root.Mismatch(short, serverLeaf(), life, now)).To(BeEmpty())
		g.Expect(root.Mismatch(short, serverLeaf(), life, now.Add(50*time.Minute))).To(Equal("it is about to expire"))
	})
}

func TestEnsureCA(t *testing.T) {
	t.Run("When the existing CA cannot be read, it should keep it and name the remedy", func(t *testing.T) {
		a, b := ca(t), ca(t)
		for what, data := range map[string]map[string][]byte{
			"the key of another": {CAKeyKey: a.KeyPEM, CACertKey: b.CertPEM},
			"no certificate":     {CAKeyKey: []byte("x")}, "no key": {CACertKey: []byte("x")}, "garbage": {CACertKey: []byte("x"), CAKeyKey: []byte("y")},
		} {
			g := NewWithT(t)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "root-ca"}, Data: maps.Clone(data)}
			_, err := EnsureCA(secret, Name{CommonName: "root"}, now)
			g.Expect(err).To(MatchError(And(ContainSubstring("clusters-demo/root-ca"), ContainSubstring("restore it"))), what)
			g.Expect(secret.Data).To(Equal(data), what)
		}
	})
	name := Name{CommonName: "etcd-signer"}
	t.Run("When a Secret is empty, it should get a CA under both pairs of keys", func(t *testing.T) {
		g := NewWithT(t)
		secret := &corev1.Secret{}
		made, err := EnsureCA(secret, name, now)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(secret.Type).To(Equal(corev1.SecretTypeOpaque))
		g.Expect(secret.Data["ca.crt"]).To(Equal(made.CertPEM))
		g.Expect(secret.Data["tls.crt"]).To(Equal(made.CertPEM))
		g.Expect(secret.Data["tls.key"]).To(Equal(secret.Data["ca.key"]))
		g.Expect(made.Cert.Subject.CommonName).To(Equal("etcd-signer"))

		again, err := EnsureCA(secret, Name{CommonName: "renamed"}, now.Add(CAValidity))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.CertPEM).To(Equal(made.CertPEM), "an authority is never replaced by itself")
	})
	t.Run("When a Secret has no CA, it should name the Secret in the error and not print its content", func(t *testing.T) {
		secret := &corev1.Secret{Data: map[string][]byte{"ca.key": []byte("hush")}}
		secret.Namespace, secret.Name = "ns", "root-ca"
		_, err := CAOf(secret)
		g := NewWithT(t)
		g.Expect(err).To(MatchError(ContainSubstring("Secret ns/root-ca")))
		g.Expect(err.Error()).NotTo(ContainSubstring("hush"))
	})
}

func TestEnsureLeaf(t *testing.T) {
	root := ca(t)
	t.Run("When a Secret has a matching certificate, it should keep it until its renewal is due", func(t *testing.T) {
		g := NewWithT(t)
		secret := &corev1.Secret{}
		first, err := EnsureLeaf(secret, TLSKeys, root, serverLeaf(), Lifetime{}, now)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(secret.Data["ca.crt"]).To(Equal(root.CertPEM))
		kept := secret.DeepCopy()
		_, err = EnsureLeaf(secret, TLSKeys, root, serverLeaf(), Lifetime{}, now.Add(24*time.Hour))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(secret).To(Equal(kept))
		later := now.Add(DefaultValidity - 24*time.Hour)
		renewed, err := EnsureLeaf(secret, TLSKeys, root, serverLeaf(), Lifetime{}, later)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(renewed.CertPEM).NotTo(Equal(first.CertPEM))
		g.Expect(renewed.Cert.NotAfter).To(Equal(later.Add(DefaultValidity)))
	})
	t.Run("When a Secret has its own key names, it should use them and not add the CA", func(t *testing.T) {
		g := NewWithT(t)
		secret := &corev1.Secret{}
		_, err := EnsureLeaf(secret, Keys{Cert: "peer.crt", Key: "peer.key"}, root, serverLeaf(), Lifetime{}, now)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(secret.Data).To(HaveLen(2))
		g.Expect(secret.Data).To(HaveKey("peer.crt"))
	})
	t.Run("When the signer's key changes under the same certificate, it should detect that by the hash", func(t *testing.T) {
		g := NewWithT(t)
		secret := &corev1.Secret{}
		first, err := EnsureLeaf(secret, TLSKeys, root, serverLeaf(), Lifetime{}, now)
		g.Expect(err).NotTo(HaveOccurred())
		secret.Annotations[SignerHashAnnotation] = "other"
		again, err := EnsureLeaf(secret, TLSKeys, root, serverLeaf(), Lifetime{}, now)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.CertPEM).NotTo(Equal(first.CertPEM))
	})
}

func TestEnsureServiceAccountKey(t *testing.T) {
	t.Run("When there is no key, it should create a matching pair once", func(t *testing.T) {
		g := NewWithT(t)
		secret := &corev1.Secret{}
		g.Expect(EnsureServiceAccountKey(secret)).To(Succeed())
		private, _ := pem.Decode(secret.Data["service-account.key"])
		key, err := x509.ParsePKCS1PrivateKey(private.Bytes)
		g.Expect(err).NotTo(HaveOccurred())
		public, _ := pem.Decode(secret.Data["service-account.pub"])
		g.Expect(public.Type).To(Equal("RSA PUBLIC KEY"))
		parsed, err := x509.ParsePKIXPublicKey(public.Bytes)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(parsed.(*rsa.PublicKey).Equal(&key.PublicKey)).To(BeTrue())
		kept := secret.DeepCopy()
		g.Expect(EnsureServiceAccountKey(secret)).To(Succeed())
		g.Expect(secret).To(Equal(kept))
	})
	t.Run("When the user provides a key, it should keep it unchanged and derive the public key", func(t *testing.T) {
		g := NewWithT(t)
		key, err := rsa.GenerateKey(rand.Reader, rsaBits)
		g.Expect(err).NotTo(HaveOccurred())
		der, err := x509.MarshalPKCS8PrivateKey(key)
		g.Expect(err).NotTo(HaveOccurred())
		users := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
		secret := &corev1.Secret{Data: map[string][]byte{"service-account.key": users}}
		g.Expect(EnsureServiceAccountKey(secret)).To(Succeed())
		g.Expect(secret.Data["service-account.key"]).To(Equal(users))
		g.Expect(secret.Data["service-account.pub"]).NotTo(BeEmpty())
	})
	t.Run("When the public key lists old keys, it should keep them", func(t *testing.T) {
		g := NewWithT(t)
		secret := &corev1.Secret{}
		g.Expect(EnsureServiceAccountKey(secret)).To(Succeed())
		secret.Data["service-account.pub"] = append(secret.Data["service-account.pub"], "old key"...)
		g.Expect(EnsureServiceAccountKey(secret)).To(Succeed())
		g.Expect(string(secret.Data["service-account.pub"])).To(HaveSuffix("old key"))
	})
}

func TestKubeconfig(t *testing.T) {
	g := NewWithT(t)
	root := ca(t)
	admin, err := root.Issue(Leaf{Name: Name{CommonName: "system:admin", Organizations: []string{"system:masters"}}, Client: true}, Lifetime{}, now)
	g.Expect(err).NotTo(HaveOccurred())
	raw, err := Kubeconfig("https://192.0.2.10:30443", root.CertPEM, admin)
	g.Expect(err).NotTo(HaveOccurred())
	again, err := Kubeconfig("https://192.0.2.10:30443", root.CertPEM, admin)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(raw), "the same input makes the same text")
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Host).To(Equal("https://192.0.2.10:30443"))
	g.Expect(config.CAData).To(Equal(root.CertPEM))
	g.Expect(config.CertData).To(Equal(admin.CertPEM))
}

func TestBundle(t *testing.T) {
	g := NewWithT(t)
	g.Expect(string(Bundle([]byte("a\n"), nil, []byte("b"), []byte("a")))).To(Equal("a\nb\n"))
	g.Expect(Bundle()).To(BeEmpty())
}

func TestParse(t *testing.T) {
	cases := map[string][2]string{"nothing": {"", ""}, "garbage": {"x", "y"}}
	for name, pair := range cases {
		t.Run("When it is given "+name+", it should return an error", func(t *testing.T) {
			_, err := Parse([]byte(pair[0]), []byte(pair[1]))
			NewWithT(t).Expect(err).To(HaveOccurred())
		})
	}
}

func TestSerialNumbers(t *testing.T) {
	g := NewWithT(t)
	root := ca(t)
	seen := map[string]bool{}
	for range 20 {
		pair, err := root.Issue(serverLeaf(), Lifetime{}, now)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pair.Cert.SerialNumber.Cmp(big.NewInt(0))).To(Equal(1))
		seen[pair.Cert.SerialNumber.String()] = true
	}
	g.Expect(seen).To(HaveLen(20))
}
