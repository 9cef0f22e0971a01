// SPDX-License-Identifier: Apache-2.0

// Package cluster holds the commands that create and destroy hosted clusters.
package cluster

import (
	"context"
	"io"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Platform is what a platform adds to `create cluster`.
type Platform interface {
	// Type is the platform's type; its lower-case form names the command.
	Type() hyperv1.PlatformType
	// AddFlags adds the platform's own flags.
	AddFlags(flags *pflag.FlagSet)
	// Complete checks the flags and reads what they name. It may ask the management cluster.
	Complete(ctx context.Context, env Environment) error
	// Apply writes the platform's part into the HostedCluster.
	Apply(hc *hyperv1.HostedCluster)
	// ApplyNodePool writes the platform's part into the cluster's first NodePool.
	ApplyNodePool(pool *hyperv1.NodePool)
	// Objects returns further objects that the cluster needs, such as Secrets.
	Objects(namespace, name string) []client.Object
}

// Environment is what a platform can learn from.
type Environment struct {
	// Name and Namespace are those of the cluster.
	Name, Namespace string
	// Client connects to the management cluster when it is called for the first time.
	Client func() (client.Client, error)
	// Stdin is where a flag with the value "-" is read from.
	Stdin io.Reader
	// Stderr is where warnings go; nil for nowhere.
	Stderr io.Writer
}
