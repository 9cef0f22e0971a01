// SPDX-License-Identifier: Apache-2.0

// chart writes the Helm chart: go run ./cmd/chart -version v1.2.3 -to dist/chart/hypershift [-- flags of install]
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	version := flag.String("version", "v0.0.0", "version of the chart and of the program")
	to := flag.String("to", "dist/chart/hypershift", "folder of the chart")
	flag.Parse()
	if err := write(*to, *version, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
