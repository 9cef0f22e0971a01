// SPDX-License-Identifier: Apache-2.0

// Package status holds the command that shows the state of a management cluster on one screen.
package status

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/look"
	"github.com/openshift/hypershift/support/health"
	"github.com/openshift/hypershift/support/skew"
	"github.com/openshift/hypershift/support/terminal"
)

// operatorName is the name of the operator's Deployment.
const operatorName = "operator"

// screen is what the command shows.
type screen struct {
	now      time.Time
	operator operator
	clusters []hyperv1.HostedCluster
	pools    []hyperv1.NodePool
	machines []look.Machine
	denied   string
}

// operator is the installed operator.
type operator struct {
	version     string
	ready, want int32
	// problem says why the operator is not as it should be.
	problem string
}

// NewCommand returns the command `status`.
func NewCommand(hardware []look.HardwareReader) *cobra.Command {
	var connection kube.Connection
	var namespace string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the state of the management cluster on one screen",
		Long: "Show what is not as it should be first, then the operator with its version, the clusters by state, the " +
			"NodePools with their nodes, and the machines by phase.",
		Example: "  hypershift status",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := connection.Client()
			if err != nil {
				return err
			}
			s, err := read(cmd.Context(), c, namespace, hardware)
			if err != nil {
				return err
			}
			return s.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&namespace, "namespace", "hypershift", "namespace of the operator")
	connection.AddFlags(cmd.Flags())
	return cmd
}

func read(ctx context.Context, c client.Client, namespace string, hardware []look.HardwareReader) (*screen, error) {
	s := &screen{now: clock.RealClock{}.Now()}
	reader := look.New(c, hardware)
	var err error
	if s.operator, err = readOperator(ctx, c, namespace); err != nil {
		return nil, err
	}
	if s.clusters, err = reader.HostedClusters(ctx, ""); err != nil {
		return nil, err
	}
	if s.pools, err = reader.NodePools(ctx, "", ""); err != nil {
		return nil, err
	}
	if s.machines, err = reader.Machines(ctx, s.clusters); err != nil {
		return nil, err
	}
	s.denied = reader.Denied()
	return s, nil
}

func readOperator(ctx context.Context, c client.Client, namespace string) (operator, error) {
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: namespace, Name: operatorName}
	switch err := c.Get(ctx, key, deployment); {
	case apierrors.IsNotFound(err):
		problem := fmt.Sprintf("Deployment %s does not exist: run hypershift install, or set --namespace", key)
		return operator{problem: problem}, nil
	case apierrors.IsForbidden(err):
		return operator{problem: fmt.Sprintf("you have no right to read Deployment %s", key)}, nil
	case err != nil:
		return operator{}, fmt.Errorf("read Deployment %s: %w", key, err)
	}
	o := operator{
		version: cmp.Or(deployment.Annotations[skew.Annotation], skew.First),
		ready:   deployment.Status.ReadyReplicas, want: ptr.Deref(deployment.Spec.Replicas, 1),
	}
	switch {
	case o.want == 0:
		o.problem = fmt.Sprintf("Deployment %s has 0 replicas: no operator runs in this cluster", key)
	case o.ready < o.want || deployment.Status.UpdatedReplicas < o.want:
		o.problem = fmt.Sprintf("%d of %d pods are ready and %d have the installed version; see kubectl describe pods -n %s",
			o.ready, o.want, deployment.Status.UpdatedReplicas, namespace)
	default:
		if err := skew.Check(skew.CLI, skew.Version, o.version); err != nil {
			o.problem = err.Error()
		}
	}
	return o, nil
}

// print prints the problems, and then the totals.
func (s *screen) print(out io.Writer) error {
	problems := s.problems()
	for _, p := range problems {
		if err := look.PrintLine(out, "", p...); err != nil {
			return err
		}
	}
	if len(problems) == 0 {
		if err := look.PrintLine(out, "", look.Span{Style: terminal.Good, Text: "All is as it should be."}); err != nil {
			return err
		}
	}
	if err := look.PrintLine(out, ""); err != nil {
		return err
	}
	readiness := "not readable"
	if s.operator.version != "" {
		readiness = fmt.Sprintf("version %s, %d of %d ready", s.operator.version, s.operator.ready, s.operator.want)
	}
	pools := count(s.pools, func(p *hyperv1.NodePool) look.State { return look.StateOfNodePool(p) })
	if len(s.pools) > 0 {
		pools += "; " + look.SumOfNodes(s.pools) + " nodes"
	}
	rows := [][]string{
		{"Operator", readiness},
		{"Clusters", count(s.clusters, func(hc *hyperv1.HostedCluster) look.State { return look.StateOfCluster(hc) })},
		{"NodePools", pools},
		{"Machines", cmp.Or(s.denied, count(s.machines, func(m *look.Machine) look.State { return look.StateOfMachine(m) }))},
	}
	return look.NewTable(out).Print(rows...)
}

// problems lists what is not as it should be: faults first, then changes on their way.
func (s *screen) problems() [][]look.Span {
	var faults, changes [][]look.Span
	add := func(what string, f *health.Finding) {
		if f == nil {
			return
		}
		line := append([]look.Span{{Style: terminal.Bold, Text: what}}, look.FindingSpan(f, s.now)...)
		if f.Progress {
			changes = append(changes, line)
		} else {
			faults = append(faults, line)
		}
	}
	if s.operator.problem != "" {
		problem := look.Span{Style: terminal.Bad, Text: s.operator.problem}
		faults = append(faults, []look.Span{{Style: terminal.Bold, Text: "Operator"}, problem})
	}
	for i := range s.clusters {
		hc := &s.clusters[i]
		add("HostedCluster "+client.ObjectKeyFromObject(hc).String(), look.FindingOfCluster(hc))
	}
	for i := range s.pools {
		p := &s.pools[i]
		add("NodePool "+client.ObjectKeyFromObject(p).String(), look.FindingOfNodePool(p))
	}
	for i := range s.machines {
		m := &s.machines[i]
		add("Machine "+client.ObjectKeyFromObject(m).String(), m.Cause())
	}
	return append(faults, changes...)
}

// count describes how many items are in which state.
func count[T any](items []T, state func(*T) look.State) string {
	states := map[look.State]int{}
	for i := range items {
		states[state(&items[i])]++
	}
	if len(items) == 0 {
		return "none"
	}
	var parts []string
	for _, s := range slices.Sorted(maps.Keys(states)) {
		parts = append(parts, fmt.Sprintf("%d %s", states[s], s))
	}
	return fmt.Sprintf("%d: %s", len(items), strings.Join(parts, ", "))
}
