// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func curveKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func encoded(t *testing.T, kind string, key any, encode func(any) ([]byte, error)) []byte {
	t.Helper()
	der, err := encode(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// TestKeysOfUsers checks that a key which the user provides signs the tokens of a cluster, whatever its type.
func TestKeysOfUsers(t *testing.T) {
	curve := curveKey(t)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1 := func(key any) ([]byte, error) { return x509.MarshalECPrivateKey(key.(*ecdsa.PrivateKey)) }
	for name, tc := range map[string]struct {
		key    []byte
		public crypto.PublicKey
	}{
		"an EC key as openssl ecparam writes it": {encoded(t, "EC PRIVATE KEY", curve, sec1), curve.Public()},
		"an EC key as openssl genpkey writes it": {encoded(t, "PRIVATE KEY", curve, x509.MarshalPKCS8PrivateKey), curve.Public()},
		"an Ed25519 key":                         {encoded(t, "PRIVATE KEY", edwards, x509.MarshalPKCS8PrivateKey), edwards.Public()},
		"surrounded by other text":               {append(append([]byte("mine:\n"), encoded(t, "PRIVATE KEY", curve, x509.MarshalPKCS8PrivateKey)...), "end\n"...), curve.Public()},
	} {
		t.Run("When the key is "+name+", it should keep the key and derive its public key", func(t *testing.T) {
			g := NewWithT(t)
			secret := &corev1.Secret{Data: map[string][]byte{ServiceAccountPrivateKey: tc.key}}
			g.Expect(EnsureServiceAccountKey(secret)).To(Succeed())
			g.Expect(secret.Data[ServiceAccountPrivateKey]).To(Equal(tc.key))
			block, _ := pem.Decode(secret.Data[ServiceAccountPublicKey])
			g.Expect(block.Type).To(Equal("PUBLIC KEY"))
			public, err := x509.ParsePKIXPublicKey(block.Bytes)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(public).To(Equal(tc.public))
		})
	}
}

// TestDamagedServiceAccountKey checks that a key which cannot be read is not replaced. All tokens depend on the key, so
// only an administrator can restore it.
func TestDamagedServiceAccountKey(t *testing.T) {
	exchange, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	agreed := encoded(t, "PRIVATE KEY", exchange, x509.MarshalPKCS8PrivateKey)
	for name, key := range map[string][]byte{
		"truncated": []byte("-----BEGIN RSA PRIVATE KEY-----\nMIIhush"), "not PEM": []byte("hush"), "of another content": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("hush")}),
		"one that cannot sign": agreed,
	} {
		t.Run("When the key is "+name+", it should keep the key and name the remedy", func(t *testing.T) {
			g := NewWithT(t)
			data := map[string][]byte{ServiceAccountPrivateKey: key, ServiceAccountPublicKey: []byte("public")}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "sa-signing-key"}, Data: maps.Clone(data)}
			for _, ensure := range []func(*corev1.Secret) error{EnsureServiceAccountKey, Rotation{Request: "x"}.EnsureServiceAccountKey} {
				err := ensure(secret)
				g.Expect(err).To(MatchError(And(ContainSubstring("Secret clusters-demo/sa-signing-key"), ContainSubstring("restore it"))))
				g.Expect(err.Error()).NotTo(ContainSubstring("hush"))
				g.Expect(secret.Data).To(Equal(data))
			}
		})
	}
	t.Run("When only the private key is gone, it should create a new key pair", func(t *testing.T) {
		g := NewWithT(t)
		secret := &corev1.Secret{Data: map[string][]byte{ServiceAccountPublicKey: []byte("of a key that is lost")}}
		g.Expect(EnsureServiceAccountKey(secret)).To(Succeed())
		want, err := publicOf(secret.Data[ServiceAccountPrivateKey])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(secret.Data[ServiceAccountPublicKey]).To(Equal(want))
	})
}

// TestDamagedNextKeys checks that damage to the keys in the middle of a rotation does not lose the current key.
func TestDamagedNextKeys(t *testing.T) {
	g := NewWithT(t)
	secret, r := &corev1.Secret{}, Rotation{Request: "before"}
	g.Expect(r.EnsureServiceAccountKey(secret)).To(Succeed())
	r.Request = "now"
	g.Expect(r.AdvanceServiceAccountKey(secret, false, now)).To(Succeed())
	secret.Data[nextServiceAccountKey] = []byte("hush")
	before := secret.DeepCopy()
	err := r.AdvanceServiceAccountKey(secret, true, now)
	g.Expect(err).To(MatchError(ContainSubstring("reading a service account key")))
	g.Expect(err.Error()).NotTo(ContainSubstring("hush"))
	g.Expect(secret).To(Equal(before))
}

func TestSignClient(t *testing.T) {
	g := NewWithT(t)
	root := ca(t)
	root.Chain = []byte("chain\n")
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "system:node:n", Organization: []string{"system:nodes"}},
		DNSNames: []string{"kubernetes.default"},
	}, curveKey(t))
	g.Expect(err).NotTo(HaveOccurred())
	request, err := x509.ParseCertificateRequest(der)
	g.Expect(err).NotTo(HaveOccurred())
	signed, err := root.SignClient(request, time.Hour, now)
	g.Expect(err).NotTo(HaveOccurred())
	block, rest := pem.Decode(signed)
	g.Expect(string(rest)).To(Equal("chain\n"), "who knows only a former authority needs the way to this one")
	cert, err := x509.ParseCertificate(block.Bytes)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cert.Subject.CommonName).To(Equal("system:node:n"))
	g.Expect(cert.Subject.Organization).To(Equal([]string{"system:nodes"}))
	g.Expect(cert.PublicKey).To(Equal(request.PublicKey))
	g.Expect(cert.DNSNames).To(BeEmpty(), "a client does not choose for which hosts it may stand")
	g.Expect(cert.IsCA).To(BeFalse())
	g.Expect(cert.ExtKeyUsage).To(Equal([]x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}))
	g.Expect(cert.NotAfter).To(Equal(now.Add(time.Hour)))
	g.Expect(cert.NotBefore).To(BeTemporally("<", now), "clocks of others lag behind")
	g.Expect(cert.CheckSignatureFrom(root.Cert)).To(Succeed())

	again, err := root.SignClient(request, 2*CAValidity, now)
	g.Expect(err).NotTo(HaveOccurred())
	block, _ = pem.Decode(again)
	longest, err := x509.ParseCertificate(block.Bytes)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(longest.NotAfter).To(Equal(root.Cert.NotAfter), "nothing outlives its signer")
	g.Expect(longest.SerialNumber).NotTo(Equal(cert.SerialNumber))
}

// TestClientTLS checks that an etcd or an API server of the same authority accepts the client, and that the client
// rejects a server of another authority.
func TestClientTLS(t *testing.T) {
	at := time.Now()
	root, other := ca(t), ca(t)
	issue := func(ca *KeyPair, leaf Leaf) *KeyPair {
		pair, err := ca.Issue(leaf, Lifetime{Validity: CAValidity}, at)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	callers := make(chan string, 1)
	serve := func(ca *KeyPair) string {
		pair := issue(ca, serverLeaf())
		certificate, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
		if err != nil {
			t.Fatal(err)
		}
		clients := x509.NewCertPool()
		clients.AddCert(root.Cert)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			callers <- r.TLS.PeerCertificates[0].Subject.CommonName
		}))
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
		server.StartTLS()
		t.Cleanup(server.Close)
		return server.URL
	}
	client := issue(root, Leaf{Name: Name{CommonName: "backup"}, Client: true})
	call := func(url string) (string, error) {
		config, err := ClientTLS(client.CertPEM, client.KeyPEM, root.CertPEM)
		if err != nil {
			return "", err
		}
		transport := &http.Transport{TLSClientConfig: config}
		defer transport.CloseIdleConnections()
		response, err := (&http.Client{Transport: transport}).Get(url)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		return <-callers, nil
	}
	g := NewWithT(t)
	who, err := call(serve(root))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(who).To(Equal("backup"))
	_, err = call(serve(other))
	g.Expect(err).To(MatchError(ContainSubstring("unknown authority")))
	_, err = ClientTLS(client.CertPEM, issue(root, serverLeaf()).KeyPEM, root.CertPEM)
	g.Expect(err).To(MatchError(ContainSubstring("the client certificate and its key cannot be used")))
	_, err = ClientTLS(client.CertPEM, client.KeyPEM, []byte("nothing"))
	g.Expect(err).To(MatchError(ContainSubstring("the CA bundle has no certificate")), "or the system's authorities would be trusted")
}

func TestAuthorities(t *testing.T) {
	g := NewWithT(t)
	root := ca(t)
	g.Expect(root.Cert.IsCA).To(BeTrue())
	g.Expect(root.Cert.Subject.OrganizationalUnit).To(Equal([]string{"openshift"}))
	g.Expect(root.Cert.NotAfter).To(Equal(now.Add(CAValidity)))
	leaf, err := root.Issue(serverLeaf(), Lifetime{}, now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(leaf.Cert.IsCA).To(BeFalse())
	g.Expect(leaf.Hash()).NotTo(Equal(root.Hash()))
	same, err := Parse(leaf.CertPEM, leaf.KeyPEM)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(same.Hash()).To(Equal(leaf.Hash()))
	_, err = Parse(leaf.CertPEM, root.KeyPEM)
	g.Expect(err).To(MatchError(ContainSubstring("reading a key pair")), "a key of another certificate")
}

// TestLeafIsRepaired checks that a manual change to a Secret is reverted, and that the key is replaced with its
// certificate.
func TestLeafIsRepaired(t *testing.T) {
	root := ca(t)
	for name, change := range map[string]func(*corev1.Secret){
		"the key is gone":                        func(s *corev1.Secret) { delete(s.Data, corev1.TLSPrivateKeyKey) },
		"the key belongs to another certificate": func(s *corev1.Secret) { s.Data[corev1.TLSPrivateKeyKey] = root.KeyPEM },
		"the certificate is damaged":             func(s *corev1.Secret) { s.Data[corev1.TLSCertKey] = []byte("x") },
		"the annotations are removed":            func(s *corev1.Secret) { s.Annotations = nil },
	} {
		t.Run("When "+name+", it should issue the certificate again", func(t *testing.T) {
			g := NewWithT(t)
			secret := &corev1.Secret{Type: corev1.SecretTypeTLS}
			first, err := EnsureLeaf(secret, TLSKeys, root, serverLeaf(), Lifetime{}, now)
			g.Expect(err).NotTo(HaveOccurred())
			change(secret)
			again, err := EnsureLeaf(secret, TLSKeys, root, serverLeaf(), Lifetime{}, now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again.CertPEM).NotTo(Equal(first.CertPEM))
			_, err = Parse(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(secret.Type).To(Equal(corev1.SecretTypeTLS), "a type can't be changed")
		})
	}
	t.Run("When only the CA bundle was changed, it should keep the certificate", func(t *testing.T) {
		g := NewWithT(t)
		secret := &corev1.Secret{}
		first, err := EnsureLeaf(secret, TLSKeys, root, serverLeaf(), Lifetime{}, now)
		g.Expect(err).NotTo(HaveOccurred())
		secret.Data[CACertKey] = []byte("x")
		again, err := EnsureLeaf(secret, TLSKeys, root, serverLeaf(), Lifetime{}, now)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.CertPEM).To(Equal(first.CertPEM))
		g.Expect(bytes.Equal(secret.Data[CACertKey], root.CertPEM)).To(BeTrue())
	})
}
