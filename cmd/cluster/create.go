// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/doctor"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/objects"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/platforms"
)

// FieldOwner is the field owner of the commands in server-side apply.
const FieldOwner = "hypershift-cli"

const pollInterval = 2 * time.Second

// create holds the state of one `create cluster`.
type create struct {
	Options
	platform   Platform
	connection kube.Connection
	client     client.Client

	render          bool
	renderInto      string
	renderSensitive bool
	wait            bool
	timeout         time.Duration
	skipPreflight   bool
}

// NewCreateCommand returns the command `create cluster <platform>` with the defaults of a program.
func NewCreateCommand(platform Platform, defaults Defaults) *cobra.Command {
	c := &create{platform: platform}
	name := strings.ToLower(string(platform.Type()))
	cmd := &cobra.Command{
		Use:   name,
		Short: "Create a hosted cluster on platform " + string(platform.Type()),
		Long: "Create a hosted cluster on platform " + string(platform.Type()) + ", with the Secrets that it needs and its " +
			"first NodePool.",
		Example: example("hypershift create cluster "+name, platform.Example()),
		Args:    cobra.NoArgs,
		RunE:    c.run,
	}
	c.Options.addFlags(cmd.Flags(), defaults)
	if traits, known := platforms.Of(platform.Type()); known {
		cmd.Flags().Lookup("arch").Usage = "CPU architecture of the machines: " + strings.Join(traits.Architectures, " or ")
	}
	c.addOutputFlags(cmd.Flags())
	c.connection.AddFlags(cmd.Flags())
	platform.AddFlags(cmd.Flags())
	showGroups(cmd, platform.Type())
	return cmd
}

// example returns the examples of a command, whose flags begin with those that each cluster needs.
func example(command, flags string) string {
	return "  " + command + " --name demo --node-pool-replicas 2 \\\n    " + flags + "\n" +
		"  # Wait until the cluster and its nodes are ready\n" +
		"  " + command + " --name demo --node-pool-replicas 2 --wait --timeout 2h \\\n    " + flags + "\n" +
		"  # Write the objects into a file for a Git repository, without Secrets\n" +
		"  " + command + " --name demo --render-into demo.yaml \\\n    " + flags
}

func (c *create) addOutputFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&c.render, "render", false, "print the objects instead of creating them")
	flags.StringVar(&c.renderInto, "render-into", "", "write the objects into a file instead of creating them")
	flags.BoolVar(&c.renderSensitive, "render-sensitive", false, "print Secrets too")
	flags.BoolVar(&c.wait, "wait", false, "wait until the cluster is available and its nodes are ready")
	flags.DurationVar(&c.timeout, "timeout", 0, "longest time to wait (default: no limit)")
	flags.BoolVar(&c.skipPreflight, "skip-preflight", false,
		"create the cluster although it may be unable to run: leave out the quick checks of hypershift doctor")
}

func (c *create) run(cmd *cobra.Command, _ []string) error {
	ctx := cmd.Context()
	rendering := c.render || c.renderInto != ""
	if err := c.check(rendering); err != nil {
		return exit.UsageError(err)
	}
	if err := c.readFiles(cmd.InOrStdin()); err != nil {
		return exit.UsageError(err)
	}
	report := progress.New(cmd.ErrOrStderr(), clock.RealClock{})
	if err := c.completeRelease(ctx, report); err != nil {
		return exit.UsageError(err)
	}
	env := Environment{Name: c.name, Namespace: c.namespace, Client: c.connect, Stdin: cmd.InOrStdin(), Stderr: cmd.ErrOrStderr()}
	if err := c.platform.Complete(ctx, env); err != nil {
		return exit.UsageError(err)
	}
	objs, err := c.objects(c.platform)
	if err != nil {
		return exit.UsageError(err)
	}
	if c.pullSecretFile == "" {
		report.Printf("no --pull-secret: Secret %s/%s is made without credentials, for registries that need none",
			c.namespace, c.name+pullSecretSuffix)
	}
	if rendering {
		c.tellOmitted(objs, report)
		return c.write(cmd.OutOrStdout(), objs)
	}
	if err := c.preflight(ctx, env, objs); err != nil {
		return err
	}
	if err := c.apply(ctx, objs, report); err != nil || !c.wait {
		return err
	}
	return c.waitReady(ctx, report)
}

// preflight runs the quick checks whose failure means that the cluster could not run.
func (c *create) preflight(ctx context.Context, env Environment, objs []client.Object) error {
	if c.skipPreflight {
		return nil
	}
	cl, err := c.connect()
	if err != nil {
		return err
	}
	checks := (&doctor.Management{Client: cl, StorageClass: c.etcdStorageClass, Installed: true}).Essential()
	if platform, checked := c.platform.(Preflighter); checked {
		var hc *hyperv1.HostedCluster
		var pool *hyperv1.NodePool
		for _, obj := range objs {
			switch obj := obj.(type) {
			case *hyperv1.HostedCluster:
				hc = obj
			case *hyperv1.NodePool:
				pool = obj
			}
		}
		checks = append(checks, platform.Preflight(env, hc, pool)...)
	}
	results := doctor.Run(ctx, checks)
	if err := ctx.Err(); err != nil {
		return err
	}
	return doctor.Preflight(results, env.Stderr)
}

func (c *create) check(rendering bool) error {
	if err := c.Options.check(c.platform.Type()); err != nil {
		return err
	}
	switch {
	case c.wait && rendering:
		return fmt.Errorf("--wait needs a cluster to wait for: leave out --render and --render-into")
	case c.wait && c.replicas < 1:
		return fmt.Errorf("--wait waits for nodes: set --node-pool-replicas to 1 or more")
	case c.timeout != 0 && !c.wait:
		return fmt.Errorf("--timeout is how long --wait waits: add --wait")
	default:
		return nil
	}
}

func (c *create) connect() (client.Client, error) {
	if c.client != nil {
		return c.client, nil
	}
	var err error
	c.client, err = c.connection.Client()
	return c.client, err
}

// tellOmitted lists the Secrets that are not rendered: the cluster waits until they exist.
func (c *create) tellOmitted(objs []client.Object, report *progress.Reporter) {
	var omitted []string
	for _, obj := range objs {
		if _, secret := obj.(*corev1.Secret); secret && !c.renderSensitive {
			omitted = append(omitted, obj.GetName())
		}
	}
	if len(omitted) > 0 {
		report.Printf("left out, add --render-sensitive to have them: Secrets %s", strings.Join(omitted, ", "))
	}
}

func (c *create) write(stdout io.Writer, objs []client.Object) error {
	if c.renderInto == "" {
		return objects.Write(stdout, objs, c.renderSensitive)
	}
	err := objects.WriteFile(c.renderInto, func(w io.Writer) error { return objects.Write(w, objs, c.renderSensitive) })
	if err != nil {
		return fmt.Errorf("--render-into: %w", err)
	}
	return nil
}

func (c *create) apply(ctx context.Context, objs []client.Object, report *progress.Reporter) error {
	cl, err := c.connect()
	if err != nil {
		return err
	}
	err = cl.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: c.name}, &hyperv1.HostedCluster{})
	if err == nil {
		return fmt.Errorf("HostedCluster %s/%s exists already; choose another --name, or destroy it first", c.namespace, c.name)
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("look for HostedCluster %s/%s: %w", c.namespace, c.name, err)
	}
	if err := rehearse(ctx, cl, objs); err != nil {
		return err
	}
	for _, obj := range objs {
		if err := createOrApply(ctx, cl, obj); err != nil {
			return err
		}
		report.Printf("%s applied", objects.Describe(obj))
	}
	return nil
}

// rehearse has the server validate cluster and NodePool in a dry run before anything else is created, so that a
// rejected cluster leaves no Secrets behind. Both need their namespace, which may stay.
func rehearse(ctx context.Context, cl client.Client, objs []client.Object) error {
	for _, obj := range objs {
		var err error
		switch obj.(type) {
		case *corev1.Namespace:
			err = createOrApply(ctx, cl, obj.DeepCopyObject().(client.Object))
		case *hyperv1.HostedCluster:
			if err = cl.Create(ctx, obj.DeepCopyObject().(client.Object), client.DryRunAll); err != nil {
				err = fmt.Errorf("create %s: %w", objects.Describe(obj), err)
			}
		case *hyperv1.NodePool:
			err = objects.Apply(ctx, cl, FieldOwner, obj, true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// createOrApply creates the objects that must not exist yet and applies the others. It does not change an existing
// Namespace.
func createOrApply(ctx context.Context, cl client.Client, obj client.Object) error {
	switch obj.(type) {
	case *hyperv1.HostedCluster:
		if err := objects.Create(ctx, cl, obj); err != nil {
			return fmt.Errorf("create %s: %w", objects.Describe(obj), err)
		}
		return nil
	case *corev1.Namespace:
		if err := objects.Create(ctx, cl, obj); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %s: %w", objects.Describe(obj), err)
		}
		return nil
	default:
		return objects.Apply(ctx, cl, FieldOwner, obj, false)
	}
}
