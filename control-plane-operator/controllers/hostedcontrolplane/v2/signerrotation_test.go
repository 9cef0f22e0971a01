// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/component"
	supportpki "github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/testenv"
)

// TestSignerRotation rotates all signers of a control plane with real etcd, API server and controller manager. At each
// step, all existing clients must keep working: with the old and the new certificates, tokens and authorities.
func TestSignerRotation(t *testing.T) {
	testenv.Long(t)
	r := newTurn(t)
	before := r.clients("before")
	kubelet := r.kubelet()
	r.scope.HCP.Annotations = map[string]string{pki.RotationAnnotation: "all=1"}

	var stages []supportpki.Stage
	for range 12 {
		r.reconcile()
		r.roll()
		stage := r.stages()[pki.RootCA]
		if len(stages) > 0 && stages[len(stages)-1] == stage {
			continue
		}
		stages = append(stages, stage)
		for name, config := range before {
			r.works(name+" when it is "+string(stage), config)
		}
		for name, config := range r.clients(string(stage)) {
			r.works(name+" when it is "+string(stage), config)
		}
		r.calls(kubelet, stage)
		if stage == "" {
			break
		}
	}
	t.Log(stages)
	if want := []supportpki.Stage{supportpki.Trusting, supportpki.Signing, supportpki.Overlapping, ""}; !slices.Equal(stages, want) {
		t.Fatalf("it took the steps %v", stages)
	}

	// Previously issued credentials are rejected from now on, except those of nodes.
	r.scope.HCP.Annotations[pki.OverlapAnnotation] = "0s"
	for range 3 {
		r.reconcile()
		r.roll()
	}
	if left := slices.Collect(maps.Keys(r.stages())); !slices.Equal(left, []string{pki.ClusterSignerCA}) {
		t.Fatalf("%v still rotate", left)
	}
	r.works("node when former signers are dropped", before["node"])
	r.refused("administrator of before", before["administrator"])
	r.refused("service account of before", before["service account"])
	for name, config := range r.clients("after") {
		r.works(name+" of after", config)
		// A machine that was installed earlier only trusts the first authority.
		config = rest.CopyConfig(config)
		config.CAData = before["node"].CAData
		r.works(name+" of after with the first authority", config)
	}
	r.calls(kubelet, "done")
}

// turn is a control plane whose pods this test replaces as their controllers would.
type turn struct {
	*machine
	pki        *pki.Reconciler
	components []*component.Component
	// running holds the hashes of the files that the processes were started with.
	running map[string]string
	stops   map[string]func()
}

func newTurn(t *testing.T) *turn {
	m := newMachine(t, controlPlane())
	r := &turn{
		machine: m, components: Kubernetes(Config{})[:3], running: map[string]string{}, stops: map[string]func(){},
		pki: &pki.Reconciler{Client: m.scope.Client, Clock: clocktesting.NewFakePassiveClock(time.Now())},
	}
	r.roll()
	return r
}

func (r *turn) reconcile() {
	r.t.Helper()
	if err := r.pki.Reconcile(r.t.Context(), r.scope.HCP, r.scope.Infra); err != nil {
		r.t.Fatal(err)
	}
}

// roll restarts the processes whose files have changed, and reports their pods.
func (r *turn) roll() {
	r.t.Helper()
	for _, c := range r.components {
		ready(r.t, r.scope, c.Dependencies...)
		if err := c.Reconcile(r.t.Context(), r.scope); err != nil {
			r.t.Fatal(err)
		}
		ready(r.t, r.scope, c.Name)
		template := r.templateOf(c.Name)
		if r.running[c.Name] == template.Annotations[configHash] {
			continue
		}
		if stop := r.stops[c.Name]; stop != nil {
			stop()
		}
		r.stops[c.Name] = r.run(c)
		r.running[c.Name] = template.Annotations[configHash]
		pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
		pod.Namespace, pod.Name = namespace, c.Name+"-0"
		err := client.IgnoreNotFound(r.scope.Client.Delete(r.t.Context(), pod.DeepCopy()))
		if err = errors.Join(err, r.scope.Client.Create(r.t.Context(), pod)); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *turn) templateOf(name string) corev1.PodTemplateSpec {
	r.t.Helper()
	if name == "etcd" {
		set := &appsv1.StatefulSet{}
		r.get(name, set)
		return set.Spec.Template
	}
	deployment := &appsv1.Deployment{}
	r.get(name, deployment)
	return deployment.Spec.Template
}

func (r *turn) stages() map[string]supportpki.Stage {
	r.t.Helper()
	list := &corev1.SecretList{}
	if err := r.scope.Client.List(r.t.Context(), list); err != nil {
		r.t.Fatal(err)
	}
	return pki.Rotating(list.Items)
}

// clients returns the access of new clients: an administrator, a node with a certificate from the controller manager,
// and a pod.
func (r *turn) clients(when string) map[string]*rest.Config {
	r.t.Helper()
	admin := r.guestConfig()
	guest := kubernetes.NewForConfigOrDie(admin)
	anonymous := rest.AnonymousClientConfig(admin)
	node, pod := rest.CopyConfig(anonymous), rest.CopyConfig(anonymous)
	node.CertData, node.KeyData = r.signed(guest, strings.ToLower("node-"+when))
	pod.BearerToken = r.token(guest)
	return map[string]*rest.Config{"administrator": admin, "node": node, "service account": pod}
}

// token returns a service account token that lives for a year, as for clients that never reload it.
func (r *turn) token(guest kubernetes.Interface) string {
	r.t.Helper()
	var token string
	err := wait.PollUntilContextTimeout(r.t.Context(), 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](31536000)}}
		answer, err := guest.CoreV1().ServiceAccounts("default").CreateToken(ctx, "default", request, metav1.CreateOptions{})
		if err == nil {
			token = answer.Status.Token
		}
		// The controller manager creates the account a moment after it starts.
		return err == nil, nil
	})
	if err != nil {
		r.t.Fatalf("no token of a service account: %v", err)
	}
	return token
}

// signed returns a client certificate that the controller manager signs, and its key.
func (r *turn) signed(guest kubernetes.Interface, name string) (cert, key []byte) {
	r.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}
	subject := pkix.Name{CommonName: "system:" + name, Organization: []string{"test:nodes"}}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, private)
	if err != nil {
		r.t.Fatal(err)
	}
	csrs := guest.CertificatesV1().CertificateSigningRequests()
	csr, err := csrs.Create(r.t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
	if _, err := csrs.UpdateApproval(r.t.Context(), name, csr, metav1.UpdateOptions{}); err != nil {
		r.t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(r.t.Context(), 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		live, err := csrs.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			cert = live.Status.Certificate
		}
		return len(cert) > 0, nil
	})
	if err != nil {
		r.t.Fatalf("the controller manager did not sign %s: %v", name, err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		r.t.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// identify checks that the API server authenticates a client.
func (r *turn) identify(config *rest.Config) error {
	review := &authenticationv1.SelfSubjectReview{}
	_, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().Create(r.t.Context(), review, metav1.CreateOptions{})
	return err
}

func (r *turn) works(who string, config *rest.Config) {
	r.t.Helper()
	if err := r.identify(config); err != nil {
		r.t.Errorf("the %s is cut off: %v", who, err)
	}
}

func (r *turn) refused(who string, config *rest.Config) {
	r.t.Helper()
	if err := r.identify(config); !apierrors.IsUnauthorized(err) {
		r.t.Errorf("the %s should be refused: %v", who, err)
	}
}

// kubelet returns a server like the kubelet of a machine that was installed earlier: it trusts the authorities of that
// time.
func (r *turn) kubelet() *httptest.Server {
	r.t.Helper()
	trusted := &corev1.ConfigMap{}
	r.get(pki.KubeletClientBundle, trusted)
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM([]byte(trusted.Data["ca.crt"]))
	secret := &corev1.Secret{}
	r.get(pki.ClusterSignerCA, secret)
	signer, err := supportpki.CAOf(secret)
	if err != nil {
		r.t.Fatal(err)
	}
	own, err := signer.Issue(supportpki.Leaf{Name: supportpki.Name{CommonName: "system:node:a"}, Server: true, Hosts: []string{"127.0.0.1"}}, supportpki.Lifetime{}, time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(own.CertPEM, own.KeyPEM)
	if err != nil {
		r.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	r.t.Cleanup(server.Close)
	return server
}

// calls connects to a kubelet as the API server does now.
func (r *turn) calls(kubelet *httptest.Server, stage supportpki.Stage) {
	r.t.Helper()
	secret, bundle := &corev1.Secret{}, &corev1.ConfigMap{}
	r.get(pki.KASKubeletClient, secret)
	r.get(pki.ClientBundle, bundle)
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		r.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(bundle.Data["ca.crt"]))
	caller := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	defer caller.CloseIdleConnections()
	response, err := caller.Get(kubelet.URL)
	if err != nil {
		r.t.Errorf("a kubelet of before is cut off when it is %q: %v", stage, err)
		return
	}
	response.Body.Close()
}
