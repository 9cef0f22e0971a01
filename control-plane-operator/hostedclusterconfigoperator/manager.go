// SPDX-License-Identifier: Apache-2.0

package hostedclusterconfigoperator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/address"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/connection"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/csrapproval"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/inplaceupgrade"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/node"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/nodecount"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/reencryption"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/resources"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/revocation"
	"github.com/openshift/hypershift/control-plane-operator/hostedclusterconfigoperator/controllers/workloads"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/kubeconfig"
	"github.com/openshift/hypershift/support/logging"
	"github.com/openshift/hypershift/support/metrics"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/program"
	"github.com/openshift/hypershift/support/releaseinfo"
)

const leaderElectionID = "hosted-cluster-config-operator-leader-elect"

// managementScheme contains the kinds of the hosted namespace.
func managementScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(hyperv1.AddToScheme(scheme))
	utilruntime.Must(clusterv1.AddToScheme(scheme))
	return scheme
}

// GuestScheme contains the kinds of the guest.
func GuestScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(configv1.Install(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	return scheme
}

// clusters are the clients of the two clusters of the operator.
type clusters struct {
	mgr        ctrl.Manager
	management cluster.Cluster
	// guest accesses the guest cluster without a cache.
	guest client.Client
}

func (o *options) manage(ctx context.Context, releases releaseinfo.Provider) error {
	managementConfig, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the management cluster: %w", err)
	}
	access, err := kubeconfig.ReadFile(o.targetKubeconfig)
	if err != nil {
		return fmt.Errorf("--target-kubeconfig: %w", err)
	}
	// No limit: the caches list all objects of some kinds, and watches have no end.
	guestConfig, err := access.Config(kubeconfig.Options{MaxAnswer: -1})
	if err != nil {
		return fmt.Errorf("--target-kubeconfig %s: %w", o.targetKubeconfig, err)
	}
	c, err := o.connect(managementConfig, guestConfig)
	if err != nil {
		return err
	}
	if err := o.addControllers(c, releases); err != nil {
		return err
	}
	return c.mgr.Start(ctx)
}

func (o *options) connect(managementConfig, guestConfig *rest.Config) (*clusters, error) {
	guestConfig.QPS, guestConfig.Burst = 100, 200
	// Suppress the warning that Endpoints are deprecated: clients in the guest still read them.
	guestConfig.WarningHandler = rest.NoWarnings{}
	mgr, err := program.NewManager(program.Guest, guestConfig, ctrl.Options{
		Scheme:                        GuestScheme(),
		Cache:                         guestCache(),
		Metrics:                       metrics.Serving(o.metricsAddr, managementConfig),
		HealthProbeBindAddress:        o.healthAddr,
		LeaderElection:                true,
		LeaderElectionConfig:          managementConfig,
		LeaderElectionID:              leaderElectionID,
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	// Secrets are not cached, except the one that is watched: they are read by name.
	uncached := client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}}
	management, err := program.AddCluster(mgr, program.Management, managementConfig, managementScheme(),
		managementCache(o.namespace), uncached)
	if err != nil {
		return nil, fmt.Errorf("connecting to the management cluster: %w", err)
	}
	guest, err := logging.NewClient(guestConfig, client.Options{Scheme: GuestScheme()})
	if err != nil {
		return nil, fmt.Errorf("connecting to the guest: %w", err)
	}
	return &clusters{mgr: mgr, management: management, guest: guest}, errors.Join(
		mgr.AddHealthzCheck("healthz", healthz.Ping), mgr.AddReadyzCheck("readyz", healthz.Ping))
}

// managementCache caches the hosted namespace, and of its Secrets only the encryption configuration: the operator has
// no permission for others except the pull secret.
func managementCache(namespace string) cache.Options {
	return cache.Options{
		DefaultNamespaces: map[string]cache.Config{namespace: {}},
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, kubeapiserver.EncryptionSecret)},
		},
	}
}

// guestCache caches the objects that this operator created, and all nodes and their certificate requests. A guest may
// have a hundred thousand other objects, which would not fit into a control plane pod.
func guestCache() cache.Options {
	all := cache.ByObject{Label: labels.Everything()}
	return cache.Options{
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{component.GuestLabel: "true"}),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}: all,
			&certificatesv1.CertificateSigningRequest{}: all,
		},
	}
}

func (o *options) addControllers(c *clusters, releases releaseinfo.Provider) error {
	controlPlane := client.ObjectKey{Namespace: o.namespace, Name: o.controlPlane}
	gate := pause.Gate{Management: c.management.GetClient(), ControlPlane: controlPlane, Clock: clock.RealClock{}}
	guest, err := kubernetes.NewForConfig(c.mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("connecting to the guest: %w", err)
	}
	controllers := o.ofTheGuest(c, guest, controlPlane, gate, releases)
	maps.Copy(controllers, o.ofNodes(c, controlPlane, gate))
	return o.setUp(controllers)
}

// ofTheGuest returns the controllers that do not manage single nodes. They use the clientset for requests that are not
// about objects, such as a kubelet's health and metrics.
func (o *options) ofTheGuest(c *clusters, guest kubernetes.Interface, controlPlane client.ObjectKey, gate pause.Gate, releases releaseinfo.Provider) map[string]func() error {
	kept := c.management.GetCache()
	return map[string]func() error{
		"resources": func() error {
			r := &resources.Reconciler{
				Management: c.management.GetClient(), Guest: c.guest,
				Lookup: net.DefaultResolver.LookupHost, Clock: clock.RealClock{}, OperateOnReleaseImage: o.operateOnRelease,
			}
			return r.SetupWithManager(c.mgr, kept, controlPlane)
		},
		"workloads": func() error {
			r := &workloads.Reconciler{
				Management: c.management.GetClient(), Guest: &component.Guest{Client: c.mgr.GetClient(), Live: c.guest},
				Releases: releases, Clock: clock.RealClock{}, OperateOnReleaseImage: o.operateOnRelease,
			}
			return r.SetupWithManager(c.mgr, kept, controlPlane)
		},
		"connection": func() error {
			r := &connection.Reconciler{
				Guest: c.mgr.GetClient(), Live: c.guest, Management: c.management.GetClient(), Kubelet: connection.AskKubelet(guest),
				Clock: clock.RealClock{},
			}
			return r.SetupWithManager(c.mgr, controlPlane)
		},
		"reencryption": func() error {
			r := &reencryption.Reconciler{
				Guest: c.guest, Management: c.management.GetClient(), Namespace: o.namespace, Pause: gate, Clock: clock.RealClock{},
				Metrics: func(ctx context.Context) ([]byte, error) {
					return guest.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
				},
			}
			return r.SetupWithManager(c.mgr, kept)
		},
	}
}

// ofNodes returns the controllers for the guest's nodes.
func (o *options) ofNodes(c *clusters, controlPlane client.ObjectKey, gate pause.Gate) map[string]func() error {
	kept := c.management.GetCache()
	return map[string]func() error{
		"csr-approval": func() error {
			r := &csrapproval.Reconciler{
				Guest: c.mgr.GetClient(), Live: c.guest, Management: c.management.GetClient(), Namespace: o.namespace, Pause: gate,
				Recorder: c.management.GetEventRecorder("node-approver"),
			}
			return r.SetupWithManager(c.mgr, kept)
		},
		"revocation": func() error {
			r := &revocation.Reconciler{Guest: c.mgr.GetClient(), Management: c.management.GetClient(), Clock: clock.RealClock{}}
			return r.SetupWithManager(c.mgr, kept, controlPlane)
		},
		"node": func() error {
			r := &node.Reconciler{
				Guest: c.mgr.GetClient(), Management: c.management.GetClient(), Live: c.management.GetAPIReader(), Namespace: o.namespace,
				Pause: gate, Clock: clock.RealClock{}, Deletions: node.NewDeletions(clock.RealClock{}),
				Recorder: c.management.GetEventRecorder("node-identity"),
			}
			return r.SetupWithManager(c.mgr, kept)
		},
		"inplaceupgrade": func() error {
			r := &inplaceupgrade.Reconciler{
				Guest: c.mgr.GetClient(), GuestLive: c.guest, Management: c.management.GetClient(), ManagementLive: c.management.GetAPIReader(),
				Namespace: o.namespace, Pause: gate, Clock: clock.RealClock{},
			}
			return r.SetupWithManager(c.mgr, kept)
		},
		"address": func() error {
			r := &address.Reconciler{Guest: c.mgr.GetClient(), Management: c.management.GetClient(), Pause: gate}
			return r.SetupWithManager(c.mgr, kept, controlPlane)
		},
		"nodecount": func() error {
			if !o.countsNodes {
				return nil
			}
			r := &nodecount.Reconciler{Guest: c.mgr.GetClient(), Management: c.management.GetClient(), ControlPlane: controlPlane}
			return r.SetupWithManager(c.mgr)
		},
	}
}

// setUp sets up the selected controllers, or all if none are named. An unknown name is an error: it would have no
// effect.
func (o *options) setUp(controllers map[string]func() error) error {
	for _, name := range o.controllers {
		if controllers[name] == nil {
			return fmt.Errorf("--controllers: there is no controller %q; name some of %s", name, strings.Join(slices.Sorted(maps.Keys(controllers)), ", "))
		}
	}
	for name, add := range controllers {
		if len(o.controllers) > 0 && !slices.Contains(o.controllers, name) {
			continue
		}
		if err := add(); err != nil {
			return fmt.Errorf("setting up the %s controller: %w", name, err)
		}
	}
	return nil
}
