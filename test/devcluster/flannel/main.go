// SPDX-License-Identifier: Apache-2.0

// Command flanneld is Flannel with the VXLAN backend only. The cloud providers' backends of the stock build need SDKs
// that the environment does not use.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/flannel-io/flannel/pkg/backend"
	_ "github.com/flannel-io/flannel/pkg/backend/vxlan"
	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/ipmatch"
	"github.com/flannel-io/flannel/pkg/subnet"
	"github.com/flannel-io/flannel/pkg/subnet/kube"
	"github.com/flannel-io/flannel/pkg/trafficmngr/iptables"
)

// forwardResync is the interval, in seconds, in which the forward rules are restored.
const forwardResync = 5

// options are the flags, with the names of the stock program.
type options struct {
	kubeManager                                              bool
	iface, publicIPv6, subnetFile, netConfigPath, kubeconfig string
}

func main() {
	o := options{}
	flag.BoolVar(&o.kubeManager, "kube-subnet-mgr", false, "read subnets from Nodes; required")
	flag.StringVar(&o.iface, "iface", "", "address of the interface between nodes")
	flag.StringVar(&o.publicIPv6, "public-ipv6", "", "IPv6 address by which other nodes reach this node")
	flag.StringVar(&o.subnetFile, "subnet-file", "/run/flannel/subnet.env", "file for the settings of this node")
	flag.StringVar(&o.netConfigPath, "net-config-path", "/etc/kube-flannel/net-conf.json",
		"file with the network configuration")
	flag.StringVar(&o.kubeconfig, "kubeconfig-file", "",
		"kubeconfig of the cluster; empty uses the service account of the pod")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if !o.kubeManager {
		fmt.Fprintln(os.Stderr, "--kube-subnet-mgr is required")
		os.Exit(2)
	}
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) error {
	manager, err := kube.NewSubnetManager(ctx, "", o.kubeconfig, "flannel.alpha.coreos.com", o.netConfigPath, true)
	if err != nil {
		return fmt.Errorf("starting the subnet manager: %w", err)
	}
	config, err := manager.GetNetworkConfig(ctx)
	if err != nil {
		return fmt.Errorf("reading the network configuration: %w", err)
	}
	var running sync.WaitGroup
	network, err := o.register(ctx, &running, manager, config)
	if err != nil {
		return err
	}
	rules := &iptables.IPTablesManager{}
	if err := rules.Init(ctx); err != nil {
		return fmt.Errorf("preparing the forward rules: %w", err)
	}
	rules.SetupAndEnsureForwardRules(ctx, config.Network, config.IPv6Network, forwardResync)
	lease := network.Lease()
	var own ip.IP4Net
	var own6 ip.IP6Net
	if config.EnableIPv4 {
		own = lease.Subnet
	}
	if config.EnableIPv6 {
		own6 = lease.IPv6Subnet
	}
	if err := manager.HandleSubnetFile(o.subnetFile, config, false, own, own6, network.MTU()); err != nil {
		return fmt.Errorf("writing %s: %w", o.subnetFile, err)
	}
	running.Go(func() { network.Run(ctx) })
	if err := manager.CompleteLease(ctx, lease, &running); err != nil && ctx.Err() == nil {
		return fmt.Errorf("completing the lease: %w", err)
	}
	running.Wait()
	return nil
}

func (o options) register(
	ctx context.Context, running *sync.WaitGroup, manager subnet.Manager, config *subnet.Config,
) (backend.Network, error) {
	family, err := ipmatch.GetIPFamily(config.EnableIPv4, config.EnableIPv6)
	if err != nil {
		return nil, fmt.Errorf("reading the IP families: %w", err)
	}
	external, err := ipmatch.LookupExtIface(o.iface, "", "", family, ipmatch.PublicIPOpts{PublicIPv6: o.publicIPv6})
	if err != nil {
		return nil, fmt.Errorf("finding the interface of %s: %w", o.iface, err)
	}
	kind, err := backend.NewManager(ctx, manager, external).GetBackend(config.BackendType)
	if err != nil {
		return nil, fmt.Errorf("starting backend %s: %w", config.BackendType, err)
	}
	return kind.RegisterNetwork(ctx, running, config)
}
