// SPDX-License-Identifier: Apache-2.0

// Package cluster holds the commands that create and destroy hosted clusters.
package cluster

import (
	"context"
	"io"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/doctor"
)

// Platform is what a platform adds to `create cluster`.
type Platform interface {
	// Type is the platform's type; its lower-case form names the command.
	Type() hyperv1.PlatformType
	// Example returns the flags of an example, after --name.
	Example() string
	// AddFlags adds the platform's own flags.
	AddFlags(flags *pflag.FlagSet)
	// Complete checks the flags and reads the files that they name. It may call the management cluster.
	Complete(ctx context.Context, env Environment) error
	// Apply writes the platform's part into the HostedCluster.
	Apply(hc *hyperv1.HostedCluster)
	// ApplyNodePool writes the platform's part into the cluster's first NodePool.
	ApplyNodePool(pool *hyperv1.NodePool)
	// Objects returns further objects that the cluster needs, such as Secrets.
	Objects(namespace, name string) []client.Object
}

// Preflighter is a Platform with quick checks of its own, which run before a cluster is created.
type Preflighter interface {
	// Preflight returns the checks for a cluster and its first NodePool, which is nil if there is none. It is called after
	// Complete.
	Preflight(env Environment, hc *hyperv1.HostedCluster, pool *hyperv1.NodePool) []doctor.Check
}

// Environment holds what a platform can use in Complete.
type Environment struct {
	// Name and Namespace are the name and namespace of the cluster.
	Name, Namespace string
	// Client connects to the management cluster on the first call.
	Client func() (client.Client, error)
	// Stdin is the input for flags with the value "-".
	Stdin io.Reader
	// Stderr receives warnings; nil discards them.
	Stderr io.Writer
}
