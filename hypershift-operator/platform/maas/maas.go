// Package maas is the plugin of the platform MAAS: workers are machines that a MAAS region manages.
package maas

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	maasapi "github.com/openshift/hypershift/support/maas"
)

// Options are what the operator's environment says for all MAAS clusters.
type Options struct {
	// Namespace is the operator's own, where the credentials of all clusters are kept; empty means "hypershift".
	Namespace string
	// ProviderImage is the Cluster API provider that clusters get which name none; empty means the in-tree one.
	ProviderImage string
	// Clock is for tests; nil means the real one.
	Clock clock.Clock
	// Guard says which addresses the operator calls for a tenant; nil refuses those at which no MAAS can be.
	Guard *maasapi.Guard
	// WhoAmI asks a MAAS who the user of an API key is; nil means over the network. For tests.
	WhoAmI WhoAmI
	// Calls counts the calls of MAAS; nil counts nothing.
	Calls *maasapi.Metrics
	// LogEnv is the environment that makes the in-tree provider log as the operator does.
	LogEnv []corev1.EnvVar
	// CheckTimeout bounds one question to a MAAS; zero means 5 s.
	CheckTimeout time.Duration
}

// Platform implements platform.Platform.
type Platform struct {
	namespace     string
	providerImage string
	guard         *maasapi.Guard
	logEnv        []corev1.EnvVar
	checks        *checks
}

var _ platform.Platform = &Platform{}

// New returns the plugin.
func New(o Options) *Platform {
	if o.Guard == nil {
		o.Guard = &maasapi.Guard{}
	}
	return &Platform{namespace: firstOf(o.Namespace, "hypershift"), providerImage: o.ProviderImage, guard: o.Guard, logEnv: o.LogEnv, checks: newChecks(o)}
}

// ReconcileSecretEncryption has nothing to bring: MAAS has no key management service.
func (*Platform) ReconcileSecretEncryption(context.Context, client.Client, platform.Cluster) error {
	return nil
}

// Watched are the provider's kinds.
func (*Platform) Watched() []client.Object {
	return []client.Object{&infrav1.MaasCluster{}, &infrav1.MaasMachine{}, &infrav1.MaasMachineTemplate{}}
}

// spec is the cluster's MAAS block; an empty one where the user left it out.
func spec(hc *hyperv1.HostedCluster) hyperv1.MAASPlatformSpec {
	if hc.Spec.Platform.MAAS == nil {
		return hyperv1.MAASPlatformSpec{}
	}
	return *hc.Spec.Platform.MAAS
}
