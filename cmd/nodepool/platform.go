// SPDX-License-Identifier: Apache-2.0

// Package nodepool holds the commands that create and destroy NodePools.
package nodepool

import (
	"github.com/spf13/pflag"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Platform is what a platform adds to `create nodepool`.
type Platform interface {
	// Type is the platform's type; its lower-case form names the command.
	Type() hyperv1.PlatformType
	// AddFlags adds the platform's own flags.
	AddFlags(flags *pflag.FlagSet)
	// Complete checks the flags.
	Complete() error
	// Apply writes the platform's part into the NodePool.
	Apply(pool *hyperv1.NodePool)
}

// Inheritor is a Platform whose flags may be left out where the cluster says it.
type Inheritor interface {
	// Incomplete tells whether a flag is left out.
	Incomplete() bool
	// Inherit takes what is left out from the cluster. An error is about a flag, and names it.
	Inherit(hc *hyperv1.HostedCluster) error
}
