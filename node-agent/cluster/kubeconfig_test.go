// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/node-agent/cluster"
	"github.com/openshift/hypershift/node-agent/host/hosttest"
)

const clientPEM = "/var/lib/kubelet/pki/kubelet-client-current.pem"

// member is a machine that has joined a cluster. The API server of the cluster is a handler of the test.
type member struct {
	*GomegaWithT
	*hosttest.Machine
	server *httptest.Server
	node   *cluster.Node

	mu sync.Mutex
	// shown holds the common names of the client certificates that the server received.
	shown []string
}

func newMember(t *testing.T, handler http.HandlerFunc) *member {
	t.Helper()
	m := &member{GomegaWithT: NewWithT(t), Machine: hosttest.New(t)}
	m.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		for _, c := range r.TLS.PeerCertificates {
			m.shown = append(m.shown, c.Subject.CommonName)
		}
		m.mu.Unlock()
		handler(w, r)
	}))
	m.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	m.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert}
	m.server.StartTLS()
	t.Cleanup(m.server.Close)
	m.PutMode(clientPEM, pair(t, "system:node:worker-1"), 0o600)
	m.kubeconfig("certificate-authority-data: "+base64.StdEncoding.EncodeToString(m.ca()), "client-certificate: "+clientPEM+", client-key: "+clientPEM)
	m.node = &cluster.Node{Host: m.Host, Name: "worker-1"}
	return m
}

func (m *member) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.server.Certificate().Raw})
}

func (m *member) kubeconfig(ca, user string) {
	m.PutMode(cluster.Kubeconfig, "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: \""+m.server.URL+"\", "+ca+"}}], users: [{name: u, user: {"+user+"}}]}\n", 0o600)
}

// pair returns a certificate and its key, in PEM.
func pair(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, block := range []*pem.Block{{Type: "CERTIFICATE", Bytes: certificate}, {Type: "EC PRIVATE KEY", Bytes: der}} {
		text.Write(pem.EncodeToMemory(block))
	}
	return text.String()
}

func nothing(http.ResponseWriter, *http.Request) {}

func TestConnect(t *testing.T) {
	t.Parallel()
	t.Run("When the kubelet has renewed its certificate, the next request should use the new one", func(t *testing.T) {
		m := newMember(t, nothing)
		m.Expect(m.node.Reach(t.Context())).To(Succeed())
		m.PutMode(clientPEM, pair(t, "system:node:renewed"), 0o600)
		m.Expect(m.node.Reach(t.Context())).To(Succeed())
		m.Expect(m.shown).To(Equal([]string{"system:node:worker-1", "system:node:renewed"}))
	})
	t.Run("When the kubeconfig names a CA file, it should read the CA from the file", func(t *testing.T) {
		m := newMember(t, nothing)
		m.Put("/etc/kubernetes/ca.crt", string(m.ca()))
		m.kubeconfig("certificate-authority: /etc/kubernetes/ca.crt", "client-certificate: "+clientPEM+", client-key: "+clientPEM)
		m.Expect(m.node.Reach(t.Context())).To(Succeed())
	})
	t.Run("When the server is overridden, it should still trust only the CA of the cluster", func(t *testing.T) {
		asked := ""
		m := newMember(t, func(_ http.ResponseWriter, r *http.Request) { asked = r.URL.Path })
		m.node.Server = m.server.URL + "/"
		m.kubeconfig("certificate-authority-data: "+base64.StdEncoding.EncodeToString(m.ca()), "client-certificate: "+clientPEM+", client-key: "+clientPEM)
		m.Put(cluster.Kubeconfig, strings.Replace(m.Text(cluster.Kubeconfig), m.server.URL, "https://former.invalid", 1))
		m.Expect(m.node.Reach(t.Context())).To(Succeed())
		m.Expect(asked).To(Equal(nodePath))
		certificate, _, _ := strings.Cut(pair(t, "another CA"), "-----BEGIN EC")
		m.kubeconfig("certificate-authority-data: "+base64.StdEncoding.EncodeToString([]byte(certificate)), "client-certificate: "+clientPEM+", client-key: "+clientPEM)
		m.Expect(m.node.Reach(t.Context())).To(MatchError(ContainSubstring("certificate")))
	})
	for name, tt := range map[string]struct {
		harm func(m *member)
		says string
	}{
		"has not joined": {func(m *member) { m.Expect(m.Remove(cluster.Kubeconfig)).To(Succeed()) }, "has not joined its cluster yet"},
		"cannot read its kubeconfig": {func(m *member) {
			m.Expect(m.Remove(cluster.Kubeconfig)).To(Succeed())
			m.Put(cluster.Kubeconfig+"/x", "")
		}, "is a directory"},
		"has a truncated kubeconfig":  {func(m *member) { m.Put(cluster.Kubeconfig, "{clusters: [{cluster: {server: hunter2") }, "not as the kubelet writes it, with one cluster and one user"},
		"has an empty kubeconfig":     {func(m *member) { m.Put(cluster.Kubeconfig, "") }, "with one cluster and one user"},
		"has two clusters":            {func(m *member) { m.Put(cluster.Kubeconfig, "{clusters: [{}, {}], users: [{}]}") }, "with one cluster and one user"},
		"has no user":                 {func(m *member) { m.Put(cluster.Kubeconfig, "{clusters: [{}], users: []}") }, "with one cluster and one user"},
		"has no CA":                   {func(m *member) { m.kubeconfig("insecure-skip-tls-verify: true", "client-certificate: "+clientPEM) }, "holds no certificate"},
		"has no file for its CA":      {func(m *member) { m.kubeconfig("certificate-authority: /etc/none", "client-certificate: "+clientPEM) }, "reading the CA of the API server: "},
		"has lost its certificate":    {func(m *member) { m.Expect(m.Remove(clientPEM)).To(Succeed()) }, "reading the kubelet's certificate: "},
		"has a truncated certificate": {func(m *member) { m.Put(clientPEM, "-----BEGIN CERTIFICATE-----\nhunter2") }, "reading the kubelet's certificate: "},
	} {
		t.Run("When the machine "+name+", it should return an error without file contents", func(t *testing.T) {
			t.Parallel()
			m := newMember(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") })
			tt.harm(m)
			m.Expect(m.node.Reach(t.Context())).To(MatchError(And(ContainSubstring(tt.says), Not(ContainSubstring("hunter2")))))
		})
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	const elsewhere = "https://api.example.com:6443"
	t.Run("When the server changes, it should keep the rest of the kubeconfig and its mode", func(t *testing.T) {
		m := newMember(t, nothing)
		m.Put(cluster.Kubeconfig, "{clusters: [{name: c, cluster: {server: \"https://old\", tls-server-name: kept}}], contexts: [{name: x, context: {user: u}}], users: [{name: u, user: {token: t}}], current-context: x}")
		read := func() (all map[string]any) {
			m.Expect(yaml.Unmarshal([]byte(m.Text(cluster.Kubeconfig)), &all)).To(Succeed())
			return all
		}
		before := read()
		m.Expect(cluster.SetServer(m.Host, elsewhere)).To(Succeed())
		m.Expect(cluster.Server(m.Host)).To(Equal(elsewhere))
		m.Expect(m.Mode(cluster.Kubeconfig).Perm()).To(BeEquivalentTo(0o600))
		m.Expect(cluster.SetServer(m.Host, "https://old")).To(Succeed())
		m.Expect(read()).To(Equal(before))
	})
	t.Run("When the server is already set, it should not rewrite the kubeconfig", func(t *testing.T) {
		m := newMember(t, nothing)
		m.Changed = func(string) { t.Error("it changed") }
		before := m.Text(cluster.Kubeconfig)
		m.Expect(cluster.SetServer(m.Host, m.server.URL)).To(Succeed())
		m.Expect(m.Text(cluster.Kubeconfig)).To(Equal(before))
	})
	for name, text := range map[string]string{
		"is truncated": "{clusters: [{cluster: {token: hunter2", "is empty": "", "has no cluster": "{clusters: []}", "has two clusters": "{clusters: [{cluster: {}}, {cluster: {}}]}",
		"has clusters of the wrong type": "{clusters: hunter2}", "has a cluster of the wrong type": "{clusters: [hunter2]}", "has a cluster without settings": "{clusters: [{name: hunter2}]}",
	} {
		t.Run("When the kubeconfig "+name+", it should stay unchanged and not be quoted", func(t *testing.T) {
			t.Parallel()
			m := newMember(t, nothing)
			m.Put(cluster.Kubeconfig, text)
			m.Expect(cluster.SetServer(m.Host, elsewhere)).To(MatchError(And(ContainSubstring("not as the kubelet writes it"), Not(ContainSubstring("hunter2")))))
			m.Expect(m.Text(cluster.Kubeconfig)).To(Equal(text))
			_, err := cluster.Server(m.Host)
			if err != nil {
				m.Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
			}
		})
	}
	t.Run("When there is no kubeconfig, it should return an error and not create one", func(t *testing.T) {
		m := newMember(t, nothing)
		m.Expect(m.Remove(cluster.Kubeconfig)).To(Succeed())
		_, err := cluster.Server(m.Host)
		m.Expect(err).To(MatchError(ContainSubstring("has not joined")))
		m.Expect(cluster.SetServer(m.Host, elsewhere)).NotTo(Succeed())
		m.Expect(m.Exists(cluster.Kubeconfig)).To(BeFalse())
	})
}
