// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/ignition-server/identity"
	"github.com/openshift/hypershift/ignition-server/token"
	"github.com/openshift/hypershift/support/nodeplan"
)

// signer is a certificate authority.
type signer struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newSigner(t *testing.T) *signer {
	s := &signer{t: t}
	s.certificate, s.key = s.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "kube-csr-signer"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, s)
	return s
}

func (s *signer) issue(template *x509.Certificate, by *signer) (*x509.Certificate, *ecdsa.PrivateKey) {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore = time.Now().Add(-2 * time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	parent, parentKey := by.certificate, by.key
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		s.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		s.t.Fatal(err)
	}
	return certificate, key
}

func (s *signer) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.certificate.Raw}))
}

// client returns a client's certificate; edit changes its content.
func (s *signer) client(name, group string, edit func(*x509.Certificate)) *tls.Certificate {
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: []string{group}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if edit != nil {
		edit(template)
	}
	certificate, key := s.issue(template, s)
	return &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

func (s *signer) node(name string) *tls.Certificate {
	return s.client("system:node:"+name, "system:nodes", nil)
}

func machineOf(name, pool string, deleted bool) *clusterv1.Machine {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hosted", Name: name, Annotations: map[string]string{hyperv1.NodePoolAnnotation: pool}},
		Status:     clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: "node-" + name}},
	}
	if deleted {
		m.DeletionTimestamp, m.Finalizers = &metav1.Time{Time: time.Now()}, []string{"machine.cluster.x-k8s.io"}
	}
	return m
}

// hosted returns the Nodes of a hosted namespace with the Machines of some pools. signers issue the certificates of the
// nodes.
func hosted(t *testing.T, hooks interceptor.Funcs, signers ...*signer) *identity.Nodes {
	t.Helper()
	bundle := ""
	for _, s := range signers {
		bundle += s.pem()
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), clusterv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	joining := machineOf("joining", "clusters/a", false)
	joining.Status.NodeRef = clusterv1.MachineNodeReference{}
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(hooks).WithObjects(
		machineOf("a", "clusters/a", false), machineOf("b", "clusters/b", false), machineOf("r", "clusters/r", false), machineOf("leaving", "clusters/a", true), joining,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "hosted", Name: "kubelet-client-ca"}, Data: map[string]string{"ca.crt": bundle}},
	).Build()
	return &identity.Nodes{Client: c, Management: c, Namespace: "hosted", Clock: clock.RealClock{}}
}

const renderedPlan = `{"version":1,"configHash":"aaaa","node":{"name":"n","sources":null},"pod":{"name":"p","sources":null},"files":[` +
	`{"path":"/etc/kubernetes/bootstrap-kubeconfig","mode":384,"content":"c2VjcmV0"},{"path":"/etc/kept","mode":420,"content":"eA=="}]}`

func inPlaceTokens() fakeTokens {
	plan := &token.InPlace{Plan: []byte(renderedPlan)}
	return fakeTokens{
		"1": {NodePool: "clusters/a", Hash: "aaaa", InPlace: plan}, "2": {NodePool: "clusters/b", Hash: "bbbb", InPlace: plan},
		"3": {NodePool: "clusters/r", Hash: "rrrr"}, "4": {NodePool: "clusters/a", Hash: "disk", InPlace: &token.InPlace{Refusal: "MachineConfig raid: disks"}},
	}
}

func TestNodes(t *testing.T) {
	old, today, foreign := newSigner(t), newSigner(t), newSigner(t)
	expired := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }
	serving := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
	for _, tc := range []struct {
		name        string
		certificate *tls.Certificate
		path        string
		status      int
		says        string
	}{
		{"When a Node requests a configuration of its pool, it should get the plan", today.node("node-a"), "/node-config/aaaa", 200, `"configHash":"aaaa"`},
		{"When the signer rotates, a Node with a certificate of the previous signer should get the plan", old.node("node-a"), "/node-config/aaaa", 200, `"configHash":"aaaa"`},
		{"When a Node requests node-agent, it should get the program", today.node("node-a"), "/node-agent/amd64", 200, "a program"},
		{"When the configuration belongs to another pool, it should return 404", today.node("node-a"), "/node-config/bbbb", 404, "of NodePool clusters/a"},
		{"When the configuration does not exist, it should return 404", today.node("node-a"), "/node-config/", 404, "no configuration"},
		{"When the path has another segment, it should return 404", today.node("node-a"), "/node-config/aaaa/x", 404, "no configuration"},
		{"When the upgrade type of the pool is Replace, it should reject the request", today.node("node-r"), "/node-config/rrrr", 403, "upgradeType is not InPlace"},
		{"When the configuration cannot be applied in place, it should return the reason", today.node("node-a"), "/node-config/disk", 422, "MachineConfig raid: disks"},
		{"When the Machine does not exist, it should reject the request", today.node("node-gone"), "/node-config/aaaa", 403, "no Machine"},
		{"When the Machine is being deleted, it should reject the request", today.node("node-leaving"), "/node-config/aaaa", 403, "being deleted"},
		{"When the node name is empty, it should not match a Machine without a Node", today.node(""), "/node-config/aaaa", 401, "not that of a node"},
		{"When the certificate is from another cluster, it should reject the request", foreign.node("node-a"), "/node-config/aaaa", 401, "not that of a node"},
		{"When the certificate has expired, it should reject the request", today.client("system:node:node-a", "system:nodes", expired), "/node-config/aaaa", 401, "expired"},
		{"When the certificate is a server certificate, it should reject the request", today.client("system:node:node-a", "system:nodes", serving), "/node-config/aaaa", 401, "key usage"},
		{"When the certificate belongs to a ServiceAccount, it should reject the request", today.client("system:serviceaccount:kube-system:x", "system:serviceaccounts", nil), "/node-config/aaaa", 401, "not that of a node"},
		{"When the certificate belongs to an administrator, it should reject the request", today.client("system:admin", "system:masters", nil), "/node-config/aaaa", 401, "not that of a node"},
		{"When only the common name is that of a node, it should reject the request", today.client("system:node:node-a", "system:masters", nil), "/node-config/aaaa", 401, "not that of a node"},
		{"When only the organization is that of a node, it should reject the request", today.client("node-a", "system:nodes", nil), "/node-config/aaaa", 401, "not that of a node"},
		{"When the certificate is from another cluster, it should not serve node-agent", foreign.node("node-a"), "/node-agent/amd64", 401, "not that of a node"},
		{"When there is no certificate, it should reject the request", nil, "/node-config/aaaa", 401, "certificate of this machine's kubelet"},
		{"When a Node requests the boot payload, it should require a token", today.node("node-a"), "/ignition", 401, "Authorization"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			observer, log := &fakeObserver{}, &bytes.Buffer{}
			server := newServer(inPlaceTokens(), observer, programs, slog.New(slog.NewTextHandler(log, nil)))
			server.Nodes = hosted(t, interceptor.Funcs{}, old, today)
			status, body := ask(t, server, tc.certificate, tc.path)
			g.Expect(status).To(Equal(tc.status), body)
			g.Expect(body).To(ContainSubstring(tc.says))
			g.Expect(body+log.String()).NotTo(ContainSubstring("c2VjcmV0"), "a Node has nothing to join with")
			if tc.status != 200 && tc.certificate != nil && tc.path != "/ignition" {
				g.Expect(observer.refused).To(Equal(1))
				g.Expect(log.String()).To(ContainSubstring("refused a node"))
			}
			if tc.status == 200 && tc.says != "a program" {
				g.Expect(observer.served).To(HaveExactElements(HaveField("Machine", "a")))
				plan, err := nodeplan.Parse([]byte(body))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(plan.Paths()).To(Equal([]string{"/etc/kept", nodeplan.ServerCA, nodeplan.ServerEndpoint}))
			}
		})
	}
	t.Run("When a request has a token and an untrusted certificate, it should accept the token for node-agent", func(t *testing.T) {
		g := NewWithT(t)
		server := newServer(fakeTokens{knownToken: {NodePool: "clusters/a"}}, &fakeObserver{}, programs, slog.New(slog.DiscardHandler))
		server.Nodes = hosted(t, interceptor.Funcs{}, today)
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/node-agent/amd64", nil)
		stranger, err := x509.ParseCertificate(foreign.node("node-a").Certificate[0])
		g.Expect(err).NotTo(HaveOccurred())
		request.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{stranger}}
		request.Header.Set("Authorization", bearer(knownToken))
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, request)
		g.Expect(answer.Body.String()).To(Equal("a program"))
	})
	t.Run("When a Node gets its plan, the response should have the content type and length", func(t *testing.T) {
		g := NewWithT(t)
		server := newServer(inPlaceTokens(), &fakeObserver{}, programs, slog.New(slog.DiscardHandler))
		server.Nodes = hosted(t, interceptor.Funcs{}, today)
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/node-config/aaaa", nil)
		node, err := x509.ParseCertificate(today.node("node-a").Certificate[0])
		g.Expect(err).NotTo(HaveOccurred())
		request.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{node}}
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, request)
		g.Expect(answer.Code).To(Equal(http.StatusOK), answer.Body.String())
		g.Expect(answer.Header()).To(And(HaveKeyWithValue("Content-Type", []string{"application/json; charset=utf-8"}),
			HaveKeyWithValue("Content-Length", []string{strconv.Itoa(answer.Body.Len())})))
	})
	t.Run("When the management cluster is unreachable, it should return 503", func(t *testing.T) {
		g := NewWithT(t)
		away := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("away")
		}}
		server := newServer(inPlaceTokens(), &fakeObserver{}, programs, slog.New(slog.DiscardHandler))
		server.Nodes = hosted(t, away, today)
		status, _ := ask(t, server, today.node("node-a"), "/node-config/aaaa")
		g.Expect(status).To(Equal(http.StatusServiceUnavailable))
	})
}

// ask sends a request with a client certificate, as a machine does.
func ask(t *testing.T, handler *Server, certificate *tls.Certificate, path string) (int, string) {
	t.Helper()
	handler.CA = func() []byte { return []byte("the CA\n") }
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	defer server.Close()
	c := server.Client()
	if certificate != nil {
		c.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{*certificate}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}
