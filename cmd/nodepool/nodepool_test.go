// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/progress"
)

type plain struct{}

func (plain) Example() string              { return "" }
func (plain) Type() hyperv1.PlatformType   { return hyperv1.NonePlatform }
func (plain) AddFlags(*pflag.FlagSet)      {}
func (plain) Complete() error              { return nil }
func (plain) Apply(pool *hyperv1.NodePool) { pool.Spec.Platform.Type = hyperv1.NonePlatform }

func parse(t *testing.T, args ...string) *create {
	t.Helper()
	c := &create{platform: plain{}}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	c.addFlags(flags)
	if err := flags.Parse(append([]string{"--name", "workers", "--cluster-name", "demo"}, args...)); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCheck(t *testing.T) {
	tests := []struct {
		name string
		args []string
		says string
	}{
		{name: "When only the required flags are set, it should accept them"},
		{name: "When the replica count is zero, it should accept it", args: []string{"--replicas", "0"}},
		{name: "When the deprecated flag name is used, it should accept the flag", args: []string{"--node-count", "3"}},
		{name: "When the name is not a DNS label, it should name the flag", args: []string{"--name", "A"}, says: "--name"},
		{name: "When the cluster name is missing, it should name the flag", args: []string{"--cluster-name", ""}, says: "--cluster-name"},
		{name: "When the architecture is unknown, it should list the known ones", args: []string{"--arch", "mips"}, says: "amd64, arm64"},
		{name: "When the upgrade type is unknown, it should list the known ones", args: []string{"--node-upgrade-type", "Maybe"}, says: "Replace or InPlace"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := parse(t, tt.args...).check()
			if tt.says == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tt.says)))
		})
	}
}

func TestDefaults(t *testing.T) {
	g := NewWithT(t)
	c := parse(t)
	g.Expect(c.check()).To(Succeed())
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
	hc.Spec.Platform.Type = hyperv1.NonePlatform
	hc.Spec.Release.Image = "registry.example/release:1"
	cl := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(hc).Build()
	g.Expect(c.checkCluster(t.Context(), cl)).To(Succeed())
	pool := c.nodePool()
	g.Expect(pool.Spec.Release.Image).To(Equal("registry.example/release:1"), "nodes get the cluster's release")
	g.Expect(pool.Spec.Management.UpgradeType).To(Equal(hyperv1.UpgradeTypeInPlace), "the platform's own way")
	g.Expect(*pool.Spec.Replicas).To(BeEquivalentTo(2))
}

// heir is a platform that takes its labels from the cluster.
type heir struct {
	plain
	refuses error
	of      string
}

func (h *heir) Incomplete() bool { return h.of == "" }

func (h *heir) Inherit(hc *hyperv1.HostedCluster) error {
	h.of = hc.Name
	return h.refuses
}

func TestInherit(t *testing.T) {
	g := NewWithT(t)
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}}
	hc.Spec.Platform.Type = hyperv1.NonePlatform
	cl := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(hc).Build()
	c, platform := parse(t), &heir{}
	c.platform = platform
	g.Expect(c.checkCluster(t.Context(), cl)).To(Succeed())
	g.Expect(platform.of).To(Equal("demo"))
	platform.refuses = errors.New("--subnet-id is required")
	err := c.checkCluster(t.Context(), cl)
	g.Expect(err).To(MatchError(platform.refuses))
	g.Expect(exit.Code(err)).To(Equal(exit.Usage))
}

func nodePool(finalizers ...string) *hyperv1.NodePool {
	pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "workers", Finalizers: finalizers}}
	pool.Spec.ClusterName = "demo"
	pool.Status.Replicas = 2
	return pool
}

func TestDestroy(t *testing.T) {
	refused := errors.New("no rights")
	tests := []struct {
		name  string
		pool  *hyperv1.NodePool
		edit  func(*destroy)
		funcs interceptor.Funcs
		says  string
		code  int
	}{
		{name: "When the NodePool exists, it should delete the NodePool", pool: nodePool()},
		{name: "When the NodePool does not exist, it should succeed"},
		{name: "When the NodePool belongs to the named cluster, it should delete the NodePool", pool: nodePool(), edit: func(d *destroy) { d.clusterName = "demo" }},
		{
			name: "When the NodePool belongs to another cluster, it should return an error", pool: nodePool(), edit: func(d *destroy) { d.clusterName = "other" },
			says: "belongs to cluster demo, not to other", code: exit.Usage,
		},
		{
			name: "When the deletion times out, it should report the remaining nodes", pool: nodePool("finalizer"), edit: func(d *destroy) { d.timeout = 10 * time.Millisecond },
			says: "2 nodes left", code: exit.Failure,
		},
		{
			name: "When the NodePool cannot be deleted, it should return an error", pool: nodePool(), says: "delete NodePool clusters/workers: no rights", code: exit.Failure,
			funcs: interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return refused }},
		},
		{
			name: "When the NodePool cannot be read, it should return an error", pool: nodePool(), says: "read NodePool clusters/workers: no rights", code: exit.Failure,
			funcs: interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return refused
			}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			builder := fake.NewClientBuilder().WithScheme(kube.Scheme).WithInterceptorFuncs(tt.funcs)
			if tt.pool != nil {
				builder = builder.WithObjects(tt.pool)
			}
			d := &destroy{name: "workers", namespace: "clusters", timeout: 5 * time.Second}
			if tt.edit != nil {
				tt.edit(d)
			}
			err := d.destroy(t.Context(), builder.Build(), progress.New(&strings.Builder{}, clock.RealClock{}))
			g.Expect(exit.Code(err)).To(Equal(tt.code))
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			}
		})
	}
}
