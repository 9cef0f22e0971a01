// SPDX-License-Identifier: Apache-2.0

// Command cluster-api-provider-maas is the Cluster API infrastructure provider for MAAS.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "namespace-proxy" {
		exitOn(namespaceProxy(ctrl.SetupSignalHandler(), os.Args[2:]))
		return
	}
	o := defaultOptions()
	o.addFlags(pflag.CommandLine)
	pflag.Parse()
	exitOn(run(ctrl.SetupSignalHandler(), o))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
