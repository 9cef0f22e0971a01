// SPDX-License-Identifier: Apache-2.0

// Command tunnel connects an API server with the cluster network of its nodes. "tunnel server" runs beside the API
// server, and "tunnel agent" on each node.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "tunnel",
		Short:         "Connect an API server with the cluster network of its nodes",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newServer(), newAgent(), newReady())
	return root
}

// required returns an error for each flag without a value.
func required(flags map[string]string) error {
	var failures []error
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if flags[name] == "" {
			failures = append(failures, fmt.Errorf("--%s is required", name))
		}
	}
	return errors.Join(failures...)
}

// parseNetworks parses the values of --cluster-network.
func parseNetworks(texts []string) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	var failures []error
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			failures = append(failures, fmt.Errorf("--cluster-network %q is not a CIDR such as 10.132.0.0/14: %w", text, err))
			continue
		}
		networks = append(networks, network.Masked())
	}
	if len(texts) == 0 {
		failures = append(failures, errors.New("--cluster-network is required: give the CIDRs of the cluster's pods and Services"))
	}
	return networks, errors.Join(failures...)
}
