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
	o := defaultOptions()
	o.addFlags(pflag.CommandLine)
	pflag.Parse()
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
