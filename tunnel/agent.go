// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/openshift/hypershift/tunnel/agent"
	"github.com/openshift/hypershift/tunnel/frame"
)

// agentOptions are the flags of "tunnel agent".
type agentOptions struct {
	addresses, clusterNetworks []string
	serverName                 string
	files                      frame.Files
	grace                      time.Duration
	// ready is the file that exists while the agent is connected.
	ready string
}

func newAgent() *cobra.Command {
	o := agentOptions{}
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Connect this node's cluster network with the API servers",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.addresses, "address", nil, "host:port at which the servers are published (repeatable)")
	flags.StringArrayVar(&o.clusterNetworks, "cluster-network", nil, "CIDR of the pods or Services of all nodes (repeatable)")
	flags.StringVar(&o.serverName, "server-name", "", "name in the certificate of the servers")
	flags.StringVar(&o.files.Certificate, "certificate", "", "file of the node's certificate and private key")
	flags.StringVar(&o.files.Authorities, "certificate-authority", "", "file of the authorities of the servers' certificates")
	flags.StringVar(&o.ready, "ready-file", "", "file that exists while the agent is connected; empty for none")
	flags.DurationVar(&o.grace, "grace", 20*time.Second, "how long open connections may go on after a termination signal")
	return cmd
}

func (o agentOptions) run(ctx context.Context) error {
	networks, err := o.validate()
	if err != nil {
		return err
	}
	o.files.Key = o.files.Certificate
	a := agent.New(agent.Config{
		Addresses: o.addresses,
		TLS:       func() (*tls.Config, error) { return o.files.Client(o.serverName) },
		Networks:  agent.NodeNetworks(networks), ClusterNetworks: networks,
		Grace: o.grace,
		Log:   klog.Background(),
	})
	if o.ready != "" {
		go o.reportReady(ctx, a)
	}
	return a.Run(ctx)
}

// reportReady creates and removes the file that "tunnel ready" looks for.
func (o agentOptions) reportReady(ctx context.Context, a *agent.Agent) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		var err error
		if len(a.Servers()) > 0 {
			err = os.WriteFile(o.ready, nil, 0o600)
		} else if err = os.Remove(o.ready); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil {
			klog.ErrorS(err, "cannot report whether the agent is connected")
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func newReady() *cobra.Command {
	return &cobra.Command{
		Use:   "ready FILE",
		Short: "Fail unless the agent of this node is connected",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if _, err := os.Stat(args[0]); err != nil {
				return fmt.Errorf("the agent is not connected to an API server: %w", err)
			}
			return nil
		},
	}
}

func (o agentOptions) validate() ([]netip.Prefix, error) {
	networks, err := parseNetworks(o.clusterNetworks)
	failures := []error{err, required(map[string]string{
		"server-name": o.serverName, "certificate": o.files.Certificate, "certificate-authority": o.files.Authorities,
	})}
	for _, address := range o.addresses {
		if _, _, err := net.SplitHostPort(address); err != nil {
			failures = append(failures, fmt.Errorf("--address %q is not a host with a port: %w", address, err))
		}
	}
	if len(o.addresses) == 0 {
		failures = append(failures, errors.New("--address is required: give the host:port at which the servers are published"))
	}
	return networks, errors.Join(failures...)
}
