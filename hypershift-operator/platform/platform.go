// SPDX-License-Identifier: Apache-2.0

// Package platform says what the operator needs of a platform.
//
// A platform is one package below this one that implements Platform and Options, one line in package registry, and a row of
// support/platforms. Both controllers ask the plugin and never compare a platform type. docs/how-to/add-a-platform.md
// leads through it.
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

// ProviderName is what the Cluster API provider of every platform is called.
const ProviderName = "capi-provider"

// Cluster is what a plugin may know of one hosted cluster. Plugins do not change what it points to.
type Cluster struct {
	// HostedCluster is always there.
	HostedCluster *hyperv1.HostedCluster
	// ControlPlane is nil until the HostedControlPlane exists, and when it is gone.
	ControlPlane *hyperv1.HostedControlPlane
	// Namespace is the hosted control plane's namespace.
	Namespace string
	// OperatorImage is the product's own image, which carries the in-tree providers.
	OperatorImage string
	// NodePools are those of the cluster, by name.
	NodePools []hyperv1.NodePool
	// CredentialsHash changes when the content of the platform's credentials does; empty without credentials.
	CredentialsHash string
}

// Pool is what a plugin may know of one NodePool.
type Pool struct {
	// NodePool is the pool itself.
	NodePool *hyperv1.NodePool
	// HostedCluster is the cluster that the pool belongs to.
	HostedCluster *hyperv1.HostedCluster
	// Release is the pool's payload: its distribution, and the images that its machines start from; nil while it could not be
	// read.
	Release *releaseinfo.ReleaseImage
	// Stream of the operating system is the one that the pool's nodes are to run; empty where the payload has one only, and while it is not
	// chosen.
	Stream string
	// Kept is what an ImageKeeper said in this pass; nil for other platforms, and before it was asked.
	Kept *hyperv1.NodePoolPlatformStatus
}

// Distribution is what the pool's release payload carries; empty while the payload could not be read.
func (p Pool) Distribution() releaseinfo.Distribution {
	if p.Release == nil {
		return ""
	}
	return p.Release.Distribution()
}

// UserData is what a pool's machines read their first-boot configuration as.
type UserData struct {
	Format hyperv1.UserDataFormat
	// Why ends the sentence "Machines get ...", for users; empty where there is nothing to choose.
	Why string
	// Waiting says what is waited for before there is a format; empty for nothing.
	Waiting string
	// Keep is what the pool's annotation is to hold so that the choice stays; empty to choose again at the next pass.
	Keep string
	// Again is when another choice may be due; zero for when something changes.
	Again time.Duration
}

// Object is one object that a plugin wants to exist. Object holds its kind, name and namespace; Mutate shapes it after it
// was read, and must leave alone what others own.
type Object struct {
	Object client.Object
	Mutate func() error
	// MutateStatus shapes the status too: that of an infrastructure cluster which the provider leaves alone, since it is managed
	// externally, as the trait ExternalInfra says. It is nil where the provider writes it.
	MutateStatus func()
}

// Credentials is what a plugin found out about the platform's credentials.
type Credentials struct {
	// Condition is PlatformCredentialsFound of the HostedCluster.
	Condition metav1.Condition
	// Hash changes when their content does; empty when there is nothing that a provider could use.
	Hash string
	// CheckAgain is when the plugin wants to look again, zero for no wish.
	CheckAgain time.Duration
}

// Fault is an error of ValidateNodePool that has a condition of its own, instead of ValidPlatformConfig: what is missing is not in the
// pool's settings, and may come without a change of them.
type Fault struct {
	// Condition is of type NodePoolValidPlatformImageType or NodePoolAWSSecurityGroupAvailableConditionType.
	Condition string
	// Reason and Message are the condition's while it is False.
	Reason, Message string
}

// Error is the message.
func (f *Fault) Error() string { return f.Message }

// MachineStart is how far a machine is on its way to a Node.
type MachineStart struct {
	// Begun is when the platform got what it now makes a Node of; zero while the machine waits for what a new one would wait
	// for too, such as capacity.
	Begun time.Time
	// Reason and Message say why the machine will never be a Node, so that only another one helps; empty while it may.
	Reason, Message string
}

// MachineCapacity is what the next machine of a template brings.
type MachineCapacity struct {
	// Resources are those of the whole machine; empty while nobody has said it.
	Resources corev1.ResourceList
	// Zone is the one that all machines of the template are in; empty where they may be in several.
	Zone string
}

// Finding is a condition of a NodePool that tells what was found for it.
type Finding struct {
	// Condition is of the types of Fault.
	Condition string
	// Message says what was found.
	Message string
}

// Finder is a Platform that finds things for a pool in its payload or its cluster.
type Finder interface {
	// Findings are those of a pool whose payload is known. What ValidateNodePool says of a condition counts more.
	Findings(pool Pool) []Finding
}

// ProviderChooser is a Platform whose provider may be another program than the product's own.
type ProviderChooser interface {
	// NotHonored says in sentences for users what the chosen provider is known not to do; empty for the product's own.
	NotHonored(cluster Cluster) string
}

// Identifier is a Platform whose clusters get an identity of their own in their spec.
type Identifier interface {
	// Identify writes what is absent of it. It is called once for each cluster, before anything is made.
	Identify(hc *hyperv1.HostedCluster)
}

// IssuerPublisher is a Platform whose cloud wants to know who signs the tokens of a cluster's service accounts.
type IssuerPublisher interface {
	// IssuerFinalizer is on a HostedCluster from before its documents are published until they are gone.
	IssuerFinalizer() string
	// IssuerDocuments are to be published, by their path under the issuer's URL. There are none where that is not the operator's to do, and
	// then the condition, which has no type where there is nothing to tell, says why.
	IssuerDocuments(ctx context.Context, c client.Reader, cluster Cluster) (map[string][]byte, metav1.Condition, error)
	// PublishIssuer publishes them. It says in ValidOIDCConfiguration how that went, and when to look again.
	PublishIssuer(ctx context.Context, cluster Cluster, documents map[string][]byte) (metav1.Condition, time.Duration)
	// WithdrawIssuer removes what may be published. The error is for users.
	WithdrawIssuer(ctx context.Context, cluster Cluster) error
}

// Kept is what became of the image that a pool's machines start from.
type Kept struct {
	// Condition is ValidPlatformImage of the NodePool.
	Condition metav1.Condition
	// Status is the NodePool's status.platform; nil for none.
	Status *hyperv1.NodePoolPlatformStatus
	// Missing tells that no machine can be made yet, for the reason in the condition.
	Missing bool
	// CheckAgain is when the plugin wants to look again, zero for no wish.
	CheckAgain time.Duration
}

// ImageKeeper is a Platform that may keep the image of a pool's machines where these start.
type ImageKeeper interface {
	// KeepImage keeps what the pool asks for, and nothing else. The error is for what the next pass may not run into.
	KeepImage(ctx context.Context, c client.Client, pool Pool) (Kept, error)
	// DropImage removes what was kept for a pool that goes, whose HostedCluster may be nil. waitsFor says what is not gone yet.
	DropImage(ctx context.Context, c client.Client, pool Pool) (waitsFor string, err error)
}

// EffectReporter is a Platform with fields that may change nothing.
type EffectReporter interface {
	// WithoutEffect lists those that the pool sets in vain, as paths below spec.
	WithoutEffect(pool *hyperv1.NodePool) []string
}

// MachineReporter is a Platform that tells more of a pool's machines than how they are on their way to a Node.
type MachineReporter interface {
	// MachineConditions are conditions of the NodePool from its infrastructure machines, of which there is one at least.
	MachineConditions(machines []client.Object) []metav1.Condition
}

// Connection is how far that is which leads nodes to their control plane.
type Connection struct {
	// Conditions are the HostedCluster's. Gone are the types of those that have nothing to tell any more.
	Conditions []metav1.Condition
	Gone       []hyperv1.ConditionType
	// CheckAgain is when the plugin wants to look again, zero for no wish.
	CheckAgain time.Duration
}

// Connector is a Platform that looks after the network of its nodes, such as what leads them to their control plane.
type Connector interface {
	// Connect keeps up to date what it made for that. The Connection holds with an error too.
	Connect(ctx context.Context, c client.Client, cluster Cluster) (Connection, error)
	// Disconnect takes it away, before the control plane goes. waitsFor says what is not gone yet.
	Disconnect(ctx context.Context, c client.Client, cluster Cluster) (waitsFor string, err error)
}

// OperatorAdapter is a Platform in whose cloud the control-plane-operators of release payloads act.
type OperatorAdapter interface {
	// AdaptControlPlaneOperator gives the Deployment what the operator needs for that; its first container is the operator.
	AdaptControlPlaneOperator(cluster Cluster, deployment *appsv1.Deployment)
}

// Environment is what the operator tells a plugin that is being made. The zero value works, for tests.
type Environment struct {
	// Namespace is the operator's own; empty means "hypershift".
	Namespace string
	// ProviderImage is the Cluster API provider that the installer chose for the platform; empty leaves it to the plugin.
	ProviderImage string
	// LogEnv is the environment that makes a program of ours log as the operator does.
	LogEnv []corev1.EnvVar
	// Metrics takes what the plugin counts; nil counts nothing.
	Metrics prometheus.Registerer
	// Own knows the management cluster's addresses, which are not called for tenants; nil knows none.
	Own *managementnetwork.Known
}

// Options are the operator's flags for one platform, and make its plugin when they are parsed.
type Options interface {
	// AddFlags adds the flags, whose names begin with the platform's, or are the compatible product's.
	AddFlags(flags *pflag.FlagSet)
	// New makes the plugin. An error is about the flags, and names them.
	New(env Environment) (Platform, error)
}

// Platform is one platform's plugin. Its methods may be called at the same time for different clusters, and each must
// come back soon: an endpoint of the platform that does not answer must not hold a worker.
type Platform interface {
	// AddToScheme registers the kinds that the plugin reads and writes.
	AddToScheme(scheme *runtime.Scheme) error
	// CRDs names what the management cluster must serve for the platform, beside what all platforms need. Where one is absent the
	// platform is off and its clusters are told so.
	CRDs() []string
	// Underway are the reasons of MachineProblem which only mean that something takes its time, besides those that begin with
	// "Waiting".
	Underway() []string

	// ValidateHostedCluster refuses what the API server's validation cannot see. The error is for users.
	ValidateHostedCluster(hc *hyperv1.HostedCluster) error
	// InfraCluster is the Cluster API infrastructure cluster. nil means that there is none, and then no Cluster
	// either, or that it cannot be made yet.
	InfraCluster(cluster Cluster) *Object
	// ReconcileCredentials brings the credentials into the hosted namespace. What a user has to mend is in the
	// condition; an error is for what the next pass may not run into.
	ReconcileCredentials(ctx context.Context, c client.Client, cluster Cluster) (Credentials, error)
	// CredentialsSecret names the user's Secret beside the HostedCluster that the credentials come from; empty for none.
	CredentialsSecret(hc *hyperv1.HostedCluster) string
	// DeleteCredentials removes what ReconcileCredentials made outside the hosted namespace.
	DeleteCredentials(ctx context.Context, c client.Client, cluster Cluster) error
	// Provider is the Cluster API provider, a component named ProviderName; nil means that there is none.
	Provider(cluster Cluster) *component.Component
	// ReconcileSecretEncryption brings what encryption of type kms needs into the hosted namespace.
	ReconcileSecretEncryption(ctx context.Context, c client.Client, cluster Cluster) error
	// OrphanedMachines is called on each pass of a deletion. It lets go of machines that can never be released,
	// and otherwise says in a sentence why the deletion waits; empty when it has nothing to say.
	OrphanedMachines(ctx context.Context, c client.Client, cluster Cluster) (string, error)

	// ValidateNodePool refuses what the API server's validation cannot see. The error is for users.
	ValidateNodePool(pool Pool) error
	// MachineTemplate is the template that the pool's machines are made from, without name and namespace. nil means
	// that the platform makes no machines.
	MachineTemplate(pool Pool) client.Object
	// RollingTemplate is a copy of a template without what may change without replacing machines.
	RollingTemplate(template client.Object) client.Object
	// MachineCapacity is what the provider said on a template that exists.
	MachineCapacity(template client.Object) MachineCapacity
	// AdjustMachine gives an infrastructure machine that exists what the pool now says of all that RollingTemplate leaves out.
	// The pool's HostedCluster may be gone.
	AdjustMachine(pool Pool, machine client.Object)
	// MachineTemplates is an empty list of the template's kind, for cleaning up; nil if there is none.
	MachineTemplates() client.ObjectList
	// UserDataFormat is what the pool's machines read their first-boot configuration as. running tells that the pool has machines.
	UserDataFormat(ctx context.Context, c client.Reader, pool Pool, running bool) (UserData, error)
	// CustomizeIgnition adds to the first-boot configuration what machines of this platform need.
	CustomizeIgnition(pool Pool, config *ignition.Config)
	// MachineProblem reads an infrastructure machine's conditions: the reason and an actionable message of what is
	// wrong or being waited for; empty when all is well.
	MachineProblem(machine client.Object) (reason, message string)
	// MachineStart is how far an infrastructure machine is on its way to a Node.
	MachineStart(machine client.Object) MachineStart
	// NodeStartup is how long a machine of the pool may take until its Node is there, when it waits for nothing; zero leaves
	// it to the platform's traits.
	NodeStartup(pool Pool) time.Duration
	// Machines is an empty list of the infrastructure machines' kind; nil if there is none.
	Machines() client.ObjectList
	// Watched are the kinds in hosted namespaces whose changes concern the HostedCluster or its NodePools.
	Watched() []client.Object
}
