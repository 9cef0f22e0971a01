// SPDX-License-Identifier: Apache-2.0

package management

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// AtLeast tells whether a management cluster runs a version of Kubernetes, such as "1.35", or a later one.
func AtLeast(config *rest.Config, wanted string) (bool, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return false, fmt.Errorf("making a client of the management cluster: %w", err)
	}
	info, err := client.ServerVersion()
	if err != nil {
		return false, fmt.Errorf("asking the management cluster for its version: %w", err)
	}
	// Vendors write what is theirs where a pre-release has its name, so that what follows the numbers says nothing.
	runs, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return false, fmt.Errorf("reading the version of the management cluster: %w", err)
	}
	least, err := version.ParseGeneric(wanted)
	if err != nil {
		return false, fmt.Errorf("%q is no version of Kubernetes: %w", wanted, err)
	}
	return runs.AtLeast(least), nil
}
