// SPDX-License-Identifier: Apache-2.0

// Package maas is the plugin of the platform MAAS. Workers are machines that a MAAS region manages.
package maas

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/crds"
	maasapi "github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/managementnetwork"
)

// Options are the operator's flags and environment for all MAAS clusters.
type Options struct {
	// AllowCIDRs and RefuseCIDRs are the flags from which a Guard is created, unless one is set.
	AllowCIDRs, RefuseCIDRs string
	// Namespace is the operator's namespace, which contains the credentials of all clusters; empty means "hypershift".
	Namespace string
	// ProviderImage is the Cluster API provider image of clusters that name none; empty means the in-tree provider.
	ProviderImage string
	// Clock is for tests; nil means the real one.
	Clock clock.Clock
	// Guard decides which addresses the operator may contact for a tenant; nil blocks those at which no MAAS can be.
	Guard *maasapi.Guard
	// Own knows the address of the management cluster's API server, for the provider; nil means that it is unknown.
	Own *managementnetwork.Known
	// WhoAmI gets the user of an API key from a MAAS. Only tests set it; nil queries the MAAS over the network.
	WhoAmI WhoAmI
	// Images lists the images of a MAAS. Only tests set it; nil queries the MAAS over the network.
	Images Images
	// Calls counts the calls to MAAS; nil disables the metrics.
	Calls *maasapi.Metrics
	// LogEnv is the environment that makes the in-tree provider log as the operator does.
	LogEnv []corev1.EnvVar
	// CheckTimeout limits one request to a MAAS; zero means 5 s.
	CheckTimeout time.Duration
}

// Platform implements platform.Platform.
type Platform struct {
	namespace     string
	providerImage string
	guard         *maasapi.Guard
	own           *managementnetwork.Known
	logEnv        []corev1.EnvVar
	checks        *checks[string]
	images        *checks[[]maasapi.BootResource]
}

var _ platform.Platform = &Platform{}

// New returns the plugin.
func New(o Options) *Platform {
	if o.Guard == nil {
		o.Guard = &maasapi.Guard{}
	}
	if o.WhoAmI == nil {
		o.WhoAmI = withClient(o, whoAmI)
	}
	if o.Images == nil {
		o.Images = withClient(o, listImages)
	}
	return &Platform{
		namespace: cmp.Or(o.Namespace, "hypershift"), providerImage: o.ProviderImage, guard: o.Guard, own: o.Own,
		logEnv: o.LogEnv,
		checks: newChecks(o, o.WhoAmI), images: newChecks(o, o.Images),
	}
}

// AddFlags adds the flags for the address ranges of MAAS endpoints.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.AllowCIDRs, "maas-allow-cidrs", "", "ranges that MAAS endpoints of tenants may be in although the address policy refuses them, "+
		"such as a loopback range in a test")
	flags.StringVar(&o.RefuseCIDRs, "maas-refuse-cidrs", "", "ranges that MAAS endpoints of tenants must not be in, such as the pods and Services of the management cluster")
}

// New creates the plugin in the operator's environment.
func (o *Options) New(env platform.Environment) (platform.Platform, error) {
	made := *o
	made.Namespace, made.ProviderImage, made.LogEnv = cmp.Or(o.Namespace, env.Namespace), cmp.Or(o.ProviderImage, env.ProviderImage), env.LogEnv
	if env.Metrics != nil {
		made.Calls = maasapi.NewMetrics(env.Metrics)
	}
	if made.Guard == nil {
		guard, err := maasapi.NewGuard(o.AllowCIDRs, o.RefuseCIDRs)
		if err != nil {
			return nil, fmt.Errorf("--maas-allow-cidrs or --maas-refuse-cidrs: %w", err)
		}
		made.Guard, made.Own = guard, env.Own
		if env.Own != nil {
			guard.Own = env.Own
		}
	}
	return New(made), nil
}

// AddToScheme registers the provider's kinds.
func (*Platform) AddToScheme(scheme *runtime.Scheme) error { return infrav1.AddToScheme(scheme) }

// CRDs returns the provider's CRDs.
func (*Platform) CRDs() []string { return crds.Names(crds.Infrastructure) }

// Underway returns the reasons that the provider reports while MAAS finds and installs a machine.
func (*Platform) Underway() []string {
	return []string{"MachineDeploying", "MachineAllocated", "Allocating"}
}

// ReconcileSecretEncryption does nothing, because MAAS has no key management service.
func (*Platform) ReconcileSecretEncryption(context.Context, client.Client, platform.Cluster) error {
	return nil
}

// Watched returns the provider's kinds.
func (*Platform) Watched() []client.Object {
	return []client.Object{&infrav1.MaasCluster{}, &infrav1.MaasMachine{}, &infrav1.MaasMachineTemplate{}}
}

// spec returns the cluster's MAAS block; an empty one if it is not set.
func spec(hc *hyperv1.HostedCluster) hyperv1.MAASPlatformSpec {
	if hc.Spec.Platform.MAAS == nil {
		return hyperv1.MAASPlatformSpec{}
	}
	return *hc.Spec.Platform.MAAS
}
