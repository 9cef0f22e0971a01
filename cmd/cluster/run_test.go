// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/doctor"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/cmd/progress"
)

// secretive is a platform that has a Secret, calls the management cluster, and may fail.
type secretive struct {
	plain
	asks    bool
	refuses error
}

func (p secretive) Complete(_ context.Context, env Environment) error {
	if p.asks {
		if _, err := env.Client(); err != nil {
			return err
		}
	}
	return p.refuses
}

func (secretive) Objects(namespace, name string) []client.Object {
	return []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-none-credentials"}, Data: map[string][]byte{"key": []byte("sesame")}}}
}

// types runs a command with the arguments that a user types.
func types(t *testing.T, cmd *cobra.Command, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("HOME", t.TempDir())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out, said strings.Builder
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	cmd.SetArgs(append([]string{}, args...)) // Cobra replaces nil with the arguments of the test binary.
	err = cmd.ExecuteContext(t.Context())
	return out.String(), said.String(), err
}

func creates(t *testing.T, platform Platform, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return types(t, NewCreateCommand(platform, Defaults{ControllerAvailability: hyperv1.SingleReplica}), stdin,
		append([]string{"--name=demo", "--release-image=registry.example/release:1"}, args...)...)
}

func TestCreateRenders(t *testing.T) {
	t.Run("When the objects are rendered, it should need no cluster, omit the Secrets and list them", func(t *testing.T) {
		g := NewWithT(t)
		out, said, err := creates(t, secretive{}, "", "--render")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(And(ContainSubstring("kind: HostedCluster"), ContainSubstring("kind: NodePool"), Not(ContainSubstring("kind: Secret"))))
		g.Expect(said).To(ContainSubstring("add --render-sensitive to have them: Secrets demo-pull-secret, demo-etcd-encryption-key, demo-none-credentials"))
	})
	t.Run("When Secrets are rendered, they should come before the objects that refer to them", func(t *testing.T) {
		g := NewWithT(t)
		out, said, err := creates(t, secretive{}, `{"auths":{"a":{"auth":"YTpi"}}}`, "--render", "--render-sensitive", "--pull-secret=-")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said).To(BeEmpty())
		g.Expect(strings.Count(out, "kind: Secret")).To(Equal(3))
		g.Expect(strings.LastIndex(out, "kind: Secret")).To(BeNumerically("<", strings.Index(out, "kind: HostedCluster")))
		g.Expect(strings.Index(out, "kind: Namespace")).To(BeNumerically("<", strings.Index(out, "kind: Secret")))
	})
	t.Run("When the file is readable by others, it should become private, and nothing should be printed", func(t *testing.T) {
		g, file := NewWithT(t), filepath.Join(t.TempDir(), "all.yaml")
		g.Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
		g.Expect(os.Chmod(file, 0o644)).To(Succeed())
		out, _, err := creates(t, secretive{}, "", "--render-into", file, "--render-sensitive")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(BeEmpty())
		info, err := os.Stat(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600))
	})
	for name, tt := range map[string]struct {
		platform Platform
		args     []string
		code     int
		says     string
	}{
		"the directory is missing":       {secretive{}, []string{"--render-into", filepath.Join(t.TempDir(), "none", "a")}, exit.Failure, "--render-into: "},
		"a flag is invalid":              {secretive{}, []string{"--render", "--arch=mips"}, exit.Usage, "--arch"},
		"a file is missing":              {secretive{}, []string{"--render", "--ssh-key=/none"}, exit.Usage, "--ssh-key: "},
		"standard input is empty":        {secretive{}, []string{"--render", "--pull-secret=-"}, exit.Usage, "--pull-secret - is empty"},
		"the platform rejects the flags": {secretive{refuses: errors.New("--subnet is required")}, []string{"--render"}, exit.Usage, "--subnet is required"},
		"the size of etcd is invalid":    {secretive{}, []string{"--render", "--etcd-storage-size=big"}, exit.Usage, "--etcd-storage-size"},
		"the platform needs the cluster": {secretive{asks: true}, []string{"--render"}, exit.Usage, "find the management cluster"},
		"there is no cluster to make it": {secretive{}, nil, exit.Failure, "find the management cluster"},
	} {
		t.Run("When "+name+" it should say so and print nothing", func(t *testing.T) {
			g := NewWithT(t)
			out, said, err := creates(t, tt.platform, "", tt.args...)
			g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			g.Expect(exit.Code(err)).To(Equal(tt.code))
			g.Expect(out).To(BeEmpty())
			g.Expect(said).NotTo(ContainSubstring("sesame"))
		})
	}
}

// TestRequired checks that flags without a possible default are required.
func TestRequired(t *testing.T) {
	for says, args := range map[string][]string{"--name is required": {"--release-image=r/a:1"}, "--release-image is required": {"--name=demo"}, "unknown command": {"stray"}} {
		_, _, err := types(t, NewCreateCommand(plain{}, Defaults{ControllerAvailability: hyperv1.SingleReplica}), "", append(args, "--render")...)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)))
	}
}

// closed is a writer that always fails.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestPrintedToNobody(t *testing.T) {
	c := parse(t)
	NewWithT(t).Expect(c.write(closed{}, []client.Object{hostedCluster()})).To(MatchError(os.ErrClosed))
}

func TestCreateOverTheWire(t *testing.T) {
	t.Run("When a cluster is created, a dry run should check HostedCluster and NodePool before they are created", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t)
		out, said, err := creates(t, secretive{asks: true}, "", "--kubeconfig", s.Kubeconfig)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(BeEmpty())
		g.Expect(said).To(And(ContainSubstring("HostedCluster clusters/demo applied"), Not(ContainSubstring("sesame"))))
		const in = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/"
		g.Expect(s.Writes()).To(Equal([]string{
			"POST /api/v1/namespaces", "POST " + in + "hostedclusters?dryRun=All", "PATCH " + in + "nodepools/demo?dryRun=All",
			"POST /api/v1/namespaces", "PATCH /api/v1/namespaces/clusters/secrets/demo-pull-secret", "PATCH /api/v1/namespaces/clusters/secrets/demo-etcd-encryption-key",
			"PATCH /api/v1/namespaces/clusters/secrets/demo-none-credentials", "POST " + in + "hostedclusters", "PATCH " + in + "nodepools/demo",
		}))
	})
	t.Run("When the command runs again, the HostedCluster should not be touched", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t, hostedCluster())
		_, _, err := creates(t, secretive{}, "", "--kubeconfig", s.Kubeconfig)
		g.Expect(err).To(MatchError("HostedCluster clusters/demo exists already; choose another --name, or destroy it first"))
		g.Expect(s.Writes()).To(BeEmpty())
	})
	t.Run("When the command fails between two objects, a second run should finish it", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t)
		s.Refuse(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/demo-none-credentials") })
		_, _, err := creates(t, secretive{}, "", "--kubeconfig", s.Kubeconfig)
		g.Expect(err).To(MatchError(HavePrefix("apply Secret clusters/demo-none-credentials: ")))
		g.Expect(exit.Code(err)).To(Equal(exit.Failure))
		s.Refuse(func(*http.Request) bool { return false })
		_, _, err = creates(t, secretive{}, "", "--kubeconfig", s.Kubeconfig)
		g.Expect(err).NotTo(HaveOccurred())
		var secrets corev1.SecretList
		g.Expect(s.Client.List(t.Context(), &secrets)).To(Succeed())
		g.Expect(secrets.Items).To(HaveLen(3))
		hc := &hyperv1.HostedCluster{}
		g.Expect(s.Client.Get(t.Context(), client.ObjectKey{Namespace: "clusters", Name: "demo"}, hc)).To(Succeed())
		for i := range secrets.Items {
			g.Expect(secrets.Items[i].Labels).To(HaveKeyWithValue(hyperv1.AutoCreatedForInfraLabel, hc.Spec.InfraID), "what an earlier run made goes with the cluster")
		}
	})
	t.Run("When --wait times out, it should report what is blocking", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t)
		_, _, err := creates(t, secretive{}, "", "--kubeconfig", s.Kubeconfig, "--wait", "--node-pool-replicas=1", "--timeout=1ms")
		g.Expect(err).To(MatchError(And(ContainSubstring("HostedCluster clusters/demo was not done after 1ms"), ContainSubstring("kubectl describe hostedcluster,nodepool -n clusters"))))
	})
}

func TestDestroyCommand(t *testing.T) {
	t.Run("When no name is given, it should return a usage error", func(t *testing.T) {
		g := NewWithT(t)
		_, _, err := types(t, NewDestroyCommand(hyperv1.MAASPlatform), "")
		g.Expect(err).To(MatchError("--name is required"))
		g.Expect(exit.Code(err)).To(Equal(exit.Usage))
	})
	t.Run("When there is no management cluster, it should return an error", func(t *testing.T) {
		g := NewWithT(t)
		_, _, err := types(t, NewDestroyCommand(hyperv1.MAASPlatform), "", "--name=demo")
		g.Expect(err).To(MatchError(ContainSubstring("find the management cluster")))
		g.Expect(exit.Code(err)).To(Equal(exit.Failure))
	})
	for _, dies := range []string{"hostedclusters/demo", "secrets/demo-pull-secret", "configmaps/demo-user-ca-bundle"} {
		t.Run("When the command fails at "+dies+", the same command should end it and take nothing of others", func(t *testing.T) {
			g, s := NewWithT(t), kubetest.Start(t, append(leftovers(), hostedCluster())...)
			command := func() error {
				_, _, err := types(t, NewDestroyCommand(hyperv1.MAASPlatform), "", "--name=demo", "--infra-id=demo-abcde", "--destroy-cloud-resources=false", "--kubeconfig", s.Kubeconfig)
				return err
			}
			s.Refuse(func(r *http.Request) bool {
				return r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, dies)
			})
			g.Expect(command()).To(MatchError(And(HavePrefix("delete "), ContainSubstring("demo"))))
			s.Refuse(func(*http.Request) bool { return false })
			g.Expect(command()).To(Succeed())
			g.Expect(remaining(t, s.Client)).To(ConsistOf("other-pull-secret", "demo-kept"))
		})
	}
}

// TestLeftoversByName checks that leftovers are found by the names of the create command if nothing else is known of a
// cluster.
func TestLeftoversByName(t *testing.T) {
	for name, want := range map[string]bool{
		"demo-pull-secret": true, "demo-ssh-key": true, "demo-etcd-encryption-key": true, "demo-user-ca-bundle": true, "demo-maas-credentials": true,
		"demo-none-credentials": false, "demo-pull-secret-2": false, "my-demo-pull-secret": false, "demo": false, "demo-x-pull-secret": false,
	} {
		d := &destroy{name: "demo", namespace: "clusters", platform: hyperv1.MAASPlatform}
		NewWithT(t).Expect(d.belongs(labelled(&corev1.Secret{}, name, "demo-abcde"))).To(Equal(want), name)
	}
}

// TestDestroyGone checks that the command continues if the cluster disappears concurrently.
func TestDestroyGone(t *testing.T) {
	gone := func(ctx context.Context, c client.WithWatch, obj client.Object) error {
		return c.Delete(ctx, &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}})
	}
	inner := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(append(leftovers(), hostedCluster())...).Build()
	c := interceptor.NewClient(inner, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return errors.Join(gone(ctx, inner, obj), client.IgnoreNotFound(c.Patch(ctx, obj, patch, opts...)))
		},
	})
	g := NewWithT(t)
	var said strings.Builder
	d := &destroy{name: "demo", namespace: "clusters", platform: hyperv1.MAASPlatform, gracePeriod: time.Minute, cloudResources: true}
	g.Expect(d.destroy(t.Context(), c, progress.New(&said, clock.RealClock{}))).To(Succeed())
	g.Expect(remaining(t, c)).To(ConsistOf("other-pull-secret", "demo-kept"))
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	g.Expect(lines[0]).To(HaveSuffix("HostedCluster clusters/demo is being deleted"))
	g.Expect(slices.Contains(lines, "")).To(BeFalse())
	g.Expect(lines[len(lines)-1]).To(HaveSuffix("cluster clusters/demo destroyed, 4 of its Secrets and ConfigMaps deleted"))
}

// TestAnnotatedAlready checks that an annotated cluster is not written again: a second destroy only waits.
func TestAnnotatedAlready(t *testing.T) {
	hc := hostedCluster()
	hc.Annotations = map[string]string{hyperv1.CleanupCloudResourcesAnnotation: "true"}
	c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(hc).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errors.New("nobody is to write")
		},
	}).Build()
	d := &destroy{name: "demo", namespace: "clusters", platform: hyperv1.MAASPlatform, gracePeriod: time.Minute, cloudResources: true}
	NewWithT(t).Expect(d.destroy(t.Context(), c, progress.New(&strings.Builder{}, clock.RealClock{}))).To(Succeed())
}

// TestStateOfPools checks that pools without a size are counted, and that the first pool that lacks nodes is reported.
func TestStateOfPools(t *testing.T) {
	hc := &hyperv1.HostedCluster{}
	hc.Status.Conditions = []metav1.Condition{condition("Available", "True", "AsExpected", "")}
	scaled := pool("scaled", 0, 3)
	scaled.Spec.Replicas = nil
	g := NewWithT(t)
	g.Expect(stateOf(hc, []hyperv1.NodePool{scaled}).Done).To(BeTrue(), "an autoscaler says how many, and nobody waits for that")
	g.Expect(stateOf(hc, []hyperv1.NodePool{pool("more", 2, 3)}).Done).To(BeTrue())
	both := stateOf(hc, []hyperv1.NodePool{pool("one", 2, 0), pool("two", 2, 1), scaled})
	g.Expect(both.Done).To(BeFalse())
	g.Expect(both.Blocking).To(HavePrefix("NodePool one: "))
	g.Expect(both.Message).To(ContainSubstring("nodes: one 0/2, two 1/2, scaled 3/0; NodePool one"))
}

// TestReadyConditions checks that the cause is reported and not its effects, in the order in which conditions become
// true.
func TestReadyConditions(t *testing.T) {
	g := NewWithT(t)
	hc := &hyperv1.HostedCluster{}
	for i, earlier := range doctor.ReadyConditions {
		hc.Status.Conditions = nil
		for _, later := range doctor.ReadyConditions[i:] {
			hc.Status.Conditions = append([]metav1.Condition{condition(later, "False", "Because", "of "+later)}, hc.Status.Conditions...)
		}
		g.Expect(stateOf(hc, nil).Message).To(ContainSubstring("of " + earlier))
	}
	g.Expect(doctor.ReadyConditions[0]).To(Equal(string(hyperv1.ReconciliationActive)), "a paused cluster waits for whoever paused it")
	g.Expect(doctor.ReadyConditions[len(doctor.ReadyConditions)-1]).To(Equal(string(hyperv1.HostedClusterAvailable)))
}
