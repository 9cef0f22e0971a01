// SPDX-License-Identifier: Apache-2.0

// hcp creates and destroys hosted clusters.
package main

import (
	"os"

	"github.com/openshift/hypershift/cmd/root"
)

func main() { os.Exit(root.Main(root.HCP())) }
