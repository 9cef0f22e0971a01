// SPDX-License-Identifier: Apache-2.0

// node-agent makes a machine that runs cloud-init a node of its cluster: it applies the node plan that the ignition-server has for
// the machine, and brings kubelet and container runtime of the release.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
