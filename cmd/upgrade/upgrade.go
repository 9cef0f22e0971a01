// SPDX-License-Identifier: Apache-2.0

// Package upgrade holds the commands that change the release of a cluster or a NodePool.
package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/look"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/cmd/release"
	"github.com/openshift/hypershift/support/imageregistry"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// upgrade holds the state of one `upgrade`.
type upgrade struct {
	look.Flags
	registry release.Registry
	image    string
	planOnly bool
	wait     bool
	timeout  time.Duration

	client client.Client
	reader *look.Reader
}

// step is what one upgrade changes.
type step struct {
	what string
	plan *plan
	// apply writes the release image.
	apply func(ctx context.Context) error
	// done checks whether the upgrade is completed, and follow is the command that waits for it.
	done   look.Check
	follow string
}

// Commands returns the commands below `upgrade`.
func Commands() []*cobra.Command { return []*cobra.Command{clusterCommand(), nodePoolCommand()} }

func clusterCommand() *cobra.Command {
	u := &upgrade{}
	cmd := &cobra.Command{
		Use: "cluster NAME", Aliases: []string{"hc", "hostedcluster"},
		Short: "Change the release of a cluster's control plane",
		Long: "Change the release of a cluster. Its control plane is upgraded; the NodePools keep their release until " +
			"you upgrade them. With --plan the command prints what the upgrade replaces, and which NodePools would be too " +
			"old, and changes nothing.",
		Example: "  hypershift upgrade cluster demo --release-image registry.example.com/release:1.36.3 --plan\n" +
			"  hypershift upgrade cluster demo --release-image registry.example.com/release:1.36.3 --wait",
		Args: look.OneName("cluster", "hypershift upgrade cluster demo --release-image "+
			"registry.example.com/release:1.36.3"),
		ValidArgsFunction: u.CompleteClusters(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if u.image == "" {
				return exit.UsageError(errors.New("--release-image is required"))
			}
			return u.run(cmd, func(ctx context.Context) (*step, error) { return u.cluster(ctx, args[0]) })
		},
	}
	u.addFlags(cmd, "release payload of the control plane (required)")
	return cmd
}

func nodePoolCommand() *cobra.Command {
	u := &upgrade{}
	cmd := &cobra.Command{
		Use: "nodepool NAME", Aliases: []string{"np"},
		Short: "Change the release of a NodePool's nodes",
		Long: "Change the release of a NodePool. Its machines are replaced or updated in place, as its upgrade type " +
			"says. With --plan the command prints which machines, and changes nothing.",
		Example: "  # To the release of its cluster\n  hypershift upgrade nodepool demo --plan\n" +
			"  hypershift upgrade nodepool demo --wait",
		Args:              look.OneName("NodePool", "hypershift upgrade nodepool demo --plan"),
		ValidArgsFunction: u.CompleteNodePools(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return u.run(cmd, func(ctx context.Context) (*step, error) { return u.nodePool(ctx, args[0]) })
		},
	}
	u.addFlags(cmd, "release payload of the nodes (default: the cluster's)")
	return cmd
}

func (u *upgrade) addFlags(cmd *cobra.Command, image string) {
	flags := cmd.Flags()
	u.Flags.AddFlags(flags)
	u.registry.AddFlags(flags)
	flags.StringVar(&u.image, "release-image", "", image)
	flags.BoolVar(&u.planOnly, "plan", false, "print what would be replaced and why, and change nothing")
	flags.BoolVar(&u.wait, "wait", false, "wait until the upgrade is completed")
	flags.DurationVar(&u.timeout, "timeout", 0, "longest time that --wait waits (default: no limit)")
}

func (u *upgrade) check() error {
	switch {
	case u.planOnly && u.wait:
		return errors.New("--plan changes nothing, so that --wait would not end: set one of them")
	case u.timeout != 0 && !u.wait:
		return errors.New("--timeout is how long --wait waits: add --wait, or leave it out")
	case u.image == "":
		return nil
	}
	if _, err := imageregistry.Parse(u.image); err != nil {
		return fmt.Errorf("--release-image: %w", err)
	}
	return nil
}

func (u *upgrade) run(cmd *cobra.Command, prepare func(context.Context) (*step, error)) error {
	if err := u.check(); err != nil {
		return exit.UsageError(err)
	}
	var err error
	if u.client, err = u.Connection.Client(); err != nil {
		return err
	}
	u.reader = look.New(u.client, nil)
	s, err := prepare(cmd.Context())
	if err != nil {
		return err
	}
	if u.planOnly {
		return s.plan.print(cmd.OutOrStdout())
	}
	return u.execute(cmd.Context(), s, cmd.ErrOrStderr())
}

func (u *upgrade) execute(ctx context.Context, s *step, stderr io.Writer) error {
	report := progress.New(stderr, clock.RealClock{})
	if s.plan.blocked != nil {
		return fmt.Errorf("%s is not changed: %w; --plan shows more", s.what, s.plan.blocked)
	}
	for _, warning := range s.plan.warnings {
		report.Printf("Warning: %s", warning)
	}
	if s.plan.same {
		report.Printf("%s has release %s already", s.what, s.plan.image)
	} else {
		if err := s.apply(ctx); err != nil {
			return err
		}
		report.Printf("%s changes to release %s", s.what, s.plan.image)
	}
	if !u.wait {
		report.Printf("next: %s", s.follow)
		return nil
	}
	return look.Await(ctx, report, "the upgrade of "+s.what, u.timeout, s.done)
}

// lookup reads the release. The credentials are those of the cluster's pull secret, if the user may read it.
func (u *upgrade) lookup(
	ctx context.Context, hc *hyperv1.HostedCluster, image string,
) (*releaseinfo.ReleaseImage, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: hc.Namespace, Name: hc.Spec.PullSecret.Name}
	if err := u.client.Get(ctx, key, secret); err != nil {
		secret.Data = nil
	}
	return u.registry.Lookup(ctx, image, secret.Data[corev1.DockerConfigJsonKey])
}

func (u *upgrade) cluster(ctx context.Context, name string) (*step, error) {
	key := u.Key(name)
	hc, err := u.reader.HostedCluster(ctx, key)
	if err != nil {
		return nil, err
	}
	if !hc.DeletionTimestamp.IsZero() {
		return nil, fmt.Errorf("HostedCluster %s is being deleted and cannot be upgraded", key)
	}
	pools, err := u.reader.NodePools(ctx, u.Namespace, name)
	if err != nil {
		return nil, err
	}
	target, err := u.lookup(ctx, hc, u.image)
	apply := func(ctx context.Context) error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			current, err := u.reader.HostedCluster(ctx, key)
			if err != nil {
				return err
			}
			patch := client.MergeFromWithOptions(current.DeepCopy(), client.MergeFromWithOptimisticLock{})
			current.Spec.Release.Image = u.image
			if err := u.client.Patch(ctx, current, patch); err != nil {
				return fmt.Errorf("change the release of HostedCluster %s: %w", key, err)
			}
			return nil
		})
	}
	return &step{
		what: "HostedCluster " + key.String(), plan: planCluster(hc, pools, u.image, target, err), apply: apply,
		done:   u.reader.ClusterUpdated(key),
		follow: fmt.Sprintf("hypershift wait cluster %s -n %s --for updated", name, u.Namespace),
	}, nil
}

func (u *upgrade) nodePool(ctx context.Context, name string) (*step, error) {
	key := u.Key(name)
	pool, err := u.reader.NodePool(ctx, key)
	if err != nil {
		return nil, err
	}
	if !pool.DeletionTimestamp.IsZero() {
		return nil, fmt.Errorf("NodePool %s is being deleted and cannot be upgraded", key)
	}
	hc, err := u.reader.HostedCluster(ctx, u.Key(pool.Spec.ClusterName))
	if err != nil {
		return nil, fmt.Errorf("the cluster of NodePool %s: %w", key, err)
	}
	image := u.image
	if image == "" {
		image = hc.Spec.Release.Image
	}
	target, err := u.lookup(ctx, hc, image)
	apply := func(ctx context.Context) error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			current, err := u.reader.NodePool(ctx, key)
			if err != nil {
				return err
			}
			patch := client.MergeFromWithOptions(current.DeepCopy(), client.MergeFromWithOptimisticLock{})
			current.Spec.Release.Image = image
			if err := u.client.Patch(ctx, current, patch); err != nil {
				return fmt.Errorf("change the release of NodePool %s: %w", key, err)
			}
			return nil
		})
	}
	return &step{
		what: "NodePool " + key.String(), plan: planNodePool(pool, hc, image, target, err), apply: apply,
		done:   u.reader.NodePoolUpdated(key),
		follow: fmt.Sprintf("hypershift wait nodepool %s -n %s --for updated", name, u.Namespace),
	}, nil
}
