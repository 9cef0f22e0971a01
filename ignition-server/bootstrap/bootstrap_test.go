// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/ignition-server/nodeconfig"
	"github.com/openshift/hypershift/ignition-server/token"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

// world is a real API server that is both the management cluster and the guest.
type world struct {
	*GomegaWithT
	t           *testing.T
	config      *rest.Config
	client      client.WithWatch
	namespace   string
	clock       *clocktesting.FakePassiveClock
	credentials *Credentials
	payload     []byte
}

func start(t *testing.T) (*rest.Config, client.WithWatch) {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(errors.Join(clientgoscheme.AddToScheme(scheme), clusterv1.AddToScheme(scheme))).To(Succeed())
	config := testenv.Start(t, crds.ClusterAPI)
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	return config, c
}

func newWorld(t *testing.T, config *rest.Config, c client.WithWatch, machines ...string) *world {
	t.Helper()
	w := &world{GomegaWithT: NewWithT(t), t: t, config: config, client: c, clock: clocktesting.NewFakePassiveClock(time.Now())}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "hosted-"}}
	w.Expect(c.Create(t.Context(), namespace)).To(Succeed())
	w.namespace = namespace.Name
	for _, name := range machines {
		w.Expect(c.Create(t.Context(), &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: clusterv1.MachineSpec{
			ClusterName: "demo", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("user-data")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "MaasMachine", Name: name},
		}})).To(Succeed())
	}
	w.credentials = New(c, c, w.namespace, w.clock)
	var err error
	w.payload, err = nodeconfig.Render(nodeconfig.Input{
		NodePool: "workers", ServiceCIDRs: []string{"172.31.0.0/16"}, ClientCA: []byte("CA"), NodeImage: "node", PodImage: "pod",
		BootstrapKubeconfig: testenv.Kubeconfig(t, config),
	})
	w.Expect(err).NotTo(HaveOccurred())
	return w
}

// kubeconfig returns the configuration with which a machine's kubelet joins.
func (w *world) kubeconfig(machine string) *rest.Config {
	w.t.Helper()
	payload, err := w.credentials.Payload(w.t.Context(), token.Entry{Payload: w.payload, Machine: machine})
	w.Expect(err).NotTo(HaveOccurred())
	return w.configIn(payload)
}

func (w *world) configIn(payload []byte) *rest.Config {
	w.t.Helper()
	var found []byte
	_, err := nodeconfig.WithBootstrap(payload, func(kubeconfig []byte) ([]byte, error) { found = kubeconfig; return kubeconfig, nil })
	w.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(found)
	w.Expect(err).NotTo(HaveOccurred())
	return config
}

// whoami returns the user that the API server authenticates from a kubeconfig.
func (w *world) whoami(config *rest.Config) authenticationv1.UserInfo {
	w.t.Helper()
	c, err := client.New(config, client.Options{Scheme: w.client.Scheme()})
	w.Expect(err).NotTo(HaveOccurred())
	review := &authenticationv1.SelfSubjectReview{}
	w.Eventually(func() error {
		review = &authenticationv1.SelfSubjectReview{}
		return c.Create(w.t.Context(), review)
	}).WithTimeout(time.Minute).Should(Succeed(), "the API server hears of tokens by a watch")
	return review.Status.UserInfo
}

// madeFor returns the bootstrap tokens of a Machine.
func (w *world) madeFor(machine string) []corev1.Secret {
	w.t.Helper()
	secrets := &corev1.SecretList{}
	w.Expect(w.client.List(w.t.Context(), secrets, client.InNamespace("kube-system"))).To(Succeed())
	return slices.DeleteFunc(secrets.Items, func(s corev1.Secret) bool { return s.Annotations[hyperv1.BootstrapMachineAnnotation] != machine })
}

func TestCredentials(t *testing.T) {
	config, c := start(t)
	t.Run("When a machine requests its payload, it should get its own bootstrap token for one hour", func(t *testing.T) {
		w := newWorld(t, config, c, "workers-a")
		got := w.kubeconfig("workers-a")
		w.Expect(got.CertData).To(BeEmpty(), "what all machines have in common is not served")
		user := w.whoami(got)
		w.Expect(user.Username).To(HavePrefix("system:bootstrap:"))
		w.Expect(cmp.Diff([]string{"system:bootstrappers", "system:authenticated"}, user.Groups)).To(BeEmpty())
		secrets := w.madeFor("workers-a")
		w.Expect(secrets).To(HaveLen(1))
		w.Expect(string(secrets[0].Data["expiration"])).To(Equal(w.clock.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	})
	t.Run("When two machines request their payloads, each should get its own token", func(t *testing.T) {
		w := newWorld(t, config, c, "two-a", "two-b")
		w.Expect(w.kubeconfig("two-a").BearerToken).NotTo(Equal(w.kubeconfig("two-b").BearerToken))
		w.Expect(w.madeFor("two-a")).To(HaveLen(1))
		w.Expect(w.madeFor("two-b")).To(HaveLen(1))
	})
	t.Run("When a machine requests its payload again, it should get the same token for a while", func(t *testing.T) {
		w := newWorld(t, config, c, "again-a")
		first := w.kubeconfig("again-a").BearerToken
		w.Expect(w.kubeconfig("again-a").BearerToken).To(Equal(first))
		w.Expect(w.madeFor("again-a")).To(HaveLen(1))
		w.clock.SetTime(w.clock.Now().Add(2 * time.Minute))
		w.Expect(w.kubeconfig("again-a").BearerToken).NotTo(Equal(first), "the first may have been used up by now")
	})
	t.Run("When the Machine already has a Node, it should get no credentials", func(t *testing.T) {
		w := newWorld(t, config, c, "joined-a")
		machine := &clusterv1.Machine{}
		w.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "joined-a"}, machine)).To(Succeed())
		machine.Status.NodeRef.Name = "worker-1"
		w.Expect(c.Status().Update(t.Context(), machine)).To(Succeed())
		got := w.kubeconfig("joined-a")
		w.Expect([]string{got.BearerToken, string(got.CertData), string(got.KeyData)}).To(HaveEach(BeEmpty()))
		w.Expect(w.madeFor("joined-a")).To(BeEmpty())
	})
	t.Run("When the Machine does not exist, it should not create a token", func(t *testing.T) {
		w := newWorld(t, config, c)
		_, err := w.credentials.Payload(t.Context(), token.Entry{Payload: w.payload, Machine: "gone-a"})
		w.Expect(err).To(MatchError(ErrNoMachine))
		w.Expect(w.madeFor("gone-a")).To(BeEmpty())
	})
}

func TestCredentialsOfAPool(t *testing.T) {
	config, c := start(t)
	t.Run("When a machine uses the token of its pool, each request should get a new bootstrap token", func(t *testing.T) {
		w := newWorld(t, config, c, "older-a")
		got := w.kubeconfig("")
		w.Expect(got.CertData).To(BeEmpty())
		w.Expect(w.whoami(got).Username).To(HavePrefix("system:bootstrap:"))
		w.Expect(w.kubeconfig("").BearerToken).NotTo(Equal(got.BearerToken), "another machine may be asking")
	})
	t.Run("When there are no Machines, it should serve the common bootstrap credentials", func(t *testing.T) {
		w := newWorld(t, config, c)
		w.Expect(w.kubeconfig("").CertData).To(Equal(config.CertData))
	})
	t.Run("When a client requests many payloads with the pool's token, it should limit the number of Secrets", func(t *testing.T) {
		w := newWorld(t, config, c, "flood-a")
		var err error
		asked := 0
		for ; err == nil && asked < 1000; asked++ {
			_, err = w.credentials.Payload(t.Context(), token.Entry{Payload: w.payload})
		}
		w.Expect(err).To(MatchError(errTooMany), "asked %d times", asked)
	})
}

func TestNoCredentialsAreBetterThanCommonOnes(t *testing.T) {
	config, c := start(t)
	w := newWorld(t, config, c, "workers-a")
	away := interceptor.NewClient(c, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return errors.New("the guest is away")
	}})
	broken := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("the management cluster is away")
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("the management cluster is away")
		},
	})
	for name, tt := range map[string]struct {
		credentials *Credentials
		machine     string
		says        string
	}{
		"the hosted cluster is unreachable":                     {New(away, c, w.namespace, w.clock), "workers-a", "make a bootstrap token in the guest: the guest is away"},
		"the management cluster is unreachable":                 {New(c, broken, w.namespace, w.clock), "workers-a", "read Machine " + w.namespace + "/workers-a"},
		"the management cluster is unreachable for pool tokens": {New(c, broken, w.namespace, w.clock), "", "list the Machines of namespace " + w.namespace},
	} {
		t.Run("When "+name+", it should return an error and no payload", func(t *testing.T) {
			g := NewWithT(t)
			payload, err := tt.credentials.Payload(t.Context(), token.Entry{Payload: w.payload, Machine: tt.machine})
			g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			g.Expect(payload).To(BeNil())
		})
	}
}

func TestWithToken(t *testing.T) {
	for name, kubeconfig := range map[string]string{"has no user": "kind: Config\napiVersion: v1\n", "is no kubeconfig": "{"} {
		t.Run(fmt.Sprintf("When a bootstrap kubeconfig %s, it should be an error", name), func(t *testing.T) {
			_, err := withToken([]byte(kubeconfig), "abcdef.0123456789abcdef")
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("bootstrap kubeconfig")))
		})
	}
}
