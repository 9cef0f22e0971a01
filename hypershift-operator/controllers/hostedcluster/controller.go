// SPDX-License-Identifier: Apache-2.0

// Package hostedcluster reconciles HostedClusters. It creates a namespace for each one and copies the inputs of the
// control plane into it. It runs the three managers that build the control plane and supply its machines.
//
// A reconcile runs a list of phases, one file each, over one scope. It computes the status once, at the end, from the
// scope.
package hostedcluster

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	"github.com/google/uuid"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/namespace"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/plugin"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/rbac"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/secrets"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/hypershift-operator/turns"
	"github.com/openshift/hypershift/support/managementnetwork"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/tenantlimits"
)

// finalizerName keeps a HostedCluster until everything that belongs to it is deleted.
const finalizerName = hyperv1.HostedClusterFinalizer

// Settings are the operator's flags and environment; they apply to all clusters.
type Settings struct {
	// OperatorNamespace is the operator's own namespace, in which tenants cannot write; empty for none. It holds the key
	// that certifies signers of backups, and its objects may point to any cluster.
	OperatorNamespace string
	// OperatorImage is the product's image, which contains the in-tree managers.
	OperatorImage string
	// ControlPlaneOperatorImage replaces the control-plane-operator of every payload; empty for none.
	ControlPlaneOperatorImage string
	// RegistryOverrides maps the prefix of an image reference to the one that replaces it.
	RegistryOverrides map[string]string
	// PassedEnv holds environment variables that control-plane-operators get unchanged.
	PassedEnv map[string]string
	// Limits are what tenants may choose; nil for no limits.
	Limits *tenantlimits.Limits
	// EgressBlocks are ranges that pods which act for a guest must not reach, in addition to the detected ranges of the
	// management cluster.
	EgressBlocks []netip.Prefix
	// DNS describes the DNS servers of the management cluster, besides the DNS of well-known namespaces.
	DNS managementnetwork.DNS
	// RefuseNodes blocks tenants' servers on all ports of the management cluster's nodes, not just those of Kubernetes.
	RefuseNodes bool
	// LoosestPodSecurity is the least strict Pod Security level that the annotation of a HostedCluster may set for a
	// payload with its own operators. It is one of PodSecurityLevels, or empty for baseline.
	LoosestPodSecurity string
	// SystemTrust returns the CAs that the operator trusts, as PEM; nil for none.
	SystemTrust func() ([]byte, error)
	// PlatformMonitoring lets OpenShift's own Prometheus scrape control planes.
	PlatformMonitoring bool
	// ControlPlaneRollouts is how many control planes change at the same time after an upgrade of the operator; 0 means
	// no limit.
	ControlPlaneRollouts int
	// EnableCIDebugOutput makes control planes log more.
	EnableCIDebugOutput bool
}

// Reconciler reconciles HostedClusters.
type Reconciler struct {
	Client    client.Client
	Clock     clock.Clock
	Recorder  events.EventRecorder
	Releases  release.Lookup
	Platforms registry.Registry
	Settings  Settings
	// LiveReader bypasses the cache where stale data would do harm.
	LiveReader client.Reader

	// identities is locked while a hosted namespace gets its user ID, so that two clusters do not get the same one.
	identities sync.Mutex
	// turns limits how many control planes change at the same time; nil means no limit.
	turns *turns.Turns
}

// Reconcile brings one HostedCluster a step closer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return phase.Driver[*hyperv1.HostedCluster, *scope]{
		Client: r.Client, Finalizers: []string{finalizerName}, Observe: r.observe, Pause: pauseOf, Prepare: prepare,
		Phases: r.phases, Deletion: r.deletion, Report: r.report,
	}.Reconcile(ctx, req)
}

// prepare gives the object its identities. They are written once, together with the finalizer, so that a stale cache
// cannot generate a second set.
func prepare(s *scope) error {
	if s.HC.Spec.ClusterID == "" {
		s.HC.Spec.ClusterID = uuid.NewString()
	}
	if s.HC.Spec.InfraID == "" {
		s.HC.Spec.InfraID = naming.InfraID(s.HC.Name)
	}
	if p, ok := s.Platform.(platform.Identifier); ok {
		p.Identify(s.HC)
	}
	return nil
}

// phases returns the steps of a reconcile, in order. Steps that need the release payload come late, so that a registry
// outage does not block copies of certificates, kubeconfigs or credentials.
func (r *Reconciler) phases(s *scope) []phase.Phase[*scope] {
	if s.Refused != "" {
		return []phase.Phase[*scope]{{Name: "control plane namespace", WhilePaused: true, Run: refuseNamespace}}
	}
	return slices.Concat([]phase.Phase[*scope]{
		{Name: "pause", WhilePaused: true, Run: r.reconcilePause},
		// Renewed credentials of the guest are copied even if the spec is invalid; otherwise they expire and lock the users
		// out.
		{Name: "kubeconfig and password copies", Run: shared(secrets.Access{Client: r.Client})},
		{Name: "configuration", Critical: true, Run: r.reconcileConfiguration},
		{Name: "control plane namespace", Critical: true, Run: r.reconcileNamespace},
		{Name: "failing pods", Run: r.watchFailures},
	}, r.inputs(s), []phase.Phase[*scope]{
		{Name: "release image", Critical: true, Run: r.reconcileRelease},
		{Name: "pod networks", Critical: true, Run: r.validatePodNetworks},
		{Name: "hosted control plane", Critical: true, Run: r.reconcileControlPlane},
		{Name: "issuer of service accounts", Run: shared(plugin.Issuer{
			Client: r.Client, OperatorImage: r.Settings.OperatorImage,
		})},
		{Name: "connection of nodes", Run: shared(plugin.Connection{
			Client: r.Client, OperatorImage: r.Settings.OperatorImage,
		})},
		{Name: "release payload", Critical: true, Run: r.readPayload},
		{Name: "pod security", Run: shared(r.podSecurity(s))},
		{Name: "default requests", Run: shared(namespace.LimitRange{Client: r.Client})},
		{Name: "network policies", Run: shared(r.networkPolicies(s))},
		{Name: "platform monitoring", Run: shared(namespace.Monitoring{
			Client: r.Client, Enabled: r.Settings.PlatformMonitoring,
		})},
		{Name: "rights to sign break-glass certificates", Run: shared(rbac.Signers{Client: r.Client})},
		{
			Name: "right to read how extension API servers authenticate",
			Run:  shared(rbac.AuthenticationReader{Client: r.Client}),
		},
		{Name: "CAs that the payload's operators trust", Run: shared(secrets.PayloadTrust{
			Client: r.Client, Inputs: &s.inputs, System: r.Settings.SystemTrust,
		})},
		{Name: "signer of backups", Run: shared(secrets.BackupSigner{
			Client: r.Client, OperatorNamespace: r.Settings.OperatorNamespace,
		})},
		{Name: "turn after an upgrade of the operator", Critical: true, Run: r.awaitTurn},
		{Name: "control-plane-operator", Run: r.reconcileControlPlaneOperator},
		{Name: "config operator rights", Run: shared(rbac.ConfigOperatorEvents{Client: r.Client})},
		{Name: "restart with a new certificate", Run: r.restartWithCertificate},
		{Name: "Cluster API cluster", Run: r.reconcileCAPICluster},
		{Name: "Cluster API manager", Run: r.reconcileCAPIManager},
		{Name: "Cluster API provider", Run: r.reconcileCAPIProvider},
		{Name: "unused copies", Run: shared(secrets.Unused{Client: r.Client, LiveReader: r.LiveReader})},
		{Name: "Route of the ignition-server", Run: r.awaitRoute},
	})
}

// inputs returns the steps that copy and check what the cluster names.
func (r *Reconciler) inputs(s *scope) []phase.Phase[*scope] {
	copier := secrets.NewCopier(r.Client, &s.inputs)
	return []phase.Phase[*scope]{
		{Name: "pull secret", Critical: true, Run: shared(secrets.PullSecret{Copier: copier})},
		{Name: "platform credentials", Run: shared(plugin.Credentials{
			Client: r.Client, OperatorImage: r.Settings.OperatorImage,
		})},
		{Name: "secret encryption", Critical: true, Run: shared(secrets.Encryption{
			Copier: copier, OperatorImage: r.Settings.OperatorImage,
		})},
		{Name: "audit webhook", Run: shared(secrets.AuditWebhook{Copier: copier})},
		{Name: "SSH key", Run: shared(secrets.SSHKey{Copier: copier})},
		{Name: "additional trust bundle", Run: shared(secrets.TrustBundle{Copier: copier})},
		{Name: "service account signing key", Run: shared(secrets.SigningKey{Copier: copier})},
		{Name: "etcd client certificate", Run: shared(secrets.EtcdClient{Copier: copier})},
		{Name: "etcd backup secrets", Run: shared(secrets.EtcdBackup{Copier: copier})},
		{Name: "configuration references", Run: shared(secrets.Configuration{Copier: copier})},
		{Name: "add-ons", Run: r.reconcileAddons},
		{Name: "proxy", Run: r.validateProxy},
		{Name: "secrets of the CLI", Run: shared(secrets.CLI{Client: r.Client})},
	}
}

// observe reads what every reconcile needs, including one that deletes.
func (r *Reconciler) observe(ctx context.Context, hc *hyperv1.HostedCluster) (*scope, error) {
	if !hc.DeletionTimestamp.IsZero() {
		r.turns.Leave(client.ObjectKeyFromObject(hc))
	}
	observed, err := cluster.Reader{Client: r.Client, Clock: r.Clock, Platforms: r.Platforms}.Observe(ctx, hc)
	return &scope{Scope: observed}, err
}
