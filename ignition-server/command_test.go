// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/ignition-server/token"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
	"github.com/openshift/hypershift/support/testenv"
)

const (
	hosted  = "clusters-demo"
	patient = 3 * time.Minute
)

// TestProcess runs the complete process against a real API server. A token Secret appears, a machine gets its
// configuration, and a change of an input reaches the next machine.
func TestProcess(t *testing.T) {
	g := NewWithT(t)
	config := testenv.Start(t, crds.HyperShift, crds.ClusterAPI)
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(hyperv1.AddToScheme(scheme)).To(Succeed())
	c, err := client.New(config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	registry := releasetest.Start(t)
	release := registry.PushRelease(t, releaseinfo.Payload{
		Version: "1.36.3", Distribution: releaseinfo.Kubernetes,
		Components: map[string]string{"node": "registry.example/node:1", "pod": "registry.example/pod:1"},
	})
	createWorld(t, c, registry, release)
	o := &options{addr: testenv.FreeAddress(t), metricsAddr: "0", namespace: hosted, look: 50 * time.Millisecond}
	o.certFile, o.keyFile = certificate(t)
	o.nodeAgentDir = t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(o.nodeAgentDir, "amd64"), []byte("node-agent"), 0o600)).To(Succeed())
	o.guestKubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(o.guestKubeconfig, testenv.Kubeconfig(t, config), 0o600)).To(Succeed())
	mgr, err := o.manager(config, slog.New(slog.DiscardHandler))
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the process ended with: %v", err)
		}
	})

	fetch := func() (int, string) { return get(t, "https://"+o.addr+"/ignition", "the-token") }
	status := func() int { code, _ := fetch(); return code }
	g.Eventually(status, patient, "50ms").Should(Equal(http.StatusOK))
	g.Eventually(func() map[string]string { return readToken(t, c).Annotations }, patient, "50ms").
		Should(HaveKeyWithValue(token.ReachedAnnotation, "True"))
	g.Eventually(func() string { return string(readToken(t, c).Data[token.ReasonKey]) }, patient, "50ms").
		Should(Equal("AsExpected"), "which is written once the token is served")
	code, _ := get(t, "https://"+o.addr+"/ignition", "another-token")
	g.Expect(code).To(Equal(http.StatusNetworkAuthenticationRequired))
	g.Expect(getWith(t, "https://"+o.addr+"/node-config/0")).To(Equal(http.StatusUnauthorized), "a certificate that nobody signed is asked for, read, and refused")

	bootstrap := &corev1.Secret{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: hosted, Name: "bootstrap-kubeconfig"}, bootstrap)).To(Succeed())
	bootstrap.Data["kubeconfig"] = []byte("rotated")
	g.Expect(c.Update(t.Context(), bootstrap)).To(Succeed())
	g.Eventually(func() string { _, body := fetch(); return body }, patient, "50ms").
		Should(ContainSubstring(base64.StdEncoding.EncodeToString([]byte("rotated"))), "a rotated bootstrap kubeconfig must reach machines that boot now")

	g.Expect(c.Delete(t.Context(), readToken(t, c))).To(Succeed())
	g.Eventually(status, patient, "50ms").Should(Equal(http.StatusNetworkAuthenticationRequired))
}

func createWorld(t *testing.T, c client.Client, registry *releasetest.Registry, release string) {
	t.Helper()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: hosted, Name: name} }
	tokenMeta := meta("token-workers-0")
	tokenMeta.Annotations = map[string]string{
		token.ConfigAnnotation: "true", token.NodePoolAnnotation: "clusters/workers",
		token.GeneratedAnnotation: time.Now().Format(time.RFC3339Nano),
	}
	caFile, _ := certificate(t)
	ca, err := os.ReadFile(caFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hosted}},
		controlPlane(hosted, release),
		&corev1.Secret{ObjectMeta: meta("pull-secret"), Data: map[string][]byte{".dockerconfigjson": []byte(`{"auths":{}}`)}},
		&corev1.Secret{ObjectMeta: meta("bootstrap-kubeconfig"), Data: map[string][]byte{"kubeconfig": []byte("kind: Config")}},
		&corev1.ConfigMap{ObjectMeta: meta("kubelet-client-ca"), Data: map[string]string{"ca.crt": string(ca)}},
		&corev1.ConfigMap{ObjectMeta: meta("user-ca-bundle"), Data: map[string]string{"ca-bundle.crt": string(registry.CA)}},
		&corev1.Secret{ObjectMeta: tokenMeta, Data: map[string][]byte{token.TokenKey: []byte("the-token"), token.ReleaseKey: []byte(release)}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: hosted, Name: "token-workers-0", Labels: map[string]string{hyperv1.SecretGrantLabel: "ignition-server"}}},
	} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

func controlPlane(namespace, release string) *hyperv1.HostedControlPlane {
	return &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "demo"}, Spec: hyperv1.HostedControlPlaneSpec{
		ReleaseImage: release, IssuerURL: "https://kubernetes.default.svc", InfraID: "demo",
		PullSecret:            corev1.LocalObjectReference{Name: "pull-secret"},
		Platform:              hyperv1.PlatformSpec{Type: hyperv1.NonePlatform},
		Etcd:                  hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}},
		Services:              services(),
		Networking:            hyperv1.ClusterNetworking{ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: *ipnet.MustParseCIDR("172.31.0.0/16")}}},
		AdditionalTrustBundle: &corev1.LocalObjectReference{Name: "user-ca-bundle"},
		Capabilities:          &hyperv1.Capabilities{},
	}}
}

func services() []hyperv1.ServicePublishingStrategyMapping {
	var list []hyperv1.ServicePublishingStrategyMapping
	for _, s := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		list = append(list, hyperv1.ServicePublishingStrategyMapping{Service: s, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{
			Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "192.0.2.1"},
		}})
	}
	return list
}

func readToken(t *testing.T, c client.Client) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: hosted, Name: "token-workers-0"}, secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// get returns the status code and the body of a response. The status code is 0 while the server is not running.
func get(t *testing.T, url, tok string) (int, string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+base64.StdEncoding.EncodeToString([]byte(tok)))
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// getWith sends a request with a self-made certificate.
func getWith(t *testing.T, url string) int {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(certificate(t))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}

func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ignition-server"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for name, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

func TestFlags(t *testing.T) {
	tests := []struct {
		name, variable string
		args           []string
		says           string
	}{
		{"When the namespace is not set, it should name the environment variable", "", nil, "environment variable MY_NAMESPACE is empty"},
		{"When there are arguments, it should return an error", "hosted", []string{"x"}, `unknown command "x"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("MY_NAMESPACE", tt.variable)
			cmd := command()
			cmd.SetArgs(tt.args)
			NewWithT(t).Expect(cmd.ExecuteContext(t.Context())).To(MatchError(ContainSubstring(tt.says)))
		})
	}
}

func TestMirrors(t *testing.T) {
	g := NewWithT(t)
	got, err := (&options{registryOverrides: "a=b", imageOverrides: "c=d,c=e"}).mirrors()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal([]releaseinfo.Mirror{{Source: "a", Mirrors: []string{"b"}}, {Source: "c", Mirrors: []string{"d"}}, {Source: "c", Mirrors: []string{"e"}}}))
	_, err = (&options{registryOverrides: "a"}).mirrors()
	g.Expect(err).To(MatchError(ContainSubstring("--registry-overrides")))
	_, err = (&options{imageOverrides: "a"}).mirrors()
	g.Expect(err).To(MatchError(ContainSubstring("OPENSHIFT_IMG_OVERRIDES")))
}
