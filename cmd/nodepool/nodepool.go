// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/confirm"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/objects"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/platforms"
)

// create holds the state of one `create nodepool`.
type create struct {
	platform   Platform
	connection kube.Connection

	name, namespace, clusterName string
	replicas                     int32
	releaseImage, arch           string
	upgradeType                  string
	autoRepair                   bool
	nodeLabels                   map[string]string
	render                       bool
	wait                         bool
	timeout                      time.Duration
}

// NewCreateCommand returns the command `create nodepool <platform>`.
func NewCreateCommand(platform Platform) *cobra.Command {
	c := &create{platform: platform}
	name := strings.ToLower(string(platform.Type()))
	command := "hypershift create nodepool " + name + " --name big --cluster-name demo --replicas 3 "
	command = strings.TrimSpace(command + platform.Example())
	cmd := &cobra.Command{
		Use:     name,
		Short:   "Create a NodePool on platform " + string(platform.Type()),
		Example: "  " + command + "\n  # Wait until the nodes are ready\n  " + command + " --wait --timeout 2h",
		Args:    cobra.NoArgs,
		RunE:    c.run,
	}
	c.addFlags(cmd.Flags())
	c.connection.AddFlags(cmd.Flags())
	platform.AddFlags(cmd.Flags())
	showGroups(cmd, platform.Type())
	return cmd
}

func (c *create) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.name, "name", "", "name of the NodePool (required)")
	flags.StringVar(&c.namespace, "namespace", "clusters", "namespace of the cluster")
	flags.StringVar(&c.clusterName, "cluster-name", "", "name of the cluster (required)")
	flags.Int32Var(&c.replicas, "replicas", 2, "number of nodes")
	flags.Int32Var(&c.replicas, "node-count", 2, "number of nodes")
	_ = flags.MarkDeprecated("node-count", "use --replicas")
	flags.StringVar(&c.releaseImage, "release-image", "", "release payload of the nodes (default: the cluster's)")
	flags.StringVar(&c.arch, "arch", "amd64", "CPU architecture of the machines")
	flags.StringVar(&c.upgradeType, "node-upgrade-type", "", "Replace or InPlace (default: by the platform)")
	flags.BoolVar(&c.autoRepair, "auto-repair", false, "replace machines that stay unhealthy")
	flags.StringToStringVar(&c.nodeLabels, "node-labels", nil, "labels of the nodes")
	flags.BoolVar(&c.render, "render", false, "print the NodePool instead of creating it")
	flags.BoolVar(&c.wait, "wait", false, "wait until the nodes are ready, and print the machine and the host of each")
	flags.DurationVar(&c.timeout, "timeout", 0, "longest time to wait (default: no limit)")
}

func (c *create) run(cmd *cobra.Command, _ []string) error {
	if err := c.check(); err != nil {
		return exit.UsageError(err)
	}
	if err := c.platform.Complete(); err != nil {
		return exit.UsageError(err)
	}
	inheritor, inherits := c.platform.(Inheritor)
	if c.render && c.releaseImage != "" && !(inherits && inheritor.Incomplete()) {
		return objects.Write(cmd.OutOrStdout(), []client.Object{c.nodePool()}, false)
	}
	cl, err := c.connection.Client()
	if err != nil {
		return err
	}
	if err := c.checkCluster(cmd.Context(), cl); err != nil {
		return err
	}
	pool := c.nodePool()
	if c.render {
		return objects.Write(cmd.OutOrStdout(), []client.Object{pool}, false)
	}
	if err := objects.Create(cmd.Context(), cl, pool); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("NodePool %s/%s exists already; choose another --name, or scale it with kubectl scale", c.namespace, c.name)
		}
		return fmt.Errorf("create NodePool %s/%s: %w", c.namespace, c.name, err)
	}
	report := progress.New(cmd.ErrOrStderr(), clock.RealClock{})
	report.Printf("NodePool %s/%s created", c.namespace, c.name)
	if !c.wait {
		return nil
	}
	return c.waitReady(cmd.Context(), cl, report)
}

func (c *create) check() error {
	if c.name == "" || c.clusterName == "" {
		return errors.New("--name and --cluster-name are required")
	}
	if problems := validation.IsDNS1123Label(c.name); len(problems) > 0 {
		return fmt.Errorf("--name %q: %s", c.name, strings.Join(problems, "; "))
	}
	if c.replicas < 0 {
		return fmt.Errorf("--replicas %d: use 0 or more", c.replicas)
	}
	traits, known := platforms.Of(c.platform.Type())
	if !known || !traits.Supports(c.arch) {
		return fmt.Errorf("--arch %q: use one of %s", c.arch, strings.Join(traits.Architectures, ", "))
	}
	if c.timeout != 0 && !c.wait {
		return errors.New("--timeout is how long --wait waits: add --wait, or leave it out")
	}
	types := []string{"", string(hyperv1.UpgradeTypeReplace), string(hyperv1.UpgradeTypeInPlace)}
	if !slices.Contains(types, c.upgradeType) {
		return fmt.Errorf("--node-upgrade-type %q: use Replace or InPlace", c.upgradeType)
	}
	if c.upgradeType == "" {
		c.upgradeType = string(traits.DefaultUpgradeType)
	}
	return nil
}

func (c *create) checkCluster(ctx context.Context, cl client.Client) error {
	hc := &hyperv1.HostedCluster{}
	err := cl.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: c.clusterName}, hc)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no HostedCluster %s/%s; check --namespace and --cluster-name", c.namespace, c.clusterName)
	}
	if err != nil {
		return fmt.Errorf("read HostedCluster %s/%s: %w", c.namespace, c.clusterName, err)
	}
	if hc.Spec.Platform.Type != c.platform.Type() {
		return exit.UsageError(fmt.Errorf("HostedCluster %s/%s is of platform %s; use: create nodepool %s",
			c.namespace, c.clusterName, hc.Spec.Platform.Type, strings.ToLower(string(hc.Spec.Platform.Type))))
	}
	if c.releaseImage == "" {
		c.releaseImage = hc.Spec.Release.Image
	}
	if inheritor, ok := c.platform.(Inheritor); ok {
		if err := inheritor.Inherit(hc); err != nil {
			return exit.UsageError(err)
		}
	}
	return nil
}

func (c *create) nodePool() *hyperv1.NodePool {
	pool := &hyperv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: c.name},
		Spec: hyperv1.NodePoolSpec{
			ClusterName: c.clusterName,
			Release:     hyperv1.Release{Image: c.releaseImage},
			Replicas:    ptr.To(c.replicas),
			Arch:        c.arch,
			NodeLabels:  c.nodeLabels,
			Management:  hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeType(c.upgradeType), AutoRepair: c.autoRepair},
		},
	}
	c.platform.Apply(pool)
	return pool
}

// destroy holds the state of one `destroy nodepool`.
type destroy struct {
	connection      kube.Connection
	name, namespace string
	clusterName     string
	timeout         time.Duration
	yes             bool
}

// NewDestroyCommand returns the command `destroy nodepool`.
func NewDestroyCommand() *cobra.Command {
	d := &destroy{}
	cmd := &cobra.Command{
		Use:   "nodepool",
		Short: "Destroy a NodePool and release its machines",
		Long: "Destroy a NodePool and release its machines. On a terminal, the command shows what it destroys, and asks for the " +
			"name of the NodePool.",
		Example: "  hypershift destroy nodepool --name demo",
		Args:    cobra.NoArgs,
		RunE:    d.run,
	}
	cmd.Flags().StringVar(&d.name, "name", "", "name of the NodePool (required)")
	cmd.Flags().StringVar(&d.namespace, "namespace", "clusters", "namespace of the NodePool")
	cmd.Flags().StringVar(&d.clusterName, "cluster-name", "", "name of the cluster; when set, the NodePool must belong to it")
	cmd.Flags().DurationVar(&d.timeout, "timeout", 30*time.Minute, "longest wait until the NodePool is gone")
	confirm.AddFlag(cmd.Flags(), &d.yes)
	d.connection.AddFlags(cmd.Flags())
	return cmd
}

func (d *destroy) run(cmd *cobra.Command, _ []string) error {
	if d.name == "" {
		return exit.UsageError(errors.New("--name is required"))
	}
	c, err := d.connection.Client()
	if err != nil {
		return err
	}
	if !d.yes && confirm.Terminal(cmd) {
		if err := d.ask(cmd, c); err != nil {
			return err
		}
	}
	return d.destroy(cmd.Context(), c, progress.New(cmd.ErrOrStderr(), clock.RealClock{}))
}

// ask shows what the command destroys, and asks for the name of the pool. It asks nothing if there is no pool.
func (d *destroy) ask(cmd *cobra.Command, c client.Client) error {
	pool, key := &hyperv1.NodePool{}, client.ObjectKey{Namespace: d.namespace, Name: d.name}
	switch err := c.Get(cmd.Context(), key, pool); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read NodePool %s: %w", key, err)
	}
	goes := fmt.Sprintf("NodePool %s of cluster %s with %s: its machines are released, and their disks may be erased",
		key, pool.Spec.ClusterName, condition.Count(int(pool.Status.Replicas), "node"))
	return confirm.Ask(cmd, confirm.Question{Name: d.name, What: "destroy NodePool " + key.String(), Goes: []string{goes}})
}

func (d *destroy) destroy(ctx context.Context, c client.Client, report *progress.Reporter) error {
	key := client.ObjectKey{Namespace: d.namespace, Name: d.name}
	pool := &hyperv1.NodePool{}
	if err := c.Get(ctx, key, pool); err != nil {
		if apierrors.IsNotFound(err) {
			report.Printf("NodePool %s is not there", key)
			return nil
		}
		return fmt.Errorf("read NodePool %s: %w", key, err)
	}
	if d.clusterName != "" && pool.Spec.ClusterName != d.clusterName {
		return exit.UsageError(fmt.Errorf("NodePool %s belongs to cluster %s, not to %s", key, pool.Spec.ClusterName, d.clusterName))
	}
	if err := c.Delete(ctx, pool); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete NodePool %s: %w", key, err)
	}
	return report.Wait(ctx, "the deletion of NodePool "+key.String(), d.timeout, time.Second, func(ctx context.Context) (progress.State, error) {
		err := c.Get(ctx, key, pool)
		if apierrors.IsNotFound(err) {
			return progress.State{Done: true, Message: "NodePool " + key.String() + " is gone"}, nil
		}
		return progress.State{Message: fmt.Sprintf("waiting for the machines of NodePool %s, %s left", key, condition.Count(int(pool.Status.Replicas), "node"))}, err
	})
}
