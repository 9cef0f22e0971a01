// SPDX-License-Identifier: Apache-2.0

// Package platform defines the interface between the operator and its platforms.
//
// A platform is one package below this one that implements Platform and Options, one line in package registry, and a
// row of support/platforms. Both controllers call the plugin and never compare a platform type.
// docs/how-to/add-a-platform.md describes the steps.
package platform

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/managementnetwork"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// ProviderName is the name of every platform's Cluster API provider.
const ProviderName = "capi-provider"

// Cluster is the part of a hosted cluster that a plugin may read. Plugins do not change the objects that it points to.
type Cluster struct {
	// HostedCluster is never nil.
	HostedCluster *hyperv1.HostedCluster
	// ControlPlane is nil until the HostedControlPlane exists, and after its deletion.
	ControlPlane *hyperv1.HostedControlPlane
	// Namespace is the hosted control plane's namespace.
	Namespace string
	// OperatorImage is the product's own image, which contains the in-tree providers.
	OperatorImage string
	// NodePools are the cluster's NodePools, sorted by name.
	NodePools []hyperv1.NodePool
	// CredentialsHash changes with the content of the platform's credentials; empty without credentials.
	CredentialsHash string
}

// Pool is the part of a NodePool that a plugin may read.
type Pool struct {
	// NodePool is the pool itself.
	NodePool *hyperv1.NodePool
	// HostedCluster is the cluster that the pool belongs to.
	HostedCluster *hyperv1.HostedCluster
	// Release is the pool's payload: its distribution, and the images that machines boot from. It is nil while the payload
	// cannot be read.
	Release *releaseinfo.ReleaseImage
	// Stream is the desired operating system stream of the pool's nodes. It is empty if the payload has only one, or
	// before one is chosen.
	Stream string
	// Kept is the status that an ImageKeeper returned in this reconcile; nil for other platforms, and before KeepImage is
	// called.
	Kept *hyperv1.NodePoolPlatformStatus
}

// Distribution returns the distribution of the pool's release payload; empty while the payload cannot be read.
func (p Pool) Distribution() releaseinfo.Distribution {
	if p.Release == nil {
		return ""
	}
	return p.Release.Distribution()
}

// UserData describes the format in which a pool's machines read their first-boot configuration.
type UserData struct {
	Format hyperv1.UserDataFormat
	// Why completes the sentence "Machines get ..." for users; empty if there is no choice.
	Why string
	// Waiting says what must happen before the format is known; empty for nothing.
	Waiting string
	// Keep is the value of the pool's annotation that preserves the choice; empty to choose again at the next reconcile.
	Keep string
	// Again is the time until the choice must be checked again; zero to wait for a change.
	Again time.Duration
}

// Object is a desired object of a plugin. Object contains its kind, name, and namespace. Mutate sets the plugin's
// fields after the object was read, and must not change fields of other owners.
type Object struct {
	Object client.Object
	Mutate func() error
	// MutateStatus also sets the status, for an infrastructure cluster that is managed externally, as the trait
	// ExternalInfra says. It is nil if the provider writes the status.
	MutateStatus func()
}

// Credentials is the state of the platform's credentials.
type Credentials struct {
	// Condition is PlatformCredentialsFound of the HostedCluster.
	Condition metav1.Condition
	// Hash changes with the content of the credentials; empty if a provider cannot use them.
	Hash string
	// CheckAgain is the time until the plugin must be called again; zero for no request.
	CheckAgain time.Duration
}

// Fault is an error of ValidateNodePool with its own condition instead of ValidPlatformConfig. It reports a missing
// resource that is not part of the pool's settings, and that may appear without a change of the pool.
type Fault struct {
	// Condition is of type NodePoolValidPlatformImageType or NodePoolAWSSecurityGroupAvailableConditionType.
	Condition string
	// Reason and Message belong to the condition while it is False.
	Reason, Message string
}

// Error returns the message.
func (f *Fault) Error() string { return f.Message }

// MachineStart is the progress of a machine towards a Node.
type MachineStart struct {
	// Begun is when the platform got the resource that will become the Node. It is zero while the machine waits for
	// something that a replacement would wait for too, such as capacity.
	Begun time.Time
	// Reason and Message say why the machine will never become a Node, so that it must be replaced; empty while it may.
	Reason, Message string
}

// MachineCapacity is the capacity of the next machine of a template.
type MachineCapacity struct {
	// Resources are the resources of the complete machine; empty while they are unknown.
	Resources corev1.ResourceList
	// Zone is the zone of all machines of the template; empty if they may be in several zones.
	Zone string
}

// Finding is a condition of a NodePool that reports what a Finder found for it.
type Finding struct {
	// Condition is one of the condition types of Fault.
	Condition string
	// Message says what was found.
	Message string
}

// Finder is a Platform that finds resources for a pool in its payload or its cluster.
type Finder interface {
	// Findings returns the findings for a pool whose payload is known. A Fault of ValidateNodePool takes precedence over a
	// finding with the same condition.
	Findings(pool Pool) []Finding
}

// ProviderChooser is a Platform whose provider may be a program other than the product's own.
type ProviderChooser interface {
	// NotHonored lists, in sentences for users, what the chosen provider does not implement; empty for the product's own.
	NotHonored(cluster Cluster) string
}

// StatusCompleter is a Platform whose third-party providers do not write all of the status that Cluster API reads.
type StatusCompleter interface {
	// CompleteStatus writes the missing status of the infrastructure objects. It writes nothing if all is there.
	CompleteStatus(ctx context.Context, c client.Client, cluster Cluster) error
}

// Identifier is a Platform that writes an identity into the spec of each cluster.
type Identifier interface {
	// Identify sets the missing fields of the identity. It is called once for each cluster, before any object is created.
	Identify(hc *hyperv1.HostedCluster)
}

// IssuerPublisher is a Platform whose cloud must know the issuer of the cluster's service account tokens.
type IssuerPublisher interface {
	// IssuerFinalizer returns the finalizer of the HostedCluster. It is present from before the documents are published
	// until they are deleted.
	IssuerFinalizer() string
	// IssuerDocuments returns the documents to publish, by their path under the issuer's URL. It returns none if the
	// operator must not publish them. The condition then says why; its type is empty if there is nothing to report.
	IssuerDocuments(ctx context.Context, c client.Reader, cluster Cluster) (map[string][]byte, metav1.Condition, error)
	// PublishIssuer publishes the documents. It returns the condition ValidOIDCConfiguration, and the time until the next
	// check.
	PublishIssuer(ctx context.Context, cluster Cluster, documents map[string][]byte) (metav1.Condition, time.Duration)
	// WithdrawIssuer deletes the documents that may be published. The error is for users.
	WithdrawIssuer(ctx context.Context, cluster Cluster) error
}

// Kept is the state of the image that a pool's machines boot from.
type Kept struct {
	// Condition is the condition ValidPlatformImage of the NodePool.
	Condition metav1.Condition
	// Status is the NodePool's status.platform; nil for none.
	Status *hyperv1.NodePoolPlatformStatus
	// Missing reports that no machine can be created yet, for the reason in the condition.
	Missing bool
	// CheckAgain is the time until the plugin must be called again; zero for no request.
	CheckAgain time.Duration
}

// ImageKeeper is a Platform that may store the image of a pool's machines where they boot.
type ImageKeeper interface {
	// KeepImage stores the image that the pool needs, and deletes its other images. It returns an error only for
	// failures that a retry may resolve.
	KeepImage(ctx context.Context, c client.Client, pool Pool) (Kept, error)
	// DropImage deletes the stored image of a pool that is being deleted, whose HostedCluster may be nil. waitsFor says
	// what still exists.
	DropImage(ctx context.Context, c client.Client, pool Pool) (waitsFor string, err error)
}

// IdentityChecker is a Platform whose pools may name credentials of their own.
type IdentityChecker interface {
	// CheckIdentity returns why a pool must not name its credentials, as a sentence for users; empty if it may. again is
	// the time until the next check; zero for no request.
	CheckIdentity(ctx context.Context, c client.Reader, pool Pool) (why string, again time.Duration, err error)
}

// EffectReporter is a Platform with fields that may have no effect.
type EffectReporter interface {
	// WithoutEffect lists the fields that the pool sets without effect, as paths below spec.
	WithoutEffect(pool *hyperv1.NodePool) []string
}

// Overrider is a Platform with fields that have no effect where another field contradicts them.
type Overrider interface {
	// Overridden returns a sentence for each such field of the pool. It names both fields, and the value that counts.
	Overridden(pool *hyperv1.NodePool) []string
}

// MachineReporter is a Platform that reports more about a pool's machines than their progress towards a Node.
type MachineReporter interface {
	// MachineConditions returns conditions of the NodePool from its infrastructure machines, of which there is at least
	// one.
	MachineConditions(machines []client.Object) []metav1.Condition
}

// RepairAdviser is a Platform that knows more about a failing machine than its Node shows.
type RepairAdviser interface {
	// RepairAdvice reports whether the platform has lost the host on which an infrastructure machine runs. shared is the
	// reason of a problem that a replacement would have too; empty if there is none.
	RepairAdvice(machine client.Object) (hostLost bool, shared string)
}

// Connection is the state of the network path from nodes to their control plane.
type Connection struct {
	// Conditions are conditions of the HostedCluster. Gone are the types of conditions that no longer apply.
	Conditions []metav1.Condition
	Gone       []hyperv1.ConditionType
	// CheckAgain is the time until the plugin must be called again; zero for no request.
	CheckAgain time.Duration
}

// Connector is a Platform that manages the network of its nodes, such as their path to the control plane.
type Connector interface {
	// Connect creates and updates the resources of the connection. The Connection is valid even with an error.
	Connect(ctx context.Context, c client.Client, cluster Cluster) (Connection, error)
	// Disconnect deletes these resources before the control plane is deleted. waitsFor says what still exists.
	Disconnect(ctx context.Context, c client.Client, cluster Cluster) (waitsFor string, err error)
}

// OperatorAdapter is a Platform whose cloud the control-plane-operators of release payloads use.
type OperatorAdapter interface {
	// AdaptControlPlaneOperator adds to the Deployment what the operator needs to use the cloud. The first container
	// is the operator.
	AdaptControlPlaneOperator(cluster Cluster, deployment *appsv1.Deployment)
}

// Environment is what a new plugin gets from the operator. Tests may use the zero value.
type Environment struct {
	// Namespace is the operator's namespace; empty means "hypershift".
	Namespace string
	// ProviderImage is the Cluster API provider image that the installer chose for the platform; if empty, the plugin
	// chooses it.
	ProviderImage string
	// LogEnv is the environment that makes the product's other programs log as the operator does.
	LogEnv []corev1.EnvVar
	// Metrics registers the plugin's metrics; nil disables them.
	Metrics prometheus.Registerer
	// Own knows the management cluster's addresses, which the plugin must not contact for tenants; nil knows none.
	Own *managementnetwork.Known
}

// Options are the operator's flags for one platform. They create its plugin after parsing.
type Options interface {
	// AddFlags adds the flags. Their names begin with the platform's name, or are the names of upstream HyperShift's
	// flags.
	AddFlags(flags *pflag.FlagSet)
	// New creates the plugin. An error is about the flags, and names them.
	New(env Environment) (Platform, error)
}

// Platform is one platform's plugin. Its methods may be called concurrently for different clusters. Each must return
// soon: an endpoint of the platform that does not answer must not block a worker.
type Platform interface {
	// AddToScheme registers the kinds that the plugin reads and writes.
	AddToScheme(scheme *runtime.Scheme) error
	// CRDs returns the CRDs that the management cluster must serve for the platform, in addition to those of all
	// platforms. If one is missing, the platform is disabled, and its clusters report that.
	CRDs() []string
	// Underway returns the reasons of MachineProblem that only mean that an operation is in progress, in addition to those
	// that begin with "Waiting".
	Underway() []string

	// ValidateHostedCluster rejects what the API server's validation cannot check. The error is for users.
	ValidateHostedCluster(hc *hyperv1.HostedCluster) error
	// InfraCluster returns the Cluster API infrastructure cluster. nil means that it cannot be created yet, or that there
	// is none; without one there is no Cluster either.
	InfraCluster(cluster Cluster) *Object
	// ReconcileCredentials copies the credentials to where the platform's provider reads them: the hosted control plane
	// namespace, or the operator's own namespace, where one controller calls the platform for all clusters. The condition
	// reports what a user has to fix. It returns an error only for failures that a retry may resolve.
	ReconcileCredentials(ctx context.Context, c client.Client, cluster Cluster) (Credentials, error)
	// CredentialsSecret returns the name of the user's Secret with the credentials, in the HostedCluster's namespace;
	// empty for none.
	CredentialsSecret(hc *hyperv1.HostedCluster) string
	// DeleteCredentials deletes the objects that ReconcileCredentials created outside the hosted control plane namespace.
	DeleteCredentials(ctx context.Context, c client.Client, cluster Cluster) error
	// Provider returns the Cluster API provider, a component named ProviderName; nil means that there is none.
	Provider(cluster Cluster) *component.Component
	// ReconcileSecretEncryption creates what encryption of type kms needs in the hosted control plane namespace.
	ReconcileSecretEncryption(ctx context.Context, c client.Client, cluster Cluster) error
	// OrphanedMachines is called in each reconcile of a deletion. It removes machines that can never be released.
	// Otherwise it returns a sentence that says what the deletion waits for; empty for nothing to report.
	OrphanedMachines(ctx context.Context, c client.Client, cluster Cluster) (string, error)

	// ValidateNodePool rejects what the API server's validation cannot check. The error is for users.
	ValidateNodePool(pool Pool) error
	// MachineTemplate returns the template of the pool's machines, without name and namespace. nil means that the platform
	// creates no machines.
	MachineTemplate(pool Pool) client.Object
	// RollingTemplate returns a copy of a template without the fields that may change without replacing machines.
	RollingTemplate(template client.Object) client.Object
	// MachineCapacity returns the capacity that the provider reported on an existing template.
	MachineCapacity(template client.Object) MachineCapacity
	// AdjustMachine sets, on an existing infrastructure machine, the pool's current values of the fields that
	// RollingTemplate omits. The pool's HostedCluster may be gone.
	AdjustMachine(pool Pool, machine client.Object)
	// MachineTemplates returns an empty list of the template's kind, for cleaning up; nil if there is none.
	MachineTemplates() client.ObjectList
	// UserDataFormat returns the format in which the pool's machines read their first-boot configuration. running reports
	// whether the pool has machines.
	UserDataFormat(ctx context.Context, c client.Reader, pool Pool, running bool) (UserData, error)
	// CustomizeIgnition adds to the first-boot configuration what machines of this platform need.
	CustomizeIgnition(pool Pool, config *ignition.Config)
	// MachineProblem reads an infrastructure machine's conditions. It returns the reason and an actionable message of what
	// is wrong or being waited for; empty if there is no problem.
	MachineProblem(machine client.Object) (reason, message string)
	// MachineStart returns the progress of an infrastructure machine towards a Node.
	MachineStart(machine client.Object) MachineStart
	// NodeStartup returns how long a machine of the pool may take to become a Node when it does not wait for capacity.
	// Zero means that the platform's traits apply.
	NodeStartup(pool Pool) time.Duration
	// Machines returns an empty list of the infrastructure machines' kind; nil if there is none.
	Machines() client.ObjectList
	// Watched returns the kinds in hosted control plane namespaces whose changes concern the HostedCluster or its
	// NodePools.
	Watched() []client.Object
}
