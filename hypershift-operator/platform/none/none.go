// SPDX-License-Identifier: Apache-2.0

// Package none is the plugin of the platform None. The user provides machines and installs them with the user-data that
// the operator writes.
package none

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/condition"
)

// Options implements platform.Options without flags.
type Options struct{}

// AddFlags adds no flags.
func (Options) AddFlags(*pflag.FlagSet) {}

// New returns the plugin.
func (Options) New(platform.Environment) (platform.Platform, error) { return Platform{}, nil }

// Platform implements platform.Platform with nothing to do.
type Platform struct{}

var _ platform.Platform = Platform{}

// AddToScheme registers no kinds.
func (Platform) AddToScheme(*runtime.Scheme) error { return nil }

// CRDs returns nil.
func (Platform) CRDs() []string { return nil }

// Underway returns nil, because there are no machines.
func (Platform) Underway() []string { return nil }

// ValidateHostedCluster accepts every cluster.
func (Platform) ValidateHostedCluster(*hyperv1.HostedCluster) error { return nil }

// InfraCluster returns nil, because the platform does not use Cluster API.
func (Platform) InfraCluster(platform.Cluster) *platform.Object { return nil }

// ReconcileCredentials reports that no credentials are needed.
func (Platform) ReconcileCredentials(context.Context, client.Client, platform.Cluster) (platform.Credentials, error) {
	return platform.Credentials{Condition: condition.True(string(hyperv1.PlatformCredentialsFound),
		hyperv1.AsExpectedReason, "The platform None needs no credentials")}, nil
}

// CredentialsSecret returns an empty name.
func (Platform) CredentialsSecret(*hyperv1.HostedCluster) string { return "" }

// DeleteCredentials has nothing to delete.
func (Platform) DeleteCredentials(context.Context, client.Client, platform.Cluster) error { return nil }

// Provider returns nil.
func (Platform) Provider(platform.Cluster) *component.Component { return nil }

// ReconcileSecretEncryption does nothing.
func (Platform) ReconcileSecretEncryption(context.Context, client.Client, platform.Cluster) error {
	return nil
}

// OrphanedMachines reports nothing.
func (Platform) OrphanedMachines(context.Context, client.Client, platform.Cluster) (string, error) {
	return "", nil
}

// ValidateNodePool accepts every pool.
func (Platform) ValidateNodePool(platform.Pool) error { return nil }

// MachineTemplate returns nil, because the operator creates no machines.
func (Platform) MachineTemplate(platform.Pool) client.Object { return nil }

// RollingTemplate returns the template itself.
func (Platform) RollingTemplate(template client.Object) client.Object { return template }

// MachineCapacity returns the zero value, because the capacity is unknown.
func (Platform) MachineCapacity(client.Object) platform.MachineCapacity {
	return platform.MachineCapacity{}
}

// AdjustMachine does nothing.
func (Platform) AdjustMachine(platform.Pool, client.Object) {}

// MachineTemplates returns nil.
func (Platform) MachineTemplates() client.ObjectList { return nil }

// UserDataFormat returns Ignition, the format of the images that users install on their own machines.
func (Platform) UserDataFormat(context.Context, client.Reader, platform.Pool, bool) (platform.UserData, error) {
	return platform.UserData{Format: hyperv1.UserDataIgnition}, nil
}

// CustomizeIgnition adds nothing.
func (Platform) CustomizeIgnition(platform.Pool, *ignition.Config) {}

// MachineProblem reports nothing.
func (Platform) MachineProblem(client.Object) (reason, message string) { return "", "" }

// MachineStart returns the zero value.
func (Platform) MachineStart(client.Object) platform.MachineStart { return platform.MachineStart{} }

// NodeStartup returns zero, so that the traits apply.
func (Platform) NodeStartup(platform.Pool) time.Duration { return 0 }

// Machines returns nil.
func (Platform) Machines() client.ObjectList { return nil }

// Watched returns nil.
func (Platform) Watched() []client.Object { return nil }
