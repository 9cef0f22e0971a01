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
	// Example returns the flags of an example, after --name, --cluster-name and --replicas; empty if none are needed.
	Example() string
	// AddFlags adds the platform's own flags.
	AddFlags(flags *pflag.FlagSet)
	// Complete checks the flags.
	Complete() error
	// Apply writes the platform's part into the NodePool.
	Apply(pool *hyperv1.NodePool)
}

// Inheritor is a Platform whose omitted flags default to values of the HostedCluster.
type Inheritor interface {
	// Incomplete reports whether a flag is omitted.
	Incomplete() bool
	// Inherit sets the omitted flags from the HostedCluster. Its errors name the flag.
	Inherit(hc *hyperv1.HostedCluster) error
}
