// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/platforms"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// scope is what one pass knows. Each field says who sets it.
type scope struct {
	// pool is the object as it was read.
	pool *hyperv1.NodePool

	// Set by observe. hc is nil when there is no such cluster.
	now time.Time
	hc  *hyperv1.HostedCluster
	// platform is nil where there is no plugin. One that is not platformServed lacks its kinds.
	platform       platform.Platform
	platformServed bool
	machines       []*clusterv1.Machine
	// refused says why the hosted namespace is not the cluster's; empty when it is, or is not there.
	refused string

	// infra are the platform's objects behind the machines by name, nil while they are not known; set by the machines phase.
	infra map[string]client.Object

	// Set by the release image phase: the control plane, nil while there is none, the pool's payload, what payloads are read with,
	// the pull secret's content, and the version that nodes must not be newer than, empty while there is none.
	hcp                 *hyperv1.HostedControlPlane
	release             *releaseinfo.ReleaseImage
	access              release.Access
	pullSecret          []byte
	controlPlaneVersion string
	// ignitionCA is PEM; set by the ignition endpoint phase.
	ignitionCA []byte
	// config is what nodes are configured with; set by the node configuration phase.
	config config
	// userData names the current user-data Secret; set by the token phase. token is the token Secret.
	userData string
	token    *corev1.Secret
	// replicas is how many machines of the pool are available; set by the machines phase.
	replicas *int32
	// capacity is what the next machine brings; set with the template by the phase of Cluster API's machines.
	capacity platform.MachineCapacity
	// kept is what the machines start from, nil where the platform does not say; set by the phase of the machine image.
	kept *platform.Kept
	// version is the version that all machines have reached, empty while they have not; set by the phase of Cluster API's
	// machines.
	version string

	// conditions are those that phases set in this pass. Those that nobody set keep their last state; those in
	// cleared are removed.
	conditions map[string]metav1.Condition
	cleared    []string
}

func newScope(pool *hyperv1.NodePool) *scope {
	return &scope{pool: pool, conditions: map[string]metav1.Condition{}}
}

// key is how a pool is written in annotations: namespace/name.
func (s *scope) key() string { return s.pool.Namespace + "/" + s.pool.Name }

// namespace is the hosted control plane's. It follows from the pool alone, so that a pool whose cluster is gone finds
// what it made.
func (s *scope) namespace() string {
	return naming.ControlPlaneNamespace(&hyperv1.HostedCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.pool.Namespace, Name: s.pool.Spec.ClusterName},
	})
}

func (s *scope) setCondition(c metav1.Condition) { s.conditions[c.Type] = c }

func (s *scope) accept(conditionType, message string) {
	s.setCondition(condition.True(conditionType, hyperv1.AsExpectedReason, message))
}

func (s *scope) reject(conditionType, reason, message string) {
	s.setCondition(condition.False(conditionType, reason, message))
}

// clear removes a condition that has nothing to tell any more, also when this pass told it before.
func (s *scope) clear(conditionType string) {
	delete(s.conditions, conditionType)
	s.cleared = append(s.cleared, conditionType)
}

// traits of the pool's platform.
func (s *scope) traits() platforms.Traits {
	traits, _ := platforms.Of(s.pool.Spec.Platform.Type)
	return traits
}

// distribution are the traits of what the pool's release carries.
func (s *scope) distribution() distributions.Traits {
	return distributions.Of(s.release.Distribution())
}

// inPlace tells whether nodes are updated without being replaced.
func (s *scope) inPlace() bool {
	return s.pool.Spec.Management.UpgradeType == hyperv1.UpgradeTypeInPlace
}

// view is what the platform's plugin may see.
func (s *scope) view() platform.Pool {
	view := platform.Pool{NodePool: s.pool, HostedCluster: s.hc, Release: s.release, Stream: s.config.stream}
	if s.kept != nil {
		view.Kept = s.kept.Status
	}
	return view
}

func annotate(obj metav1.Object, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}
