// SPDX-License-Identifier: Apache-2.0

// Command standin replaces the Cluster API providers of AWS, the assisted service and KubeVirt in the Deployment that
// the operator renders for them. There is no cloud behind it: its machines belong to a simulated MAAS. It selects the
// provider to imitate by its arguments.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/openshift/hypershift/test/standin/contract"
	"github.com/openshift/hypershift/test/standin/lab"
)

// lease is the lease duration of the leader election. It suits a two-core machine that runs the complete environment: a
// process that loses the lease exits.
const lease = 2 * time.Minute

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "standin:", err)
		os.Exit(1)
	}
}

// options holds the flags of all three providers. Flags that only one provider has identify the provider.
type options struct {
	namespace, health, metrics, agents, gates string
	elect                                     bool
}

func parse(args []string) (options, error) {
	var o options
	var verbosity int
	flags := pflag.NewFlagSet("standin", pflag.ContinueOnError)
	flags.StringVar(&o.namespace, "namespace", "", "namespace of the machines")
	flags.StringVar(&o.health, "health-probe-bind-address", ":9440", "where the probes are answered")
	flags.StringVar(&o.metrics, "metrics-bind-address", "0", "where metrics are served")
	flags.BoolVar(&o.elect, "leader-elect", false, "work only while holding the lease")
	flags.StringVar(&o.agents, "agent-namespace", "", "namespace of the agents")
	flags.StringVar(&o.gates, "feature-gates", "", "features of the provider of AWS")
	flags.IntVar(&verbosity, "v", 0, "how much is logged")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.namespace == "" {
		return o, errors.New("--namespace is missing: it names the namespace of the machines")
	}
	return o, nil
}

// contract returns the contract that the arguments select. Only the agent provider gets an agent namespace, and only
// the AWS provider gets feature gates.
func (o options) contract() contract.Contract {
	switch {
	case o.agents != "":
		return contract.Agent()
	case o.gates != "":
		return contract.AWS()
	}
	return contract.KubeVirt()
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the management cluster: %w", err)
	}
	mgr, err := newManager(config, o)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newManager(config *rest.Config, o options) (ctrl.Manager, error) {
	played := o.contract()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), clusterv1.AddToScheme(scheme), played.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{o.namespace: {}}},
		LeaderElection: o.elect, LeaderElectionID: "standin", LeaderElectionNamespace: o.namespace, LeaseDuration: ptr.To(lease), RenewDeadline: ptr.To(lease / 2),
		HealthProbeBindAddress: o.health, Metrics: server.Options{BindAddress: o.metrics},
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	return mgr, errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping), addControllers(mgr, played, o.namespace))
}

func addControllers(mgr ctrl.Manager, played contract.Contract, namespace string) error {
	c := mgr.GetClient()
	machines := &contract.Machines{
		Client: c, Contract: played, Infrastructure: &lab.Lab{Reader: c, Namespace: namespace}, Nodes: contract.ByKubeconfig(c), Clock: clock.RealClock{},
	}
	if err := ctrl.NewControllerManagedBy(mgr).For(played.Machine()).Complete(machines); err != nil {
		return fmt.Errorf("adding the controller of machines: %w", err)
	}
	if played.Cluster == nil {
		return nil
	}
	return ctrl.NewControllerManagedBy(mgr).For(played.Cluster()).Complete(&contract.Clusters{Client: c, Contract: played})
}
