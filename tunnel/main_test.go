// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// run starts the program with a command line, and returns its end.
func run(ctx context.Context, line ...string) <-chan error {
	root := command()
	root.SetArgs(line)
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	return ended
}

func TestRefused(t *testing.T) {
	for line, want := range map[string]string{
		"server":                                                           "--cluster-network is required",
		"server --cluster-network=10.0.0.0/33":                             `"10.0.0.0/33" is not a CIDR`,
		"server --cluster-network=10.0.0.0/8":                              "--client-authority is required",
		"agent --cluster-network=10.0.0.0/8":                               "--address is required",
		"agent --cluster-network=10.0.0.0/8 --address=a":                   `--address "a" is not a host with a port`,
		"agent --cluster-network=10.0.0.0/8 --address=a:1 --server-name=a": "--certificate is required",
		"ready /nowhere/connected":                                         "not connected to an API server",
		"server --cluster-network=10.0.0.0/8 --id=a --socket=/nowhere/sock --certificate=c --key=k --client-authority=a": "listening for",
	} {
		t.Run(line, func(t *testing.T) {
			ended := run(t.Context(), strings.Fields(line)...)
			NewWithT(t).Expect(<-ended).To(MatchError(ContainSubstring(want)))
		})
	}
}
