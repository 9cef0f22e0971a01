// SPDX-License-Identifier: Apache-2.0

// Package scale holds the command that changes the number of nodes of a NodePool.
package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/look"
	"github.com/openshift/hypershift/cmd/progress"
)

// scale holds the state of one `scale nodepool`.
type scale struct {
	look.Flags
	replicas int32
	wait     bool
	timeout  time.Duration
}

// NewCommand returns the command `scale nodepool NAME`.
func NewCommand() *cobra.Command {
	s := &scale{}
	cmd := &cobra.Command{
		Use: "nodepool NAME", Aliases: []string{"np"},
		Short: "Change the number of nodes of a NodePool",
		Long: "Change the number of nodes of a NodePool. A NodePool that the autoscaler scales is refused: change its " +
			"bounds instead. Machines that are removed are drained and released.",
		Example: "  hypershift scale nodepool demo --replicas 5\n" +
			"  # Wait until the nodes are ready\n  hypershift scale nodepool demo --replicas 5 --wait --timeout 2h",
		Args:              look.OneName("NodePool", "hypershift scale nodepool demo --replicas 3"),
		RunE:              s.run,
		ValidArgsFunction: s.CompleteNodePools(1),
	}
	flags := cmd.Flags()
	s.AddFlags(flags)
	flags.Int32Var(&s.replicas, "replicas", 0, "number of nodes (required)")
	flags.BoolVar(&s.wait, "wait", false, "wait until the NodePool has this number of nodes")
	flags.DurationVar(&s.timeout, "timeout", 0, "longest time that --wait waits (default: no limit)")
	return cmd
}

func (s *scale) run(cmd *cobra.Command, args []string) error {
	switch {
	case !cmd.Flags().Changed("replicas"):
		return exit.UsageError(errors.New("--replicas is required"))
	case s.replicas < 0:
		return exit.UsageError(fmt.Errorf("--replicas %d: use 0 or more", s.replicas))
	case s.timeout != 0 && !s.wait:
		return exit.UsageError(errors.New("--timeout is how long --wait waits: add --wait, or leave it out"))
	}
	c, err := s.Connection.Client()
	if err != nil {
		return err
	}
	key, report := s.Key(args[0]), progress.New(cmd.ErrOrStderr(), clock.RealClock{})
	before, err := s.set(cmd.Context(), c, key)
	if err != nil {
		return err
	}
	if before == s.replicas {
		report.Printf("NodePool %s has %d replicas already", key, s.replicas)
	} else {
		report.Printf("NodePool %s is scaled from %d to %d replicas", key, before, s.replicas)
	}
	if !s.wait {
		return nil
	}
	return look.Await(cmd.Context(), report, "NodePool "+key.String(), s.timeout, look.New(c, nil).NodePoolReady(key))
}

// set sets the number of replicas, and returns the previous one. It repeats the change after a conflict: the pool may
// have become autoscaled.
func (s *scale) set(ctx context.Context, c client.Client, key client.ObjectKey) (before int32, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		pool, err := look.New(c, nil).NodePool(ctx, key)
		if err != nil {
			return err
		}
		if err := s.refuse(pool); err != nil {
			return err
		}
		before = ptr.Deref(pool.Spec.Replicas, 0)
		if pool.Spec.Replicas != nil && before == s.replicas {
			return nil
		}
		patch := client.MergeFromWithOptions(pool.DeepCopy(), client.MergeFromWithOptimisticLock{})
		pool.Spec.Replicas = ptr.To(s.replicas)
		if err := c.Patch(ctx, pool, patch); err != nil {
			return fmt.Errorf("scale NodePool %s: %w", key, err)
		}
		return nil
	})
	return before, err
}

// refuse returns an error for a pool whose number of nodes the user does not choose.
func (s *scale) refuse(pool *hyperv1.NodePool) error {
	key := client.ObjectKeyFromObject(pool)
	if !pool.DeletionTimestamp.IsZero() {
		return fmt.Errorf("NodePool %s is being deleted and cannot be scaled", key)
	}
	if pool.Spec.AutoScaling == nil {
		return nil
	}
	patch := func(spec string, args ...any) string {
		return fmt.Sprintf("kubectl patch nodepool -n %s %s --type merge -p '{\"spec\":%s}'",
			pool.Namespace, pool.Name, fmt.Sprintf(spec, args...))
	}
	most := max(s.replicas, pool.Spec.AutoScaling.Max)
	return fmt.Errorf("NodePool %s is autoscaled between %s nodes, so --replicas has no effect; change the bounds: %s; "+
		"or end the autoscaling: %s", key, look.Autoscaled(pool),
		patch(`{"autoScaling":{"min":%d,"max":%d}}`, s.replicas, most),
		patch(`{"autoScaling":null,"replicas":%d}`, s.replicas))
}
