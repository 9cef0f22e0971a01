// SPDX-License-Identifier: Apache-2.0

// node-agent makes a machine that runs cloud-init a node of its cluster. It applies the node plan from the
// ignition-server, and installs the kubelet and the container runtime of the release.
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
