// SPDX-License-Identifier: Apache-2.0

package security

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	ignition "github.com/coreos/ignition/v2/config/v3_4/types"
	. "github.com/onsi/gomega"
	"github.com/vincent-petithory/dataurl"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	guestfixture "github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/resources"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/ignition-server/bootstrap"
	"github.com/openshift/hypershift/ignition-server/endpoint"
	"github.com/openshift/hypershift/ignition-server/nodeconfig"
	"github.com/openshift/hypershift/ignition-server/token"
	"github.com/openshift/hypershift/support/machinetoken"
	"github.com/openshift/hypershift/support/testenv"
	ctrl "sigs.k8s.io/controller-runtime"
)

const poolToken = "11111111-2222-3333-4444-555555555555"

// configured runs the config operator in the guest.
func (g *guest) configured() {
	g.t.Helper()
	admin, err := client.New(g.config, client.Options{Scheme: guestfixture.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	r := &resources.Reconciler{Management: g.client, Guest: admin, Clock: clock.RealClock{}}
	g.Eventually(func() error {
		_, err := r.Reconcile(g.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: g.hosted(), Name: fixture.ClusterName}})
		return err
	}).WithTimeout(patience).Should(Succeed(), "an API server takes a moment to serve new kinds, and writes some of the objects itself")
	g.mayIn(g.by(g.users(pki.IgnitionUser)), "create", "", "secrets", "kube-system")
}

// mayIn waits until a client has a permission in a namespace of the guest: permissions and tokens take effect after a
// short delay.
func (g *guest) mayIn(who client.Client, verb, group, resource, namespace string) {
	g.t.Helper()
	g.Eventually(func() (bool, error) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: namespace},
		}}
		err := who.Create(g.t.Context(), review)
		return review.Status.Allowed, err
	}).WithTimeout(patience).Should(BeTrue(), "%s %s", verb, resource)
}

// joins returns a client with the bootstrap credentials that a machine received.
func (g *guest) joins(config *rest.Config) client.Client {
	g.t.Helper()
	worker := g.by(config)
	g.mayIn(worker, "create", "certificates.k8s.io", "certificatesigningrequests", "")
	return worker
}

// ignitionServer starts the guest's ignition-server, with its permissions there and a pool's configuration.
func (g *guest) ignitionServer() *httptest.Server {
	g.t.Helper()
	rights, err := client.New(g.users(pki.IgnitionUser), client.Options{Scheme: fixture.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	payload, err := nodeconfig.Render(nodeconfig.Input{
		NodePool: "workers", ServiceCIDRs: []string{"172.31.0.0/16"}, ClientCA: []byte("CA"), NodeImage: "node", PodImage: "pod",
		BootstrapKubeconfig: testenv.Kubeconfig(g.t, g.config),
	})
	g.Expect(err).NotTo(HaveOccurred())
	tokens := token.NewCache(clock.RealClock{})
	tokens.Put(token.Entry{Secret: types.NamespacedName{Namespace: g.hosted(), Name: "token-workers"}, Payload: payload}, poolToken)
	credentials := bootstrap.New(rights, g.client, g.hosted(), clock.RealClock{})
	observer := &token.Reconciler{Client: g.client, Recorder: &events.FakeRecorder{}}
	server := httptest.NewServer(&endpoint.Server{Tokens: tokens, Credentials: credentials, Observer: observer, Programs: fstest.MapFS{"amd64": {}}, Log: slog.New(slog.DiscardHandler)})
	g.t.Cleanup(server.Close)
	return server
}

// fetch sends a request with a token to the ignition-server, and returns the kubelet's credentials from the response.
func (g *guest) fetch(server *httptest.Server, bearer string) (int, *rest.Config) {
	g.t.Helper()
	request, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, server.URL+"/ignition", nil)
	g.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+base64.StdEncoding.EncodeToString([]byte(bearer)))
	response, err := server.Client().Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	if response.StatusCode != http.StatusOK {
		return response.StatusCode, nil
	}
	served := ignition.Config{}
	g.Expect(json.Unmarshal(body, &served)).To(Succeed())
	for _, file := range served.Storage.Files {
		if file.Path == "/etc/kubernetes/bootstrap-kubeconfig" {
			kubeconfig, err := dataurl.DecodeString(*file.Contents.Source)
			g.Expect(err).NotTo(HaveOccurred())
			config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig.Data)
			g.Expect(err).NotTo(HaveOccurred())
			return response.StatusCode, config
		}
	}
	g.t.Fatal("no bootstrap kubeconfig was served")
	return 0, nil
}

func (g *guest) by(config *rest.Config) client.Client {
	g.t.Helper()
	c, err := client.New(config, client.Options{Scheme: fixture.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	return c
}

// TestCredentialsOfAMachine checks that a machine joins with its own credentials only. Root on it, with everything that
// the machine ever received, cannot act as another machine.
func TestCredentialsOfAMachine(t *testing.T) {
	g := newGuest(t, "credentials")
	g.newMachine("workers-b", "worker-2")
	g.configured()
	server := g.ignitionServer()
	own := machinetoken.Derive([]byte(poolToken), "workers-a")

	t.Run("When a machine replaces its name in the token with the name of another machine, nothing should be served", func(t *testing.T) {
		code, _ := g.fetch(server, strings.Replace(own, "workers-a", "workers-b", 1))
		g.Expect(code).To(Equal(http.StatusNetworkAuthenticationRequired))
	})
	t.Run("When the machine no longer exists, nothing should be served", func(t *testing.T) {
		code, _ := g.fetch(server, machinetoken.Derive([]byte(poolToken), "workers-gone"))
		g.Expect(code).To(Equal(http.StatusServiceUnavailable))
	})

	code, config := g.fetch(server, own)
	g.Expect(code).To(Equal(http.StatusOK))
	g.Expect(config.CertData).To(BeEmpty(), "what all machines have in common was served")
	worker := g.joins(config)
	t.Run("When a machine requests the identity of another joining machine, it should be denied and reported", func(t *testing.T) {
		g.Expect(g.askFor(worker, "theft", "worker-2", certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth)).
			To(Equal(certificatesv1.CertificateDenied))
		g.Expect(g.alarms).To(Receive(ContainSubstring("are those of machine workers-a")))
	})
	t.Run("When a machine requests anything else in the guest cluster, it should be forbidden", func(t *testing.T) {
		for _, list := range []client.ObjectList{&corev1.SecretList{}, &corev1.NodeList{}, &corev1.PodList{}} {
			g.Expect(apierrors.IsForbidden(worker.List(t.Context(), list))).To(BeTrue(), "%T", list)
		}
	})
	t.Run("When a machine requests its own identity, it should get it once", func(t *testing.T) {
		g.Expect(g.ask(worker, "own")).To(Equal(certificatesv1.CertificateApproved))
		g.Expect(g.ask(worker, "own-again")).To(Equal(certificatesv1.CertificateDenied))
	})
	t.Run("When a machine has joined, its credentials should be deleted and no others served", func(t *testing.T) {
		node := g.as("system:node:worker-1", "system:nodes")
		g.Expect(g.askFor(node, "serving", "worker-1", certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth)).
			To(Equal(certificatesv1.CertificateApproved))
		g.Eventually(func() bool { return apierrors.IsUnauthorized(worker.List(t.Context(), &corev1.NodeList{})) }, patience, "50ms").Should(BeTrue(),
			"an API server remembers for ten seconds whose a token is")
		g.Expect(g.client.Get(t.Context(), client.ObjectKeyFromObject(g.machine), g.machine)).To(Succeed())
		g.machine.Status.NodeRef.Name = "worker-1"
		g.Expect(g.client.Status().Update(t.Context(), g.machine)).To(Succeed())
		code, config := g.fetch(server, own)
		g.Expect(code).To(Equal(http.StatusOK))
		g.Expect([]string{config.BearerToken, string(config.CertData)}).To(HaveEach(BeEmpty()))
	})
}

// TestCredentialsByAPoolsToken covers a machine that was deployed before machines had their own tokens, and uses its
// pool's token. The credentials that it gets with that token are valid for one machine.
func TestCredentialsByAPoolsToken(t *testing.T) {
	g := newGuest(t, "poolcredentials")
	g.newMachine("workers-b", "worker-2")
	g.configured()
	_, config := g.fetch(g.ignitionServer(), poolToken)
	g.Expect(config.CertData).To(BeEmpty())
	worker := g.joins(config)
	g.Expect(g.ask(worker, "own")).To(Equal(certificatesv1.CertificateApproved))
	g.Expect(g.askFor(worker, "theft", "worker-2", certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth)).
		To(Equal(certificatesv1.CertificateDenied))
}

// TestIgnitionServerInTheGuest covers an attacker with control of the ignition-server, which all machines of the
// provisioning network can reach. The attacker can let machines join.
func TestIgnitionServerInTheGuest(t *testing.T) {
	g := newGuest(t, "ignition")
	g.configured()
	server := g.by(g.users(pki.IgnitionUser))
	good := func() *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", GenerateName: "x-"}, Type: corev1.SecretTypeBootstrapToken,
			StringData: map[string]string{"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true", "expiration": "2099-01-01T00:00:00Z"},
		}
	}
	g.Expect(server.Create(t.Context(), named(good(), "bootstrap-token-abcdef"))).To(Succeed())
	for name, change := range map[string]func(*corev1.Secret){
		"a Secret without a type": func(s *corev1.Secret) { s.Type = "" },
		"a service account token": func(s *corev1.Secret) {
			s.Type = corev1.SecretTypeServiceAccountToken
			s.Annotations = map[string]string{corev1.ServiceAccountNameKey: "default"}
		},
		"a token that never expires":    func(s *corev1.Secret) { delete(s.StringData, "expiration") },
		"a token for bootstrap signing": func(s *corev1.Secret) { s.StringData["usage-bootstrap-signing"] = "true" },
		"a token with extra groups":     func(s *corev1.Secret) { s.StringData["auth-extra-groups"] = "system:bootstrappers:admins" },
		"a token in another namespace":  func(s *corev1.Secret) { s.Namespace = "default" },
	} {
		t.Run("When the ignition-server creates "+name+", it should be refused", func(t *testing.T) {
			secret := good()
			change(secret)
			// An API server enforces a new policy after a short delay.
			NewWithT(t).Eventually(func() error { return server.Create(t.Context(), secret.DeepCopy(), client.DryRunAll) }, patience, "50ms").
				Should(Or(Satisfy(apierrors.IsForbidden), Satisfy(apierrors.IsInvalid)))
		})
	}
	t.Run("When the ignition-server requests anything else, it should be forbidden", func(t *testing.T) {
		token := named(good(), "bootstrap-token-abcdef")
		for what, err := range map[string]error{
			"read its tokens":   server.Get(t.Context(), client.ObjectKeyFromObject(token), &corev1.Secret{}),
			"list Secrets":      server.List(t.Context(), &corev1.SecretList{}),
			"delete a token":    server.Delete(t.Context(), token),
			"make a ConfigMap":  server.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "x"}}),
			"approve a machine": server.SubResource("approval").Update(t.Context(), &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "x", ResourceVersion: "1"}}),
		} {
			NewWithT(t).Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s: %v", what, err)
		}
	})
}

func named(secret *corev1.Secret, name string) *corev1.Secret {
	secret.GenerateName, secret.Name = "", name
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, hyperv1.BootstrapMachineAnnotation, "workers-a")
	return secret
}
