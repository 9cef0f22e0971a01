// SPDX-License-Identifier: Apache-2.0

package management

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// AtLeast reports whether a management cluster runs a Kubernetes version such as "1.35", or a later one.
func AtLeast(config *rest.Config, wanted string) (bool, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return false, fmt.Errorf("making a client of the management cluster: %w", err)
	}
	info, err := client.ServerVersion()
	if err != nil {
		return false, fmt.Errorf("asking the management cluster for its version: %w", err)
	}
	// Ignore what follows the numbers: vendors write their own suffix at the place of a pre-release.
	runs, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return false, fmt.Errorf("reading the version of the management cluster: %w", err)
	}
	least, err := version.ParseGeneric(wanted)
	if err != nil {
		return false, fmt.Errorf("%q is not a Kubernetes version: %w", wanted, err)
	}
	return runs.AtLeast(least), nil
}
