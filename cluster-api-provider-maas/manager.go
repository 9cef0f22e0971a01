// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/cluster"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/guest"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/identity"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machinetemplate"
	providermetrics "github.com/openshift/hypershift/cluster-api-provider-maas/metrics"
	"github.com/openshift/hypershift/support/maas"
	serving "github.com/openshift/hypershift/support/metrics"
	"github.com/openshift/hypershift/support/program"
)

// leaderElectionID is the ID of upstream CAPMAAS, so that both providers never run at the same time in one namespace.
const leaderElectionID = "controller-leader-election-capmaas"

// newScheme returns a scheme with the kinds that the provider reads and writes.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// run starts the manager and returns when the context ends.
func run(ctx context.Context, o *options) error {
	if err := o.log.Install(); err != nil {
		return err
	}
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the management cluster: %w", err)
	}
	cfg.QPS, cfg.Burst = o.kubeAPIQPS, o.kubeAPIBurst
	mgr, err := newManager(ctx, cfg, o, maas.NewMetrics(metrics.Registry))
	if err != nil {
		return err
	}
	if o.webhookPort != 0 || o.featureGates != "" {
		mgr.GetLogger().Info("The flags --webhook-port and --feature-gates have no effect: this provider has neither")
	}
	if err := metrics.Registry.Register(providermetrics.New(mgr.GetClient(), clock.RealClock{})); err != nil {
		return fmt.Errorf("registering the provider's metrics: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

func newManager(ctx context.Context, cfg *rest.Config, o *options, m *maas.Metrics) (ctrl.Manager, error) {
	mgr, err := program.NewManager(program.Management, cfg, managerOptions(o, cfg))
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return nil, fmt.Errorf("adding the health checks: %w", err)
	}
	guard, err := tenantGuard()
	if err != nil {
		return nil, err
	}
	identities := identity.NewResolver(identity.Options{
		Reader:      mgr.GetAPIReader(),
		Secret:      o.secret(),
		Environment: environment(),
		Template:    maas.Config{Metrics: m, UserAgent: "cluster-api-provider-maas", Guard: guard},
		Clock:       clock.RealClock{},
	})
	return mgr, addControllers(ctx, mgr, o, identities)
}

// tenantGuard returns the address policy of the operator for endpoints that tenants choose; nil without an operator.
func tenantGuard() (*maas.Guard, error) {
	refuse, told := os.LookupEnv(maas.EnvRefuseCIDRs)
	if !told {
		return nil, nil
	}
	guard, err := maas.NewGuard(os.Getenv(maas.EnvAllowCIDRs), refuse)
	if err != nil {
		return nil, fmt.Errorf("%s or %s: %w", maas.EnvAllowCIDRs, maas.EnvRefuseCIDRs, err)
	}
	return guard, nil
}

func addControllers(ctx context.Context, mgr ctrl.Manager, o *options, identities *identity.Resolver) error {
	nodes := &guest.Nodes{Reader: mgr.GetAPIReader(), Clock: clock.RealClock{}}
	machines := &machine.Reconciler{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Identities: identities, Nodes: nodes,
		Recorder: mgr.GetEventRecorder("maasmachine-controller"), Clock: clock.RealClock{}, Attempts: o.deployAttempts,
		Timing: machine.Timing{Poll: o.pollInterval, Settled: o.settledInterval, Deploy: o.deployTimeout, Doubt: o.maasDoubt, Compose: o.composeDoubt,
			Release: o.releaseTimeout},
	}
	clusters := &cluster.Reconciler{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Identities: identities, Nodes: nodes,
		Recorder: mgr.GetEventRecorder("maascluster-controller"), Clock: clock.RealClock{}, QuarantineAfter: o.quarantineAfter,
		Machines: machines,
	}
	if err := machines.SetupWithManager(mgr, controller.Options{MaxConcurrentReconciles: o.machineConcurrency}); err != nil {
		return err
	}
	templates := &machinetemplate.Reconciler{Client: mgr.GetClient(), Identities: identities}
	if err := templates.SetupWithManager(mgr, controller.Options{}); err != nil {
		return err
	}
	return clusters.SetupWithManager(ctx, mgr, controller.Options{})
}

func managerOptions(o *options, config *rest.Config) ctrl.Options {
	options := ctrl.Options{
		Scheme:                        newScheme(),
		Metrics:                       serving.Serving(o.metricsAddress, config),
		HealthProbeBindAddress:        o.healthAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              leaderElectionID,
		LeaderElectionNamespace:       o.home(),
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.leaseDuration,
		RenewDeadline:                 &o.renewDeadline,
		RetryPeriod:                   &o.retryDelay,
		Cache:                         cache.Options{SyncPeriod: &o.syncPeriod},
		// Secrets are read when they are needed, and never cached.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	}
	if o.namespace != "" {
		options.Cache.DefaultNamespaces = map[string]cache.Config{o.namespace: {}}
	}
	return options
}

// home returns the namespace of the lease and of the credentials.
func (o *options) home() string {
	if o.namespace != "" {
		return o.namespace
	}
	return o.podNamespace
}

func (o *options) secret() client.ObjectKey {
	if o.credentialsSecret == "" {
		return client.ObjectKey{}
	}
	if o.credentialsNamespace != "" {
		return client.ObjectKey{Namespace: o.credentialsNamespace, Name: o.credentialsSecret}
	}
	return client.ObjectKey{Namespace: o.home(), Name: o.credentialsSecret}
}
