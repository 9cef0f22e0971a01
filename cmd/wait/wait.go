// SPDX-License-Identifier: Apache-2.0

// Package wait holds the commands that wait until a cluster or a NodePool has a state.
package wait

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/look"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/health"
)

// Values of --for.
const (
	forAvailable = "available"
	forReady     = "ready"
	forUpdated   = "updated"
	forDeleted   = "deleted"
	forCondition = "condition="
)

// defaultTimeout is long enough for the installation of one machine.
const defaultTimeout = 90 * time.Minute

// wait holds the state of one `wait`.
type wait struct {
	look.Flags
	what    string
	goal    string
	timeout time.Duration
	// checks returns the check for each value of --for except deleted and conditions.
	checks    func(r *look.Reader, key client.ObjectKey) map[string]look.Check
	condition func(r *look.Reader, key client.ObjectKey, t string, status metav1.ConditionStatus) look.Check
	read      func(r *look.Reader, key client.ObjectKey) func(context.Context) (*health.Finding, error)
}

// Commands returns the commands below `wait`.
func Commands() []*cobra.Command { return []*cobra.Command{clusterCommand(), nodePoolCommand()} }

func clusterCommand() *cobra.Command {
	w := &wait{
		what: "HostedCluster",
		checks: func(r *look.Reader, key client.ObjectKey) map[string]look.Check {
			return map[string]look.Check{forAvailable: r.ClusterAvailable(key), forUpdated: r.ClusterUpdated(key)}
		},
		condition: (*look.Reader).ClusterCondition,
		read: func(r *look.Reader, key client.ObjectKey) func(context.Context) (*health.Finding, error) {
			return func(ctx context.Context) (*health.Finding, error) {
				hc, err := r.HostedCluster(ctx, key)
				if err != nil {
					return nil, err
				}
				return look.FindingOfCluster(hc), nil
			}
		},
	}
	cmd := &cobra.Command{
		Use: "cluster NAME", Aliases: []string{"hc", "hostedcluster"},
		Short: "Wait until a cluster has a state",
		Long: "Wait until a cluster has a state: available (its control plane serves), updated (it has completed the " +
			"release in its spec), deleted, or condition=TYPE[=STATUS].",
		Example: "  hypershift wait cluster demo --for available --timeout 30m\n" +
			"  hypershift wait cluster demo --for condition=EtcdBackupSucceeded",
		Args: look.OneName("cluster", "hypershift wait cluster demo --for available"),
	}
	w.complete(cmd, w.CompleteClusters(1), forAvailable, forUpdated, forDeleted)
	return cmd
}

func nodePoolCommand() *cobra.Command {
	w := &wait{
		what: "NodePool",
		checks: func(r *look.Reader, key client.ObjectKey) map[string]look.Check {
			ready := r.NodePoolReady(key)
			return map[string]look.Check{forAvailable: ready, forReady: ready, forUpdated: r.NodePoolUpdated(key)}
		},
		condition: (*look.Reader).NodePoolCondition,
		read: func(r *look.Reader, key client.ObjectKey) func(context.Context) (*health.Finding, error) {
			return func(ctx context.Context) (*health.Finding, error) {
				pool, err := r.NodePool(ctx, key)
				if err != nil {
					return nil, err
				}
				return look.FindingOfNodePool(pool), nil
			}
		},
	}
	cmd := &cobra.Command{
		Use: "nodepool NAME", Aliases: []string{"np"},
		Short: "Wait until a NodePool has a state",
		Long: "Wait until a NodePool has a state. Available and ready mean that it has its nodes; updated, that all of " +
			"them have the release and configuration of its spec. Others are deleted and condition=TYPE[=STATUS].",
		Example: "  hypershift wait nodepool demo --for updated --timeout 2h\n" +
			"  hypershift wait nodepool demo --for condition=UpdatingConfig=False",
		Args: look.OneName("NodePool", "hypershift wait nodepool demo --for ready"),
	}
	w.complete(cmd, w.CompleteNodePools(1), forAvailable, forReady, forUpdated, forDeleted)
	return cmd
}

// complete adds what both commands have.
func (w *wait) complete(cmd *cobra.Command, names look.Completion, goals ...string) {
	flags := cmd.Flags()
	w.AddFlags(flags)
	flags.StringVar(&w.goal, "for", forAvailable, strings.Join(goals, ", ")+" or "+forCondition+"TYPE[=STATUS]")
	flags.DurationVar(&w.timeout, "timeout", defaultTimeout, "longest wait; 0 waits indefinitely")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(
		append(slices.Clone(goals), forCondition), cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp))
	cmd.ValidArgsFunction = names
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return w.run(cmd, args[0], goals) }
}

func (w *wait) run(cmd *cobra.Command, name string, goals []string) error {
	t, status, err := w.parse(goals)
	if err != nil {
		return exit.UsageError(err)
	}
	c, err := w.Connection.Client()
	if err != nil {
		return err
	}
	r, key := look.New(c, nil), w.Key(name)
	what := w.what + " " + key.String()
	check := w.checks(r, key)[w.goal]
	switch {
	case t != "":
		check = w.condition(r, key, t, status)
	case w.goal == forDeleted:
		check = look.Gone(what, w.read(r, key))
	}
	return look.Await(cmd.Context(), progress.New(cmd.ErrOrStderr(), clock.RealClock{}), what, w.timeout, check)
}

// parse checks --for. It returns the condition that it names; empty if it names none.
func (w *wait) parse(goals []string) (t string, status metav1.ConditionStatus, err error) {
	text, ok := strings.CutPrefix(w.goal, forCondition)
	if !ok {
		if !slices.Contains(goals, w.goal) {
			return "", "", fmt.Errorf("--for %q: use %s or %sTYPE[=STATUS]", w.goal, strings.Join(goals, ", "), forCondition)
		}
		return "", "", nil
	}
	t, value, given := strings.Cut(text, "=")
	if t == "" {
		return "", "", errors.New("--for condition= needs the type of a condition, such as condition=Available")
	}
	if !given {
		return t, metav1.ConditionTrue, nil
	}
	for _, known := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
		if strings.EqualFold(value, string(known)) {
			return t, known, nil
		}
	}
	return "", "", fmt.Errorf("--for condition=%s=%s: the status is True, False or Unknown", t, value)
}
