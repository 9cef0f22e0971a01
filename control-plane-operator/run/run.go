// SPDX-License-Identifier: Apache-2.0

// Package run is the subcommand that reconciles the hosted control plane of one namespace.
package run

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	certificatesv1alpha1 "github.com/openshift/hypershift/api/certificates/v1alpha1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/breakglass"
	"github.com/openshift/hypershift/control-plane-operator/controllers/etcd"
	"github.com/openshift/hypershift/control-plane-operator/controllers/etcdbackup"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/infra"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	v2 "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2"
	etcdcomponent "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/control-plane-operator/metrics"
	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/logging"
	"github.com/openshift/hypershift/support/management"
	serving "github.com/openshift/hypershift/support/metrics"
	"github.com/openshift/hypershift/support/objectstore"
	"github.com/openshift/hypershift/support/program"
	"github.com/openshift/hypershift/support/releaseinfo"
)

const leaderElectionID = "control-plane-operator-leader-elect"

// These are the times of the leader lease. A control-plane-operator keeps running if it loses the management API for
// less than renewDeadline.
var leaseDuration, renewDeadline, retryPeriod = 60 * time.Second, 40 * time.Second, 15 * time.Second

// Scheme contains all kinds that the operator reads or writes in the management cluster.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(hyperv1.AddToScheme(scheme))
	utilruntime.Must(certificatesv1alpha1.AddToScheme(scheme))
	utilruntime.Must(routev1.AddToScheme(scheme))
	utilruntime.Must(monitoringv1.AddToScheme(scheme))
	return scheme
}

// NewCommand returns the subcommand.
func NewCommand() *cobra.Command {
	o := optionsFromEnvironment(os.Getenv)
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Reconciles the hosted control plane of one namespace",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.log.Install(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *options) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the management cluster: %w", err)
	}
	config.QPS, config.Burst = 100, 200
	mgr, err := program.NewManager(program.Management, config, ctrl.Options{
		Scheme:                        Scheme(),
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{o.namespace: {}}},
		Metrics:                       serving.Serving(o.metricsAddr, config),
		HealthProbeBindAddress:        o.healthAddr,
		LeaderElection:                true,
		LeaderElectionID:              leaderElectionID,
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &leaseDuration,
		RenewDeadline:                 &renewDeadline,
		RetryPeriod:                   &retryPeriod,
	})
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	reconciler, err := o.reconciler(mgr)
	if err != nil {
		return err
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the HostedControlPlane controller: %w", err)
	}
	if err := keepEtcd(mgr); err != nil {
		return err
	}
	if err := o.breakGlass(mgr); err != nil {
		return err
	}
	if err := o.backUp(mgr); err != nil {
		return err
	}
	if err := ctrlmetrics.Registry.Register(metrics.New(mgr.GetClient(), o.namespace, clock.RealClock{})); err != nil {
		return fmt.Errorf("registering the operator's metrics: %w", err)
	}
	return start(ctx, mgr)
}

// keepEtcd sets up the controller of etcd's members.
func keepEtcd(mgr manager.Manager) error {
	families := metrics.NewEtcd()
	for _, c := range families.Collectors() {
		if err := ctrlmetrics.Registry.Register(c); err != nil {
			return fmt.Errorf("registering the metrics of etcd: %w", err)
		}
	}
	reconciler := &etcd.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, Dial: etcd.TLSDialer(mgr.GetClient()), Scrape: etcd.TLSScraper(mgr.GetClient()),
		PeerURL: etcdcomponent.PeerURL, ClientURL: etcdcomponent.ClientURL, AnswerTimeout: etcd.AnswerTimeout, Metrics: &etcd.Metrics{Etcd: families},
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the etcd controller: %w", err)
	}
	return nil
}

// breakGlass sets up signing and revocation of break-glass certificates. It is skipped if the management cluster does
// not serve the kind of the requests.
func (o *options) breakGlass(mgr manager.Manager) error {
	asked, err := serves(mgr.GetRESTMapper(), certificatesv1alpha1.GroupVersion.WithKind("CertificateRevocationRequest"))
	if err != nil || !asked {
		return err
	}
	if err := (&breakglass.Revoker{Client: mgr.GetClient(), Clock: clock.RealClock{}}).SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the controller of CertificateRevocationRequests: %w", err)
	}
	signer := &breakglass.Signer{Client: mgr.GetClient(), Namespace: o.namespace, Clock: clock.RealClock{}}
	if err := signer.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the controller of break-glass certificates: %w", err)
	}
	return nil
}

// backUp sets up the controllers of backups. It skips them if the management cluster does not serve their kind, which
// `install --exclude-etcd` leaves out.
func (o *options) backUp(mgr manager.Manager) error {
	asked, err := serves(mgr.GetRESTMapper(), hyperv1.GroupVersion.WithKind("HCPEtcdBackup"))
	if err != nil || !asked {
		return err
	}
	families := metrics.NewEtcdBackup()
	for _, c := range families.Collectors() {
		if err := ctrlmetrics.Registry.Register(c); err != nil {
			return fmt.Errorf("registering the metrics of backups: %w", err)
		}
	}
	taker := &etcdbackup.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, Events: mgr.GetEventRecorder("control-plane-operator"),
		Image: o.operatorImage, PodUID: o.podUID, Env: o.inherited,
	}
	if err := taker.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the controller of HCPEtcdBackups: %w", err)
	}
	scheduler := &etcdbackup.Scheduler{Client: mgr.GetClient(), Clock: clock.RealClock{}, Metrics: families}
	if err := scheduler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the schedule of backups: %w", err)
	}
	return nil
}

func start(ctx context.Context, mgr manager.Manager) error {
	for name, add := range map[string]func(string, healthz.Checker) error{"healthz": mgr.AddHealthzCheck, "readyz": mgr.AddReadyzCheck} {
		if err := add(name, healthz.Ping); err != nil {
			return fmt.Errorf("adding the %s check: %w", name, err)
		}
	}
	return mgr.Start(ctx)
}

func (o *options) reconciler(mgr manager.Manager) (*hostedcontrolplane.Reconciler, error) {
	releases, err := o.releases()
	if err != nil {
		return nil, err
	}
	hasRoutes, err := serves(mgr.GetRESTMapper(), routev1.GroupVersion.WithKind("Route"))
	if err != nil {
		return nil, err
	}
	sameNode, err := management.AtLeast(mgr.GetConfig(), sameNodeSince)
	if err != nil {
		return nil, err
	}
	published := published{reader: mgr.GetClient(), namespace: o.namespace}
	return &hostedcontrolplane.Reconciler{
		Client:                mgr.GetClient(),
		Clock:                 clock.RealClock{},
		Releases:              releases,
		OperateOnReleaseImage: o.operateOnRelease,
		StaticImages:          o.staticImages(),
		Components: v2.Config{
			ConfigOperatorImage: o.orOwn(o.configOperatorImage),
			RegistryOverrides:   o.registryOverrides,
			ImageOverrides:      o.imageMirrors,
			Inherited:           o.inherited,
		},
		Infra:  &infra.Reconciler{Client: mgr.GetClient(), HasRoutes: hasRoutes, IngressDomain: o.ingressDomain, SameNode: sameNode},
		PKI:    &pki.Reconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}, Lifetime: o.lifetime},
		Health: published.askHealth, Plugins: hostedcontrolplane.AskPlugins, Shows: published.askCertificate,
		OwnEtcd: askOwnEtcd,
		PodUID:  o.podUID, MetricsSet: o.metricsSet,
	}, nil
}

// sameNodeSince is the first Kubernetes version whose Services can prefer pods on the same node.
const sameNodeSince = "1.35"

// serves reports whether the management cluster serves an optional kind.
func serves(mapper meta.RESTMapper, kind schema.GroupVersionKind) (bool, error) {
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking the management cluster for its kind %s: %w", kind.Kind, err)
	}
	return true, nil
}

func (o *options) releases() (releaseinfo.Provider, error) {
	overrides, err := releaseinfo.ParseOverrides(o.registryOverrides)
	if err != nil {
		return nil, fmt.Errorf("--registry-overrides: %w", err)
	}
	mirrors, err := releaseinfo.ParseMirrors(o.imageMirrors)
	if err != nil {
		return nil, fmt.Errorf("OPENSHIFT_IMG_OVERRIDES: %w", err)
	}
	guard, err := addressguard.ForRegistries()
	if err != nil {
		return nil, err
	}
	return releaseinfo.NewRegistry(releaseinfo.Options{Overrides: overrides, Mirrors: mirrors, Guard: guard})
}

// inheritedVariables are passed on to components that run the operator's own image.
var inheritedVariables = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ENABLE_SIZE_TAGGING", "KUBE_FEATURE_WatchListClient",
	objectstore.EnvAllowCIDRs, objectstore.EnvRefuseCIDRs,
}

func inherit(getenv func(string) string) []corev1.EnvVar {
	var inherited []corev1.EnvVar
	for _, name := range slices.Concat(inheritedVariables, logging.PassedEnv) {
		value := getenv(name)
		if name == "NO_PROXY" && value != "" {
			// The hosted API server is in the same namespace, so requests to it bypass the proxy.
			value += ",kube-apiserver"
		}
		if value != "" {
			inherited = append(inherited, corev1.EnvVar{Name: name, Value: value})
		}
	}
	return inherited
}

func parseUID(text string) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	uid, err := strconv.ParseInt(text, 10, 64)
	if err != nil || uid < 0 {
		return nil, fmt.Errorf("%q is not a user ID", text)
	}
	return ptr.To(uid), nil
}
