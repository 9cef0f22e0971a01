// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/progress"
)

// plain is a platform without flags or objects.
type plain struct{}

func (plain) Example() string                             { return "" }
func (plain) Type() hyperv1.PlatformType                  { return hyperv1.NonePlatform }
func (plain) AddFlags(*pflag.FlagSet)                     {}
func (plain) Complete(context.Context, Environment) error { return nil }
func (plain) Apply(hc *hyperv1.HostedCluster)             { hc.Spec.Platform.Type = hyperv1.NonePlatform }
func (plain) ApplyNodePool(pool *hyperv1.NodePool)        { pool.Spec.Platform.Type = hyperv1.NonePlatform }
func (plain) Objects(string, string) []client.Object      { return nil }

// parse returns the options of a command line.
func parse(t *testing.T, args ...string) *create {
	t.Helper()
	c := &create{platform: plain{}}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	c.Options.addFlags(flags, Defaults{ControllerAvailability: hyperv1.SingleReplica, Developer: true})
	c.addOutputFlags(flags)
	if err := flags.Parse(append([]string{"--name", "demo", "--release-image", "registry.example/release:1"}, args...)); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestReadFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"pull.json": `{"auths":{}}`, "bad.json": `{"auths": sesame`, "empty": "", "mirrors.yaml": "- source: a\n  mirrors: [b]\n", "typo.yaml": "- sauce: a\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	tests := []struct {
		name  string
		args  []string
		stdin string
		says  string
		check func(g *GomegaWithT, c *create)
	}{
		{name: "When there is no pull secret, it should be an empty one", check: func(g *GomegaWithT, c *create) {
			g.Expect(string(c.pullSecret)).To(Equal(emptyPullSecret))
		}},
		{name: "When the pull secret comes from standard input, it should be read", args: []string{"--pull-secret", "-"}, stdin: `{"auths":{"a":{}}}`, check: func(g *GomegaWithT, c *create) {
			g.Expect(string(c.pullSecret)).To(ContainSubstring(`"a"`))
		}},
		{name: "When mirrors are given, they should be read", args: []string{"--image-content-sources", in("mirrors.yaml")}, check: func(g *GomegaWithT, c *create) {
			g.Expect(c.imageContentSources).To(Equal([]hyperv1.ImageContentSource{{Source: "a", Mirrors: []string{"b"}}}))
		}},
		{name: "When an SSH key pair is requested, it should be generated", args: []string{"--generate-ssh"}, check: func(g *GomegaWithT, c *create) {
			g.Expect(string(c.sshKey)).To(HavePrefix("ssh-rsa "))
			g.Expect(c.sshPrivateKey).NotTo(BeEmpty())
		}},
		{name: "When the pull secret is malformed, it should return an error that does not contain it", args: []string{"--pull-secret", in("bad.json")}, says: "not a valid .dockerconfigjson"},
		{name: "When a file is empty, it should return an error", args: []string{"--additional-trust-bundle", in("empty")}, says: "is empty"},
		{name: "When the trust bundle contains no certificate, it should return an error", args: []string{"--additional-trust-bundle", in("pull.json")}, says: "holds no certificate in PEM form"},
		{name: "When a file is missing, the error should name the flag", args: []string{"--ssh-key", in("missing")}, says: "--ssh-key: "},
		{name: "When the mirrors contain a typo, it should return an error", args: []string{"--image-content-sources", in("typo.yaml")}, says: "not a list of source and mirrors"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			c := parse(t, tt.args...)
			err := c.readFiles(strings.NewReader(tt.stdin))
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				g.Expect(err.Error()).NotTo(ContainSubstring("sesame"))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			tt.check(g, c)
		})
	}
}

func TestObjects(t *testing.T) {
	g := NewWithT(t)
	c := parse(t)
	g.Expect(c.readFiles(strings.NewReader(""))).To(Succeed())
	objs, err := c.objects(plain{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.infraID).To(MatchRegexp("^demo-[a-z0-9]{5}$"))
	_, namespaceFirst := objs[0].(*corev1.Namespace)
	g.Expect(namespaceFirst).To(BeTrue())
	for _, obj := range objs[1:] {
		g.Expect(obj.GetNamespace()).To(Equal("clusters"))
		g.Expect(obj.GetLabels()).To(HaveKeyWithValue(hyperv1.AutoCreatedForInfraLabel, c.infraID))
		if secret, ok := obj.(*corev1.Secret); ok && strings.HasSuffix(secret.Name, encryptionSuffix) {
			g.Expect(secret.Data[encryptionKeyKey]).To(HaveLen(encryptionKeySize))
		}
	}
	g.Expect(c.labels).To(BeEmpty(), "the flags' own maps stay as they are")
}

func TestObjectsOrder(t *testing.T) {
	g := NewWithT(t)
	c := parse(t, "--node-pool-replicas", "-1")
	g.Expect(c.readFiles(strings.NewReader(""))).To(Succeed())
	objs, err := c.objects(plain{})
	g.Expect(err).NotTo(HaveOccurred())
	_, clusterLast := objs[len(objs)-1].(*hyperv1.HostedCluster)
	g.Expect(clusterLast).To(BeTrue(), "what the cluster refers to comes before it, and -1 makes no pool")
}

func TestApply(t *testing.T) {
	refused := errors.New("no rights")
	tests := []struct {
		name  string
		have  []client.Object
		funcs interceptor.Funcs
		says  string
	}{
		{name: "When no object exists, it should create all"},
		{name: "When the namespace exists, it should keep the namespace", have: []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters", Labels: map[string]string{"mine": "yes"}}}}},
		{name: "When the HostedCluster exists, it should change nothing", have: []client.Object{hostedCluster()}, says: "exists already"},
		{
			name: "When the HostedCluster cannot be read, it should return an error", says: "look for HostedCluster clusters/demo: no rights",
			funcs: interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return refused
			}},
		},
		{
			name: "When an object is rejected, the error should name the object", says: "create Namespace clusters: no rights",
			funcs: interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refused }},
		},
		{
			name: "When the HostedCluster is rejected, it should leave no Secrets", says: "create HostedCluster clusters/demo: no rights",
			funcs: interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				if _, cluster := obj.(*hyperv1.HostedCluster); cluster {
					return refused
				}
				return c.Create(ctx, obj, opts...)
			}},
		},
		{
			name: "When the NodePool is rejected, it should leave neither HostedCluster nor Secrets", says: "apply NodePool clusters/demo: no rights",
			funcs: interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				if raw, err := json.Marshal(obj); err != nil || strings.Contains(string(raw), `"kind":"NodePool"`) {
					return errors.Join(refused, err)
				}
				return c.Apply(ctx, obj, opts...)
			}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			c := parse(t)
			g.Expect(c.readFiles(strings.NewReader(""))).To(Succeed())
			c.client = fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(tt.have...).WithInterceptorFuncs(tt.funcs).Build()
			objs, err := c.objects(plain{})
			g.Expect(err).NotTo(HaveOccurred())

			err = c.apply(t.Context(), objs, progress.New(&strings.Builder{}, clock.RealClock{}))

			var pools hyperv1.NodePoolList
			g.Expect(c.client.List(t.Context(), &pools)).To(Succeed())
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				g.Expect(exit.Code(err)).To(Equal(exit.Failure))
				g.Expect(pools.Items).To(BeEmpty())
				var secrets corev1.SecretList
				g.Expect(c.client.List(t.Context(), &secrets)).To(Succeed())
				g.Expect(secrets.Items).To(BeEmpty())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pools.Items).To(HaveLen(1))
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	long := strings.Repeat("a", 55)
	for _, tt := range []struct {
		name string
		args []string
		says string
	}{
		{"When the number of nodes is below -1", []string{"--node-pool-replicas", "-2"}, "--node-pool-replicas -2: use 0 or more, or -1 for no NodePool"},
		{"When the namespace is not a valid name", []string{"--namespace", "My_Clusters"}, `--namespace "My_Clusters": a lowercase RFC 1123 label`},
		{"When the name is too long for the control plane namespace", []string{"--name", long}, "is 1 characters too long: the control plane's namespace is called clusters-<name>"},
	} {
		t.Run(tt.name+" it should say so", func(t *testing.T) {
			c := parse(t, tt.args...)
			NewWithT(t).Expect(c.check(false)).To(MatchError(ContainSubstring(tt.says)))
		})
	}
	c := parse(t, "--name", long[1:], "--node-pool-replicas", "-1")
	NewWithT(t).Expect(c.check(false)).To(Succeed())
}

func TestRenderTellsWhatItOmits(t *testing.T) {
	for sensitive, says := range map[string]OmegaMatcher{
		"false": ContainSubstring("add --render-sensitive to have them: Secrets demo-pull-secret"), "true": BeEmpty(),
	} {
		g := NewWithT(t)
		c := parse(t, "--render", "--render-sensitive="+sensitive)
		g.Expect(c.readFiles(strings.NewReader(""))).To(Succeed())
		objs, err := c.objects(plain{})
		g.Expect(err).NotTo(HaveOccurred())
		var out strings.Builder
		c.tellOmitted(objs, progress.New(&out, clock.RealClock{}))
		g.Expect(out.String()).To(says)
	}
}

func TestWaitReadyTellsWhereToLook(t *testing.T) {
	g := NewWithT(t)
	c := parse(t, "--timeout", "10ms", "--wait")
	hc := hostedCluster()
	hc.Status.Conditions = []metav1.Condition{{Type: "ValidReleaseImage", Status: "False", Reason: "NotFound", Message: "no such image"}}
	c.client = fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(hc).Build()
	var out strings.Builder
	err := c.waitReady(t.Context(), progress.New(&out, clock.RealClock{}))
	g.Expect(err).To(MatchError(And(ContainSubstring("not done after 10ms"), ContainSubstring("ValidReleaseImage is False (NotFound): no such image"), ContainSubstring("kubectl describe"))))
	g.Expect(out.String()).To(ContainSubstring("control plane: ValidReleaseImage"))
}

func TestLookCountsOwnPoolsOnly(t *testing.T) {
	g := NewWithT(t)
	hc := hostedCluster()
	hc.Status.Conditions = []metav1.Condition{{Type: "Available", Status: "True", LastTransitionTime: metav1.NewTime(time.Unix(1, 0))}}
	own, other := pool("own", 1, 1), pool("other", 3, 0)
	own.Namespace, other.Namespace = "clusters", "clusters"
	own.Spec.ClusterName, other.Spec.ClusterName = "demo", "another"
	c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(hc, &own, &other).Build()
	state, err := readState(t.Context(), c, client.ObjectKeyFromObject(hc))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.Done).To(BeTrue())
	_, err = readState(t.Context(), c, client.ObjectKey{Namespace: "clusters", Name: "gone"})
	g.Expect(err).To(HaveOccurred())
}
