// SPDX-License-Identifier: Apache-2.0

// Command node-network is the default network of a guest cluster of the Kubernetes distribution. It runs on every
// node, in the node's own network namespace. The CNI plugins ptp and host-local give pods addresses from spec.podCIDRs
// of their node. Flannel carries traffic between nodes. Without Flannel, each node has a route to the pods of every
// other node through that node's InternalIP, so the nodes must share a layer 2 network. Pod traffic that leaves the
// cluster has the node's source address.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/openshift/hypershift/node-network/agent"
	"github.com/openshift/hypershift/node-network/host"
	"github.com/openshift/hypershift/support/kubeconfig"
)

// pluginSource is the image's folder of the CNI plugins. The folder on the host has the same path.
const pluginSource = "/opt/cni/bin"

// options are the command line flags.
type options struct {
	nodeName, kubeconfig, hostRoot string
	clusterNetworks                []string
	flannel                        bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	o := options{}
	cmd := &cobra.Command{
		Use:           "node-network",
		Short:         "Connect the pods of this node with those of the other nodes",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.nodeName, "node-name", os.Getenv("NODE_NAME"), "name of this node (default $NODE_NAME)")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default: the service account of the pod)")
	flags.StringVar(&o.hostRoot, "host-root", "/host", "where the host's folders /etc/cni/net.d and /opt/cni/bin are mounted")
	flags.BoolVar(&o.flannel, "flannel", false,
		"leave traffic between nodes to Flannel, which runs beside this agent")
	flags.StringArrayVar(&o.clusterNetworks, "cluster-network", nil, "CIDR of the pods of all nodes (repeatable); traffic that leaves it gets the node's address")
	return cmd
}

// cluster returns the configuration for the pod's own cluster, unless a kubeconfig is set.
func (o options) cluster() (*rest.Config, error) {
	if o.kubeconfig == "" {
		return rest.InClusterConfig()
	}
	access, err := kubeconfig.ReadFile(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	return access.Config(kubeconfig.Options{MaxAnswer: -1})
}

func (o options) run(ctx context.Context) error {
	networks, err := o.validate()
	if err != nil {
		return err
	}
	config, err := o.cluster()
	if err != nil {
		return fmt.Errorf("finding the cluster's API: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the cluster's API: %w", err)
	}
	if err := host.InstallPlugins(pluginSource, filepath.Join(o.hostRoot, pluginSource)); err != nil {
		return err
	}
	routes, err := host.NewRoutes()
	if err != nil {
		return err
	}
	a := &agent.Agent{
		NodeName:        o.nodeName,
		ClusterNetworks: networks,
		Config:          host.ConfigFile{Path: filepath.Join(o.hostRoot, "/etc/cni/net.d/10-hypershift.conflist")},
		Routes:          routes,
		Masquerade:      &host.Masquerade{Filter: host.NFTables{}},
		Flannel:         o.flannel,
	}
	klog.InfoS("node network starts", "node", o.nodeName, "clusterNetworks", o.clusterNetworks)
	return a.Run(ctx, client)
}

func (o options) validate() ([]netip.Prefix, error) {
	var errs []error
	if o.nodeName == "" {
		errs = append(errs, errors.New("--node-name is required: set it, or the environment variable NODE_NAME, to the name of this node"))
	}
	if len(o.clusterNetworks) == 0 {
		errs = append(errs, errors.New("--cluster-network is required: give the CIDR of the cluster's pods"))
	}
	var networks []netip.Prefix
	for _, text := range o.clusterNetworks {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--cluster-network %q is not a CIDR such as 10.132.0.0/14: %w", text, err))
			continue
		}
		networks = append(networks, network.Masked())
	}
	return networks, errors.Join(errs...)
}
