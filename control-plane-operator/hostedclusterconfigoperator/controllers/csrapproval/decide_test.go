// SPDX-License-Identifier: Apache-2.0

package csrapproval

import (
	"context"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/pause"
)

var errServer = errors.New("the server is dead")

// bench is a reconciler that records its writes in order, and makes some fail.
type bench struct {
	*GomegaWithT
	*Reconciler
	t      *testing.T
	writes []string
	// refuse are the writes that fail, and deadList is the kind of the list that fails.
	refuse   map[string]bool
	deadList string
	events   *events.FakeRecorder
	// decided is the last decision.
	decided certificatesv1.CertificateSigningRequestCondition
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	b := &bench{GomegaWithT: NewWithT(t), t: t, refuse: map[string]bool{}, events: events.NewFakeRecorder(10)}
	note := func(what string) error {
		b.writes = append(b.writes, what)
		if b.refuse[what] {
			return errServer
		}
		return nil
	}
	funcs := interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := note("patch " + obj.GetName()); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := note("delete " + obj.GetName()); err != nil {
				return err
			}
			return c.Delete(ctx, obj, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if b.refuse["get "+key.Name] {
				return errServer
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			gvk, err := c.GroupVersionKindFor(list)
			b.Expect(err).NotTo(HaveOccurred())
			if gvk.Kind == b.deadList {
				return errServer
			}
			return c.List(ctx, list, opts...)
		},
		SubResourceUpdate: func(_ context.Context, _ client.Client, sub string, obj client.Object, _ ...client.SubResourceUpdateOption) error {
			conditions := obj.(*certificatesv1.CertificateSigningRequest).Status.Conditions
			b.decided = conditions[len(conditions)-1]
			return note(sub + " " + obj.GetName())
		},
	}
	c := fake.NewClientBuilder().WithScheme(newScheme()).WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithObjects(objects...).WithInterceptorFuncs(funcs).
		WithIndex(&corev1.Secret{}, "type", func(obj client.Object) []string { return []string{string(obj.(*corev1.Secret).Type)} }).Build()
	b.Reconciler = &Reconciler{Guest: c, Live: c, Management: c, Namespace: "clusters-demo", Recorder: b.events, Pause: pause.Gate{Management: c}}
	return b
}

// byToken returns a first request with a bootstrap token.
func byToken(t *testing.T, id string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	csr := bootstrap(t)
	csr.Spec.Username, csr.Spec.Groups = "system:bootstrap:"+id, []string{pki.BootstrapGroup, "system:authenticated"}
	return csr
}

func token(id, machine string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + id}, Type: corev1.SecretTypeBootstrapToken}
	if machine != "" {
		secret.Annotations = map[string]string{hyperv1.BootstrapMachineAnnotation: machine}
	}
	return secret
}

func worker() *clusterv1.Machine {
	m := machine("pool-a", "worker-1", "192.0.2.21")
	return &m
}

func TestTokenOf(t *testing.T) {
	for name, tc := range map[string]struct {
		user   string
		groups []string
		want   string
	}{
		"a token": {"system:bootstrap:abcdef", []string{"system:authenticated", pki.BootstrapGroup}, "kube-system/bootstrap-token-abcdef"},
		"a token without the bootstrap group of nodes": {"system:bootstrap:abcdef", []string{"system:authenticated", "system:bootstrappers:others"}, ""},
		"the shared credentials":                       {pki.NodeBootstrapper, []string{pki.BootstrapGroup}, ""},
		"a node's certificate":                         {"system:node:worker-1", []string{"system:nodes"}, ""},
		"a name that only contains the token prefix":   {"my-system:bootstrap:abcdef", []string{pki.BootstrapGroup}, ""},
	} {
		t.Run("When a request is made with "+name+" it should return the token's Secret or nil", func(t *testing.T) {
			g, secret := NewWithT(t), tokenOf(&certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{Username: tc.user, Groups: tc.groups}})
			if tc.want == "" {
				g.Expect(secret).To(BeNil())
				return
			}
			g.Expect(client.ObjectKeyFromObject(secret).String()).To(Equal(tc.want))
		})
	}
}

func TestBootstrapper(t *testing.T) {
	made := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	right := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: pki.IgnitionUser, CreationTimestamp: metav1.NewTime(made)}}
	stranger := bootstrap(t)
	stranger.Spec.Username = "system:serviceaccount:default:default"
	for name, tc := range map[string]struct {
		csr     *certificatesv1.CertificateSigningRequest
		objects []client.Object
		dead    string
		want    *bootstrapper
	}{
		"a token that no Machine has used":                 {byToken(t, "abcdef"), []client.Object{token("abcdef", "")}, "", &bootstrapper{}},
		"a token that a Machine has used":                  {byToken(t, "abcdef"), []client.Object{token("abcdef", "pool-b")}, "", &bootstrapper{machine: "pool-b"}},
		"a token that is already deleted":                  {byToken(t, "abcdef"), []client.Object{token("another", "pool-a")}, "", nil},
		"a token that cannot be read":                      {byToken(t, "abcdef"), nil, "get bootstrap-token-abcdef", nil},
		"the shared credentials, and there are no tokens":  {bootstrap(t), nil, "", &bootstrapper{}},
		"the shared credentials, and there are tokens":     {bootstrap(t), []client.Object{right}, "", &bootstrapper{until: made.Add(time.Hour)}},
		"the shared credentials, and their end is unknown": {bootstrap(t), []client.Object{right}, "get " + pki.IgnitionUser, nil},
		"credentials of unknown origin":                    {stranger, []client.Object{right}, "", nil},
	} {
		t.Run("When a machine asks with "+name+" it should return which machine may use it", func(t *testing.T) {
			b := newBench(t, tc.objects...)
			b.refuse[tc.dead] = true
			got, err := b.bootstrapper(t.Context(), tc.csr)
			if tc.dead != "" {
				b.Expect(err).To(MatchError(errServer))
				return
			}
			b.Expect(err).NotTo(HaveOccurred())
			if tc.want == nil {
				b.Expect(got).To(BeNil())
				return
			}
			b.Expect(got.machine).To(Equal(tc.want.machine))
			b.Expect(got.until.Equal(tc.want.until)).To(BeTrue())
		})
	}
}

// TestFirstCertificate checks that the key for a machine is stored before the approval. After a crash, no other key
// can then get the certificate.
func TestFirstCertificate(t *testing.T) {
	settled := []string{"patch pool-a", "patch bootstrap-token-abcdef", "approval csr-1"}

	t.Run("When a machine joins, it should record the identity on Machine and token before it approves", func(t *testing.T) {
		b := newBench(t, worker(), token("abcdef", ""))
		b.Expect(b.decide(t.Context(), byToken(t, "abcdef"))).To(Equal(ctrl.Result{}))
		b.Expect(b.writes).To(Equal(settled))
		b.Expect(b.decided).To(And(HaveField("Type", certificatesv1.CertificateApproved), HaveField("Status", corev1.ConditionTrue)))
		m, secret := worker(), token("abcdef", "")
		b.Expect(b.Management.Get(t.Context(), client.ObjectKeyFromObject(m), m)).To(Succeed())
		b.Expect(m.Annotations[hyperv1.NodeIdentityAnnotation]).To(MatchRegexp(`^worker-1 [0-9a-f]{64}$`))
		b.Expect(b.Live.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)).To(Succeed())
		b.Expect(secret.Annotations).To(HaveKeyWithValue(hyperv1.BootstrapMachineAnnotation, "pool-a"))
	})

	for i, dead := range settled {
		t.Run("When "+dead+" fails it should stop, and the next reconcile should complete it", func(t *testing.T) {
			b, csr := newBench(t, worker(), token("abcdef", "")), byToken(t, "abcdef")
			b.refuse[dead] = true
			_, err := b.decide(t.Context(), csr)
			b.Expect(err).To(MatchError(errServer))
			b.Expect(b.writes).To(Equal(settled[:i+1]))
			b.refuse, b.writes = map[string]bool{}, nil
			b.Expect(b.decide(t.Context(), csr)).To(Equal(ctrl.Result{}))
			b.Expect(b.writes).To(Equal(settled[i:]), "what is written down is not written twice")
		})
	}

	t.Run("When two requests are decided concurrently, the second write should fail", func(t *testing.T) {
		b, first := newBench(t, worker()), worker()
		b.Expect(b.Management.Get(t.Context(), client.ObjectKeyFromObject(first), first)).To(Succeed())
		b.Expect(b.decide(t.Context(), bootstrap(t))).To(Equal(ctrl.Result{}))
		err := b.remember(t.Context(), bootstrap(t), &claim{machine: first, node: "worker-1", key: "another"})
		b.Expect(err).To(MatchError(ContainSubstring("writing down the key of Machine pool-a")))
	})

	t.Run("When the token is deleted before it is recorded, it should not approve the request", func(t *testing.T) {
		b, m := newBench(t, worker()), worker()
		b.Expect(b.Management.Get(t.Context(), client.ObjectKeyFromObject(m), m)).To(Succeed())
		err := b.remember(t.Context(), byToken(t, "abcdef"), &claim{machine: m, node: "worker-1", key: "key"})
		b.Expect(err).To(MatchError(ContainSubstring("reading bootstrap token bootstrap-token-abcdef")))
	})
}

// counted returns the number of refusals in the metric.
func counted(t *testing.T) float64 {
	t.Helper()
	var m dto.Metric
	if err := refusals.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

func TestTheft(t *testing.T) {
	thief := func(t *testing.T) (*bench, *certificatesv1.CertificateSigningRequest) {
		t.Helper()
		return newBench(t, worker(), token("abcdef", "pool-b")), byToken(t, "abcdef")
	}
	t.Run("When a request uses the credentials of another Machine, it should be denied, counted and reported", func(t *testing.T) {
		b, csr := thief(t)
		before := counted(t)
		b.Expect(b.decide(t.Context(), csr)).To(Equal(ctrl.Result{}))
		b.Expect(b.writes).To(Equal([]string{"approval csr-1"}))
		b.Expect(b.decided).To(And(HaveField("Type", certificatesv1.CertificateDenied), HaveField("Message", ContainSubstring("those of machine pool-b, not of machine pool-a"))))
		b.Expect(counted(t)).To(Equal(before + 1))
		b.Expect(b.events.Events).To(Receive(And(HavePrefix("Warning NodeIdentityRefused"), ContainSubstring("csr-1"), ContainSubstring("system:bootstrap:abcdef"))))
	})
	t.Run("When the denial cannot be written, it should retry before it emits an event", func(t *testing.T) {
		b, csr := thief(t)
		b.refuse["approval csr-1"] = true
		before := counted(t)
		_, err := b.decide(t.Context(), csr)
		b.Expect(err).To(MatchError(ContainSubstring("deciding CertificateSigningRequest csr-1")))
		b.Expect(counted(t)).To(Equal(before))
		b.Expect(b.events.Events).NotTo(Receive())
	})
	t.Run("When a request is invalid, it should neither deny nor requeue it", func(t *testing.T) {
		b := newBench(t, worker())
		csr := bootstrap(t, func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:masters"} })
		b.Expect(b.decide(t.Context(), csr)).To(Equal(ctrl.Result{}))
		b.Expect(b.writes).To(BeEmpty())
	})
	t.Run("When no Machine has the name yet, it should requeue the request", func(t *testing.T) {
		b := newBench(t)
		b.Expect(b.decide(t.Context(), bootstrap(t))).To(Equal(ctrl.Result{RequeueAfter: retryAfter}))
		b.Expect(b.writes).To(BeEmpty())
	})
}

// TestTokensAreUsedUp checks when tokens are deleted. A node that requests its serving certificate has its first
// certificate, so its machine no longer needs its token.
func TestTokensAreUsedUp(t *testing.T) {
	other := token("ghijkl", "pool-a")
	other.Type = corev1.SecretTypeOpaque
	objects := func() []client.Object {
		return []client.Object{worker(), token("abcdef", "pool-a"), token("mnopqr", "pool-b"), token("stuvwx", ""), other.DeepCopy(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}}
	}
	t.Run("When a node gets its serving certificate, it should delete only the tokens of its Machine", func(t *testing.T) {
		b := newBench(t, objects()...)
		b.Expect(b.decide(t.Context(), serving(t))).To(Equal(ctrl.Result{}))
		b.Expect(b.writes).To(Equal([]string{"approval csr-2", "delete bootstrap-token-abcdef"}))
	})
	t.Run("When a token cannot be deleted, it should return an error", func(t *testing.T) {
		b := newBench(t, objects()...)
		b.refuse["delete bootstrap-token-abcdef"] = true
		_, err := b.decide(t.Context(), serving(t))
		b.Expect(err).To(MatchError(errServer))
	})
	t.Run("When tokens cannot be listed, it should return an error", func(t *testing.T) {
		b := newBench(t, objects()...)
		b.deadList = "SecretList"
		_, err := b.decide(t.Context(), serving(t))
		b.Expect(err).To(MatchError(ContainSubstring("listing bootstrap tokens")))
	})
	t.Run("When a node renews its client certificate, it should not list tokens", func(t *testing.T) {
		b := newBench(t, objects()...)
		b.deadList = "SecretList"
		csr := bootstrap(t)
		csr.Spec.Username, csr.Spec.Groups = "system:node:worker-1", []string{"system:nodes"}
		b.Expect(b.decide(t.Context(), csr)).To(Equal(ctrl.Result{}))
		b.Expect(b.writes).To(Equal([]string{"approval csr-1"}))
	})
}

// TestFacts checks that a request is not decided with incomplete information.
func TestFacts(t *testing.T) {
	for _, kind := range []string{"MachineList", "NodeList", "ClusterList"} {
		t.Run("When a "+kind+" cannot be read it should decide nothing", func(t *testing.T) {
			b := newBench(t, worker())
			b.deadList = kind
			_, err := b.decide(t.Context(), bootstrap(t))
			b.Expect(err).To(MatchError(errServer))
			b.Expect(b.writes).To(BeEmpty())
		})
	}
	elsewhere := worker()
	elsewhere.Namespace = "clusters-another"
	for name, tc := range map[string]struct {
		objects []client.Object
		made    bool
	}{
		"neither a Cluster nor a Machine": {nil, false},
		"a Cluster without Machines":      {[]client.Object{&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}}}, true},
		"a Machine":                       {[]client.Object{worker()}, true},
		"Machines of another cluster":     {[]client.Object{elsewhere}, false},
	} {
		t.Run("When there is "+name+" it should report whether nodes come from Machines", func(t *testing.T) {
			b := newBench(t, tc.objects...)
			f, err := b.facts(t.Context(), bootstrap(t))
			b.Expect(err).NotTo(HaveOccurred())
			b.Expect(f.made).To(Equal(tc.made))
		})
	}
}
