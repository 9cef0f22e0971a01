// SPDX-License-Identifier: Apache-2.0

package look

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
)

// CompletionTimeout is the longest time that a completion asks the management cluster.
const CompletionTimeout = 3 * time.Second

// Flags are the flags that the commands about clusters have in common.
type Flags struct {
	Connection kube.Connection
	Namespace  string
	// All selects all namespaces. Only commands with AddAll have the flag.
	All bool
}

// AddFlags adds --namespace, --kubeconfig and --context.
func (f *Flags) AddFlags(flags *pflag.FlagSet) {
	flags.StringVarP(&f.Namespace, "namespace", "n", "clusters", "namespace of the cluster")
	f.Connection.AddFlags(flags)
}

// AddAll adds --all-namespaces.
func (f *Flags) AddAll(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.All, "all-namespaces", "A", false, "all namespaces, instead of --namespace")
}

// Selected returns the namespace to list; empty for all namespaces.
func (f *Flags) Selected() string {
	if f.All {
		return ""
	}
	return f.Namespace
}

// Key returns the namespace and name of an object.
func (f *Flags) Key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: f.Namespace, Name: name}
}

// OneName returns a rule for arguments: one name of an object. example is a complete command line.
func OneName(what, example string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 1 && args[0] != "" {
			return nil
		}
		return exit.UsageError(fmt.Errorf("name one %s, e.g. %s", what, example))
	}
}

// Completion completes the names of live objects.
type Completion = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// CompleteClustersOf completes the names of clusters for a flag of a command that has other flags.
func CompleteClustersOf(connection *kube.Connection, namespace *string) Completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		f := &Flags{Connection: *connection, Namespace: *namespace}
		return f.CompleteClusters(0)(cmd, args, typed)
	}
}

// CompleteClusters completes up to most names of clusters.
func (f *Flags) CompleteClusters(most int) Completion {
	return f.complete(most, func(ctx context.Context, r *Reader) ([]string, error) {
		clusters, err := r.HostedClusters(ctx, f.Selected())
		return names(clusters, func(hc *hyperv1.HostedCluster) string { return hc.Name }), err
	})
}

// CompleteNodePools completes up to most names of NodePools.
func (f *Flags) CompleteNodePools(most int) Completion {
	return f.complete(most, func(ctx context.Context, r *Reader) ([]string, error) {
		pools, err := r.NodePools(ctx, f.Selected(), "")
		return names(pools, func(p *hyperv1.NodePool) string { return p.Name }), err
	})
}

// CompleteMachines completes up to most names of machines.
func (f *Flags) CompleteMachines(most int) Completion {
	return f.complete(most, func(ctx context.Context, r *Reader) ([]string, error) {
		clusters, err := r.HostedClusters(ctx, f.Selected())
		if err != nil {
			return nil, err
		}
		machines, err := r.Machines(ctx, clusters)
		return names(machines, func(m *Machine) string { return m.Name }), err
	})
}

func (f *Flags) complete(most int, list func(context.Context, *Reader) ([]string, error)) Completion {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := f.Connection.Client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
		defer cancel()
		found, err := list(ctx, New(c, nil))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func names[T any](items []T, name func(*T) string) []string {
	var all []string
	for i := range items {
		all = append(all, name(&items[i]))
	}
	return all
}

// CheckAll rejects names together with --all-namespaces.
func (f *Flags) CheckAll(args []string) error {
	if f.All && len(args) > 0 {
		return exit.UsageError(errors.New("--all-namespaces lists everything: leave it out, or leave out the names"))
	}
	return nil
}
