// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/cmd/progress"
)

func ofPlatform(platform hyperv1.PlatformType) *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
	hc.Spec.Platform.Type, hc.Spec.Release.Image = platform, "registry.example/release:1"
	return hc
}

// types runs a command with the arguments that a user types.
func types(t *testing.T, cmd *cobra.Command, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("HOME", t.TempDir())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out, said strings.Builder
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	cmd.SetArgs(append([]string{}, args...)) // Cobra replaces nil with the arguments of the test binary.
	err = cmd.ExecuteContext(t.Context())
	return out.String(), said.String(), err
}

// choosy is a platform that can reject its flags and inherits the omitted ones.
type choosy struct {
	heir
	wrong error
}

func (c *choosy) Complete() error { return c.wrong }

func TestCreate(t *testing.T) {
	named := []string{"--name=workers", "--cluster-name=demo"}
	t.Run("When only the required flags are set, it should create two nodes of the cluster's release", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t, ofPlatform(hyperv1.NonePlatform))
		_, said, err := types(t, NewCreateCommand(plain{}), append(named, "--kubeconfig", s.Kubeconfig)...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said).To(ContainSubstring("NodePool clusters/workers created"))
		pool := &hyperv1.NodePool{}
		g.Expect(s.Client.Get(t.Context(), client.ObjectKey{Namespace: "clusters", Name: "workers"}, pool)).To(Succeed())
		want := hyperv1.NodePoolSpec{ClusterName: "demo", Release: hyperv1.Release{Image: "registry.example/release:1"}, Replicas: ptr.To[int32](2), Arch: "amd64",
			Management: hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeInPlace}, Platform: hyperv1.NodePoolPlatform{Type: hyperv1.NonePlatform}}
		g.Expect(cmp.Diff(want, pool.Spec)).To(BeEmpty())
		_, _, err = types(t, NewCreateCommand(plain{}), append(named, "--kubeconfig", s.Kubeconfig)...)
		g.Expect(err).To(MatchError("NodePool clusters/workers exists already; choose another --name, or scale it with kubectl scale"))
		g.Expect(exit.Code(err)).To(Equal(exit.Failure))
	})
	t.Run("When it renders with a release image, it should need no cluster", func(t *testing.T) {
		g := NewWithT(t)
		out, said, err := types(t, NewCreateCommand(plain{}), append(named, "--render", "--release-image=r/other:2", "--namespace=team", "--replicas=5", "--arch=arm64",
			"--auto-repair", "--node-upgrade-type=Replace", "--node-labels=a=b")...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said).To(BeEmpty())
		g.Expect(out).To(And(ContainSubstring("kind: NodePool"), ContainSubstring("namespace: team"), ContainSubstring("image: r/other:2"), ContainSubstring("replicas: 5"),
			ContainSubstring("arch: arm64"), ContainSubstring("autoRepair: true"), ContainSubstring("upgradeType: Replace"), ContainSubstring("a: b")))
	})
	t.Run("When it renders without a release image, it should use the cluster's and create nothing", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t, ofPlatform(hyperv1.NonePlatform))
		out, _, err := types(t, NewCreateCommand(plain{}), append(named, "--render", "--kubeconfig", s.Kubeconfig)...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(ContainSubstring("image: registry.example/release:1"))
		g.Expect(s.Writes()).To(BeEmpty())
	})
	t.Run("When the platform inherits omitted flags, it should read the cluster even if a release image is set", func(t *testing.T) {
		g, s, platform := NewWithT(t), kubetest.Start(t, ofPlatform(hyperv1.NonePlatform)), &choosy{}
		out, _, err := types(t, NewCreateCommand(platform), append(named, "--render", "--release-image=r/other:2", "--kubeconfig", s.Kubeconfig)...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(platform.of).To(Equal("demo"))
		g.Expect(out).To(ContainSubstring("image: r/other:2"), "what was named stays")
	})
	t.Run("When the deprecated flag name is used, it should accept the flag and name the new one", func(t *testing.T) {
		g := NewWithT(t)
		out, said, err := types(t, NewCreateCommand(plain{}), append(named, "--render", "--release-image=r/a:1", "--node-count=7")...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out + said).To(And(ContainSubstring("replicas: 7"), ContainSubstring("use --replicas")))
	})
	t.Run("When there is an extra argument, it should reject the argument", func(t *testing.T) {
		for _, cmd := range []*cobra.Command{NewCreateCommand(plain{}), NewDestroyCommand()} {
			_, _, err := types(t, cmd, append(named, "stray")...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`unknown command "stray"`)))
		}
	})
	for _, tt := range []struct {
		name     string
		platform Platform
		cluster  *hyperv1.HostedCluster
		args     []string
		forbids  string
		code     int
		says     string
	}{
		{name: "the name is missing", platform: plain{}, args: []string{"--name="}, code: exit.Usage, says: "--name and --cluster-name are required"},
		{name: "the name is not a DNS label", platform: plain{}, args: []string{"--name=A_b"}, code: exit.Usage, says: `--name "A_b": `},
		{name: "the replica count is negative", platform: plain{}, args: []string{"--replicas=-1"}, code: exit.Usage, says: "--replicas -1: use 0 or more"},
		{name: "the upgrade type is unknown", platform: plain{}, args: []string{"--node-upgrade-type=x"}, code: exit.Usage, says: `--node-upgrade-type "x": use Replace or InPlace`},
		{name: "the platform's flags are invalid", platform: &choosy{wrong: errors.New("--zone is wrong")}, code: exit.Usage, says: "--zone is wrong"},
		{name: "the cluster does not exist", platform: plain{}, code: exit.Failure, says: "there is no HostedCluster clusters/demo; check --namespace and --cluster-name"},
		{name: "the cluster has another platform", platform: plain{}, cluster: ofPlatform(hyperv1.MAASPlatform), code: exit.Usage, says: "is of platform MAAS; use: create nodepool maas"},
		{name: "the cluster lacks an inherited value", platform: &choosy{heir: heir{refuses: errors.New("--subnet-id is required")}}, cluster: ofPlatform(hyperv1.NonePlatform),
			code: exit.Usage, says: "--subnet-id is required"},
		{name: "the cluster cannot be read", platform: plain{}, cluster: ofPlatform(hyperv1.NonePlatform), forbids: http.MethodGet, code: exit.Failure, says: "read HostedCluster clusters/demo: "},
		{name: "the NodePool cannot be created", platform: plain{}, cluster: ofPlatform(hyperv1.NonePlatform), forbids: http.MethodPost, code: exit.Failure, says: "create NodePool clusters/workers: "},
		{name: "the nodes are not ready before the timeout", platform: plain{}, cluster: ofPlatform(hyperv1.NonePlatform), args: []string{"--wait", "--timeout=1ms"}, code: exit.Failure,
			says: "NodePool clusters/workers was not done after 1ms"},
	} {
		t.Run("When "+tt.name+" it should say so, print nothing, and tell the shell whose mistake it was", func(t *testing.T) {
			g, s := NewWithT(t), kubetest.Start(t)
			if tt.cluster != nil {
				g.Expect(s.Client.Create(t.Context(), tt.cluster)).To(Succeed())
			}
			s.Refuse(func(r *http.Request) bool {
				return r.Method == tt.forbids && strings.Contains(r.URL.Path, "/namespaces/")
			})
			out, _, err := types(t, NewCreateCommand(tt.platform), append(append(named, "--kubeconfig", s.Kubeconfig), tt.args...)...)
			g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			g.Expect(exit.Code(err)).To(Equal(tt.code))
			g.Expect(out).To(BeEmpty())
		})
	}
}

func TestDestroyCommand(t *testing.T) {
	t.Run("When no name is set, it should say so", func(t *testing.T) {
		g := NewWithT(t)
		_, _, err := types(t, NewDestroyCommand())
		g.Expect(err).To(MatchError("--name is required"))
		g.Expect(exit.Code(err)).To(Equal(exit.Usage))
	})
	t.Run("When the command runs twice, the second run should find nothing to delete", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t, nodePool())
		for _, says := range []string{"NodePool clusters/workers is gone", "NodePool clusters/workers is not there"} {
			_, said, err := types(t, NewDestroyCommand(), "--name=workers", "--cluster-name=demo", "--kubeconfig", s.Kubeconfig)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(said).To(ContainSubstring(says))
		}
		g.Expect(s.Writes()).To(HaveLen(1))
	})
	t.Run("When the NodePool belongs to another cluster, it should keep the NodePool", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t, nodePool())
		_, _, err := types(t, NewDestroyCommand(), "--name=workers", "--cluster-name=other", "--kubeconfig", s.Kubeconfig)
		g.Expect(err).To(MatchError("NodePool clusters/workers belongs to cluster demo, not to other"))
		g.Expect(exit.Code(err)).To(Equal(exit.Usage))
		g.Expect(s.Writes()).To(BeEmpty())
	})
	t.Run("When the deletion times out, it should return an error", func(t *testing.T) {
		g, s := NewWithT(t), kubetest.Start(t, nodePool("hypershift.openshift.io/finalizer"))
		_, _, err := types(t, NewDestroyCommand(), "--name=workers", "--timeout=1ms", "--kubeconfig", s.Kubeconfig)
		g.Expect(err).To(MatchError(ContainSubstring("the deletion of NodePool clusters/workers was not done after 1ms")))
	})
}

// TestMachinesThatCannotBeSeen checks that the error names the request. A wait retries it.
func TestMachinesThatCannotBeSeen(t *testing.T) {
	refused := errors.New("no rights")
	pool := nodePool()
	for name, tt := range map[string]struct {
		funcs    interceptor.Funcs
		platform Platform
		says     string
	}{
		"When Machines cannot be listed, it should name their namespace": {
			interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return refused }}, plain{}, "list the Machines of namespace clusters-demo: no rights"},
		"When the NodePool cannot be read, it should name the NodePool": {
			interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return refused
			}}, plain{}, "read NodePool clusters/workers: no rights"},
		"When a Machine's place cannot be read, it should return the error": {interceptor.Funcs{}, lost{}, "no place"},
	} {
		t.Run(name, func(t *testing.T) {
			c := parse(t)
			c.platform = tt.platform
			cl := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(pool.DeepCopy(), machine("workers-a", "clusters/workers")).WithInterceptorFuncs(tt.funcs).Build()
			state, err := c.look(t.Context(), cl, client.ObjectKeyFromObject(pool))
			NewWithT(t).Expect(err).To(MatchError(tt.says))
			NewWithT(t).Expect(state.Done).To(BeFalse())
		})
	}
}

// lost is a platform whose Place always fails.
type lost struct{ plain }

func (lost) Place(context.Context, client.Reader, *clusterv1.Machine) (string, error) {
	return "", errors.New("no place")
}

// TestConditions checks that the conversion keeps the content of the conditions: the first cause is reported, not its
// effects.
func TestConditions(t *testing.T) {
	g, now := NewWithT(t), metav1.Unix(1, 0)
	pool := &hyperv1.NodePool{}
	g.Expect(Conditions(pool)).To(BeEmpty())
	pool.Status.Conditions = []hyperv1.NodePoolCondition{{Type: "Ready", Status: "False", Reason: "Why", Message: "because", LastTransitionTime: now}}
	g.Expect(Conditions(pool)).To(Equal([]metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Why", Message: "because", LastTransitionTime: now}}))
}

// TestCauses checks that causes a user can fix are reported before their effects.
func TestCauses(t *testing.T) {
	for cause, effect := range map[string]string{
		hyperv1.NodePoolValidReleaseImageConditionType: hyperv1.NodePoolValidMachineConfigConditionType,
		hyperv1.NodePoolValidArchPlatform:              hyperv1.NodePoolAllMachinesReadyConditionType,
		hyperv1.NodePoolValidPlatformImageType:         hyperv1.NodePoolAllMachinesReadyConditionType,
		hyperv1.NodePoolAllMachinesReadyConditionType:  hyperv1.NodePoolReachedIgnitionEndpoint,
		hyperv1.NodePoolReachedIgnitionEndpoint:        hyperv1.NodePoolAllNodesHealthyConditionType,
		hyperv1.NodePoolAllNodesHealthyConditionType:   hyperv1.NodePoolReadyConditionType,
	} {
		pool := &hyperv1.NodePool{}
		for _, condition := range []string{effect, cause} {
			pool.Status.Conditions = append(pool.Status.Conditions, hyperv1.NodePoolCondition{Type: condition, Status: "False", Reason: "Why"})
		}
		NewWithT(t).Expect(progress.FirstUnmet(Conditions(pool), ReadyConditions...)).To(HavePrefix(cause + " is False"))
	}
}
