// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/openshift/hypershift/hypershift-operator/virtualip"
	"github.com/openshift/hypershift/hypershift-operator/virtualip/host"
	"github.com/openshift/hypershift/support/logging"
	serving "github.com/openshift/hypershift/support/metrics"
	"github.com/openshift/hypershift/support/program"
	"github.com/openshift/hypershift/support/version"
)

// virtualIPLease is the name of the Lease of the virtual IP's holder.
const virtualIPLease = "api-virtual-ip"

// virtualIPFlags are the flags of the virtual-ip command.
type virtualIPFlags struct {
	addresses               []string
	networkInterface        string
	nodeName, namespace     string
	lease                   time.Duration
	healthCheck             string
	metricsAddr, healthAddr string
	log                     logging.Options
}

func newVirtualIPCommand() *cobra.Command {
	f := &virtualIPFlags{}
	cmd := &cobra.Command{
		Use:   "virtual-ip",
		Short: "Hold addresses on this node of the management cluster, if no other node does",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.addresses, "address", nil, "address to hold; all of them are on one node")
	flags.StringVar(&f.networkInterface, "interface", "", "network interface that has them (default: the one in whose network an address is)")
	flags.StringVar(&f.nodeName, "node-name", os.Getenv("NODE_NAME"), "name of this node")
	flags.StringVar(&f.namespace, "namespace", os.Getenv("MY_NAMESPACE"), "namespace of the Lease "+virtualIPLease)
	flags.DurationVar(&f.lease, "lease-duration", virtualip.MinLease, "how long other nodes wait for a holder that does not renew its Lease")
	flags.StringVar(&f.healthCheck, "health-check", "", "URL of a health check on this node; after its first answer, the node holds the addresses only while it succeeds")
	flags.StringVar(&f.metricsAddr, "metrics-addr", ":9466", "address of the metrics endpoint")
	flags.StringVar(&f.healthAddr, "health-probe-addr", "127.0.0.1:9467", "address of /healthz and /readyz")
	f.log.AddFlags(flags)
	return cmd
}

func (f *virtualIPFlags) run(ctx context.Context) error {
	if err := f.log.Install(); err != nil {
		return err
	}
	addresses, err := f.parse()
	if err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the management cluster: %w", err)
	}
	config.UserAgent = "hypershift-virtual-ip/" + version.Commit()
	leases, err := f.leases(config)
	if err != nil {
		return err
	}
	network, err := host.Open(f.networkInterface)
	if err != nil {
		return err
	}
	defer network.Close()
	holder := &virtualip.Holder{
		Addresses: addresses, Network: network, Lease: f.lease, Metrics: virtualip.NewMetrics(), Log: ctrl.Log.WithName("virtual-ip"),
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: virtualIPLease}, Client: leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: f.nodeName},
		},
	}
	if f.healthCheck != "" {
		holder.Checks = append(holder.Checks, virtualip.Answers(f.healthCheck))
	}
	return f.serve(ctx, config, holder)
}

// parse validates the flags and returns the addresses.
func (f *virtualIPFlags) parse() ([]netip.Addr, error) {
	if len(f.addresses) == 0 || f.nodeName == "" || f.namespace == "" {
		return nil, errors.New("--address, --node-name and --namespace are required")
	}
	var addresses []netip.Addr
	for _, text := range f.addresses {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("--address: %w", err)
		}
		addresses = append(addresses, address.Unmap())
	}
	return addresses, nil
}

// leases returns a client that quickly detects an unreachable API server. A request times out after the time between
// two renewals, and the next one uses a new connection, which HTTP/2 would not open.
func (f *virtualIPFlags) leases(config *rest.Config) (coordination.LeasesGetter, error) {
	quick := rest.CopyConfig(config)
	quick.Timeout = f.lease / 6
	quick.NextProtos = []string{"http/1.1"}
	leases, err := coordination.NewForConfig(quick)
	if err != nil {
		return nil, fmt.Errorf("connecting to the management cluster: %w", err)
	}
	return leases, nil
}

func (f *virtualIPFlags) serve(ctx context.Context, config *rest.Config, holder *virtualip.Holder) error {
	for _, collector := range holder.Metrics.Collectors() {
		if err := ctrlmetrics.Registry.Register(collector); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	mgr, err := program.NewManager(program.Management, config, ctrl.Options{
		Scheme: runtime.NewScheme(), Metrics: serving.Serving(f.metricsAddr, config), HealthProbeBindAddress: f.healthAddr,
	})
	if err != nil {
		return fmt.Errorf("setting up the manager: %w", err)
	}
	fit := func(*http.Request) error {
		if !holder.Fit() {
			return errors.New("this node is not eligible for the virtual IP; see the log")
		}
		return nil
	}
	if err := errors.Join(mgr.Add(manager.RunnableFunc(holder.Run)), mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("fit", fit)); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("holding the virtual IP: %w", err)
	}
	return nil
}
