// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/openshift/hypershift/hypershift-operator/controllers/etcdbackup"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster"
	hostednamespace "github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/namespace"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/orphans"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/token"
	"github.com/openshift/hypershift/hypershift-operator/metrics"
	"github.com/openshift/hypershift/hypershift-operator/pace"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/hypershift-operator/turns"
	"github.com/openshift/hypershift/hypershift-operator/webhook"
	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/logging"
	maasapi "github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/managementnetwork"
	serving "github.com/openshift/hypershift/support/metrics"
	"github.com/openshift/hypershift/support/objectstore"
	"github.com/openshift/hypershift/support/operatorwebhook"
	"github.com/openshift/hypershift/support/program"
	"github.com/openshift/hypershift/support/readthrough"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/supportedversions"
	"github.com/openshift/hypershift/support/systemtrust"
	"github.com/openshift/hypershift/support/tenantlimits"
	"github.com/openshift/hypershift/support/version"
)

// Environment variables that the installer sets, and other fixed names.
const (
	platformsEnv      = "PLATFORMS_INSTALLED"
	leaderElectionID  = "hypershift-operator-leader-elect"
	operatorContainer = "operator"

	loosestLevelFlag = "loosest-pod-security-level"
	rolloutsFlag     = "max-control-plane-rollouts"
)

// passedEnv are environment variables that control-plane-operators get unchanged if they are set.
var passedEnv = []string{
	"CERT_ROTATION_SCALE", "METRICS_SET", "HYPERSHIFT_FEATURESET", "ENABLE_CVO_MANAGEMENT_CLUSTER_METRICS_ACCESS",
	"CERTIFICATE_VALIDITY", "CERTIFICATE_RENEWAL_PERCENTAGE", "RHOBS_MONITORING", "CVO_PROMETHEUS_URL", "ENABLE_SIZE_TAGGING",
	"IMAGE_KONNECTIVITY", "KUBE_FEATURE_WatchListClient", "MANAGED_SERVICE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
	"DEFAULT_INGRESS_DOMAIN",
}

// shared are kinds that all users of the management cluster use. Users' objects do not carry the operator's labels, and
// neither do the objects of a release payload's control-plane-operator. So the operator caches the metadata of all
// objects, and the content only of those that it has read.
var shared = []client.Object{
	&corev1.Namespace{}, &corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Service{}, &corev1.ServiceAccount{}, &appsv1.Deployment{},
	&rbacv1.Role{}, &rbacv1.RoleBinding{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}, &networkingv1.NetworkPolicy{},
}

// runFlags are the flags of the run command.
type runFlags struct {
	namespace, podName                    string
	metricsAddr, healthAddr               string
	operatorImage, cpoImage               string
	registryOverrides                     string
	leaderElect, ciDebugOutput            bool
	isolation, ocpMonitoring              bool
	certDir                               string
	validatingWebhook, enableUWMTelemetry bool
	defaultingWebhook                     bool
	webhookPort                           int
	egressBlocks, storeAllow, dnsServers  string
	loosestLevel                          string
	rollouts                              int
	defaultRelease                        string
	limits                                tenantlimits.Limits
	log                                   logging.Options
	// platforms are the flags of each platform.
	platforms registry.Options
	// own are the addresses of the management cluster, which must not be called on behalf of tenants.
	own managementnetwork.Known
	// dns describes the DNS servers that hosted pods query.
	dns managementnetwork.DNS
}

func newRunCommand() *cobra.Command {
	f := &runFlags{platforms: registry.All()}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the controllers",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.namespace, "namespace", os.Getenv("MY_NAMESPACE"), "namespace that the operator runs in")
	flags.StringVar(&f.podName, "pod-name", os.Getenv("MY_NAME"), "pod that the operator runs in; its image is the one that in-tree managers run from")
	flags.StringVar(&f.operatorImage, "operator-image", "", "image that in-tree managers run from, instead of the pod's")
	flags.StringVar(&f.cpoImage, "control-plane-operator-image", "", "control-plane-operator of all clusters, instead of the release image's")
	flags.StringVar(&f.metricsAddr, "metrics-addr", ":9000", "address of the metrics endpoint")
	flags.StringVar(&f.healthAddr, "health-probe-addr", ":8081", "address of /healthz and /readyz")
	flags.StringVar(&f.registryOverrides, "registry-overrides", "", "source=destination,...: prefixes of image references to replace")
	flags.BoolVar(&f.leaderElect, "leader-elect", true, "let only one of several operators work")
	flags.BoolVar(&f.defaultingWebhook, "enable-defaulting-webhook", false, "serve the webhook that sets defaults which depend on the cluster")
	flags.IntVar(&f.webhookPort, "webhook-port", operatorwebhook.Port, "port of the webhooks, which convert objects of Cluster API; 0 serves none")
	flags.StringVar(&f.defaultRelease, supportedversions.DefaultReleaseFlag, "", "release image of HostedClusters that name none")
	flags.BoolVar(&f.ciDebugOutput, "enable-ci-debug-output", false, "make control planes log more")
	flags.StringVar(&f.egressBlocks, "hcp-egress-block-cidrs", "", "ranges that hosted pods which act for a guest must never reach")
	flags.StringVar(&f.dnsServers, "hcp-egress-dns-cidrs", "",
		"ranges of DNS servers that hosted pods query, besides those of the operator's own pod")
	flags.StringVar(&f.storeAllow, "object-store-allow-cidrs", "",
		"ranges that object stores of tenants may be in although the address policy refuses them")
	flags.BoolVar(&f.ocpMonitoring, "enable-ocp-cluster-monitoring", false, "have OpenShift's own Prometheus scrape control planes")
	flags.StringVar(&f.loosestLevel, loosestLevelFlag, "baseline", "how far the annotation of a HostedCluster with an OpenShift release may "+
		"loosen the Pod Security level of its control plane: privileged, baseline or restricted")
	flags.IntVar(&f.rollouts, rolloutsFlag, turns.Default,
		"how many control planes change at the same time after an upgrade of the operator; 0 for no limit")
	f.platforms.AddFlags(flags)
	flags.BoolVar(&f.own.WholeNodes, "refuse-node-addresses", false,
		"refuse tenants' addresses on any port of the management cluster's nodes; without it, only on ports of Kubernetes")
	f.limits.AddFlags(flags)
	f.log.AddFlags(flags)
	addCompatibilityFlags(cmd, f)
	return cmd
}

// addCompatibilityFlags accepts flags that installers of upstream HyperShift set and that have no effect here.
func addCompatibilityFlags(cmd *cobra.Command, f *runFlags) {
	flags := cmd.Flags()
	flags.BoolVar(&f.isolation, "enable-dedicated-request-serving-isolation", false, "accepted for compatibility, has no effect")
	flags.BoolVar(&f.enableUWMTelemetry, "enable-uwm-telemetry-remote-write", false, "accepted for compatibility, has no effect")
	flags.StringVar(&f.certDir, "cert-dir", "", "accepted for compatibility, has no effect")
	flags.BoolVar(&f.validatingWebhook, "enable-validating-webhook", false, "accepted for compatibility, has no effect")
}

func run(ctx context.Context, f *runFlags) error {
	if err := f.log.Install(); err != nil {
		return err
	}
	if f.namespace == "" {
		return errors.New("the operator does not know its namespace: set --namespace or MY_NAMESPACE")
	}
	overrides, err := releaseinfo.ParseOverrides(f.registryOverrides)
	if err != nil {
		return fmt.Errorf("--registry-overrides: %w", err)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the management cluster: %w", err)
	}
	platforms, err := f.plugins(ctrlmetrics.Registry)
	if err != nil {
		return err
	}
	mgr, err := newManager(config, f, platforms)
	if err != nil {
		return err
	}
	if err := f.own.Refresh(ctx, mgr.GetAPIReader(), mgr.GetAPIReader()); err != nil {
		return err
	}
	if err := f.readDNS(ctx, mgr.GetAPIReader(), managementnetwork.ResolvConf); err != nil {
		return err
	}
	image, imageID, err := ownImage(ctx, mgr.GetAPIReader(), f)
	if err != nil {
		return err
	}
	if err := platforms.SwitchOff(ctx, mgr.GetAPIReader()); err != nil {
		return err
	}
	if err := addMetrics(mgr, image, imageID); err != nil {
		return err
	}
	releases, err := f.releases(image, overrides)
	if err != nil {
		return err
	}
	if err := addControllers(mgr, f, platforms, image, overrides, releases); err != nil {
		return err
	}
	ctrl.Log.Info("Starting the operator", "namespace", f.namespace, "image", image, "commit", version.Commit())
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the controllers: %w", err)
	}
	return nil
}

// releases sets the default registries of the tenant limits, and validates the limits. It returns the reader of
// releases, which calls only registries that the limits and the address policy allow.
func (f *runFlags) releases(image string, overrides map[string]string) (*release.Reader, error) {
	if err := f.limits.Complete(image); err != nil {
		return nil, err
	}
	guard, err := addressguard.New("", "")
	if err != nil {
		return nil, err
	}
	guard.Own = f.own.Kubernetes()
	return release.NewReader(overrides).Limited(f.limits.Image).Guarded(guard), nil
}

// plugins creates the plugins of the platforms whose kinds the installer has installed in the management cluster.
func (f *runFlags) plugins(counts prometheus.Registerer) (registry.Registry, error) {
	plugins, err := f.platforms.New(platform.Environment{Namespace: f.namespace, LogEnv: logging.Environment(),
		Metrics: counts, Own: &f.own})
	if err != nil {
		return registry.Registry{}, err
	}
	return plugins.Limit(os.Getenv(platformsEnv)), nil
}

func newManager(config *rest.Config, f *runFlags, platforms registry.Registry) (ctrl.Manager, error) {
	config.RateLimiter = pace.NewLimiter()
	config.UserAgent = "hypershift-operator/" + version.Commit()
	scheme, err := newScheme(platforms)
	if err != nil {
		return nil, err
	}
	mgr, err := program.NewManager(program.Management, config, ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       serving.Serving(f.metricsAddr, config),
		HealthProbeBindAddress:        f.healthAddr,
		LeaderElection:                f.leaderElect,
		LeaderElectionID:              leaderElectionID,
		LeaderElectionNamespace:       f.namespace,
		LeaderElectionReleaseOnCancel: true,
		NewClient:                     readthrough.NewClient(logging.NewClient, shared...),
		Cache: cache.Options{
			DefaultTransform: readthrough.Lean,
			// The operator may only read its own webhook configuration.
			ByObject: map[client.Object]cache.ByObject{
				&admissionv1.MutatingWebhookConfiguration{}: {Field: fields.OneTermEqualSelector("metadata.name", operatorwebhook.Name)},
			},
		},
	}, program.OfTenants)
	if err != nil {
		return nil, fmt.Errorf("setting up the manager: %w", err)
	}
	return mgr, errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping))
}

// addMetrics registers the metrics that are computed from the operator's cache.
func addMetrics(mgr ctrl.Manager, image, imageID string) error {
	for _, c := range append(metrics.Orphaned.Collectors(),
		metrics.New(mgr.GetClient(), clock.RealClock{}),
		metrics.Info(image, imageID, strings.Join(supported(), ", ")),
	) {
		if err := ctrlmetrics.Registry.Register(c); err != nil {
			return fmt.Errorf("registering the operator's metrics: %w", err)
		}
	}
	return nil
}

// supported returns the known minor versions of all distributions.
func supported() []string {
	var minors []string
	for _, distribution := range distributions.Known() {
		minors = append(minors, distributions.Of(distribution).Minors...)
	}
	return minors
}

// ownImage returns the image of the operator's own pod, which also contains the in-tree managers. id is its digest if
// the kubelet has reported it.
func ownImage(ctx context.Context, reader client.Reader, f *runFlags) (image, id string, err error) {
	if f.operatorImage != "" {
		return f.operatorImage, "", nil
	}
	pod := &corev1.Pod{}
	key := client.ObjectKey{Namespace: f.namespace, Name: f.podName}
	if err := reader.Get(ctx, key, pod); err != nil {
		return "", "", fmt.Errorf("reading the operator's own pod %s for its image (set --operator-image outside of a pod): %w", key, err)
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == operatorContainer {
			id = status.ImageID
		}
	}
	for _, container := range pod.Spec.Containers {
		if container.Name == operatorContainer {
			return container.Image, id, nil
		}
	}
	return "", "", fmt.Errorf("the operator's own pod %s has no container %s to take the image from: set --operator-image", key, operatorContainer)
}

func addControllers(mgr ctrl.Manager, f *runFlags, platforms registry.Registry, image string, overrides map[string]string, releases release.Lookup) error {
	blocks, err := maasapi.ParsePrefixes(f.egressBlocks)
	if err != nil {
		return fmt.Errorf("--hcp-egress-block-cidrs: %w", err)
	}
	if _, err := maasapi.ParsePrefixes(f.storeAllow); err != nil {
		return fmt.Errorf("--object-store-allow-cidrs: %w", err)
	}
	if f.loosestLevel != "" && !slices.Contains(hostednamespace.PodSecurityLevels(), f.loosestLevel) {
		return fmt.Errorf("--%s %q: use one of %s", loosestLevelFlag, f.loosestLevel, strings.Join(hostednamespace.PodSecurityLevels(), ", "))
	}
	if f.rollouts < 0 {
		return fmt.Errorf("--%s %d: use 0 for no limit, or more", rolloutsFlag, f.rollouts)
	}
	passed := environment()
	for name, ranges := range map[string]string{
		objectstore.EnvAllowCIDRs: f.storeAllow, objectstore.EnvRefuseCIDRs: f.egressBlocks,
	} {
		if ranges != "" {
			passed[name] = ranges
		}
	}
	clusters := &hostedcluster.Reconciler{
		Client: mgr.GetClient(), LiveReader: mgr.GetAPIReader(), Clock: clock.RealClock{},
		Recorder: mgr.GetEventRecorder("hostedcluster"), Releases: releases, Platforms: platforms,
		Settings: hostedcluster.Settings{
			OperatorNamespace: f.namespace, OperatorImage: image, ControlPlaneOperatorImage: f.cpoImage,
			Limits: &f.limits, EgressBlocks: blocks, DNS: f.dns, RefuseNodes: f.own.WholeNodes, RegistryOverrides: overrides,
			PassedEnv: passed, LoosestPodSecurity: f.loosestLevel, ControlPlaneRollouts: f.rollouts,
			SystemTrust:         systemtrust.FromEnvironment(os.Getenv).Read,
			PlatformMonitoring:  f.ocpMonitoring,
			EnableCIDebugOutput: f.ciDebugOutput,
		},
	}
	pools := &nodepool.Reconciler{
		Client: mgr.GetClient(), Clock: clock.RealClock{}, Recorder: mgr.GetEventRecorder("nodepool"),
		Releases: releases, Platforms: platforms, Limits: &f.limits,
	}
	janitor := &token.Janitor{Client: mgr.GetClient()}
	orphaned := &orphans.Janitor{
		Client: clusters.Client, LiveReader: clusters.LiveReader, Clock: clusters.Clock, Recorder: clusters.Recorder,
		Platforms: platforms, OperatorImage: clusters.Settings.OperatorImage, OperatorNamespace: f.namespace,
		Grace: orphans.DefaultGrace,
	}
	backups := &etcdbackup.Reconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}}
	return errors.Join(clusters.SetupWithManager(mgr), orphaned.SetupWithManager(mgr), pools.SetupWithManager(mgr),
		janitor.SetupWithManager(mgr), backups.SetupWithManager(mgr),
		mgr.Add(f.own.Refresher(mgr.GetAPIReader(), mgr.GetClient(), clock.RealClock{})),
		addWebhook(mgr, f), addVersions(mgr, f.namespace, f.defaultRelease), mgr.Add(&newcomers{cache: mgr.GetCache(), reader: mgr.GetAPIReader(), platforms: platforms}))
}

func addWebhook(mgr ctrl.Manager, f *runFlags) error {
	if f.webhookPort == 0 {
		return nil
	}
	return webhook.Setup(mgr, webhook.Options{Namespace: f.namespace, Port: f.webhookPort, Defaults: f.defaultingWebhook,
		DefaultRelease: f.defaultRelease, Clock: clock.RealClock{}})
}

func environment() map[string]string {
	env := map[string]string{}
	for _, name := range slices.Concat(passedEnv, logging.PassedEnv) {
		if value := os.Getenv(name); value != "" {
			env[name] = value
		}
	}
	return env
}
