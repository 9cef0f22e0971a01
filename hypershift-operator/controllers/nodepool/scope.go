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

// scope holds the state of one reconcile. Each field's comment names the phase that sets it.
type scope struct {
	// pool is the NodePool as read from the API server.
	pool *hyperv1.NodePool

	// Set by observe. hc is nil if the HostedCluster does not exist.
	now time.Time
	hc  *hyperv1.HostedCluster
	// platform is nil if no plugin implements it. If platformServed is false, the platform's kinds are not installed.
	platform       platform.Platform
	platformServed bool
	// machines are the Machines of the pool, and neighbors the Machines of the cluster's other pools.
	machines, neighbors []*clusterv1.Machine
	// refused is why the control plane namespace is not this cluster's; empty if it is, or if it does not exist.
	refused string

	// infra holds the platform's objects behind the machines, by name; nil until they are known. The machines phase sets
	// it.
	infra map[string]client.Object

	// The release image phase sets these fields. hcp is nil while there is no control plane. release is the pool's
	// payload. access contains the credentials, CAs, and mirrors to read payloads with. pullSecret is the content of
	// the pull secret. controlPlaneVersion is the maximum version of nodes, empty while there is none.
	hcp                 *hyperv1.HostedControlPlane
	release             *releaseinfo.ReleaseImage
	access              release.Access
	pullSecret          []byte
	controlPlaneVersion string
	// ignitionCA is PEM. The ignition endpoint phase sets it.
	ignitionCA []byte
	// config is the configuration of the nodes. The node configuration phase sets it.
	config config
	// userData is the name of the current user-data Secret. token is the token Secret. The token phase sets both.
	userData string
	token    *corev1.Secret
	// replicas is the number of available machines of the pool. The machines phase sets it.
	replicas *int32
	// capacity is the capacity of the next machine. The phase of the Cluster API machines sets it together with the
	// template.
	capacity platform.MachineCapacity
	// kept is the image that the machines boot from; nil if the platform does not manage one. The machine image phase sets
	// it.
	kept *platform.Kept
	// version is the version that all machines have reached; empty until then. The phase of the Cluster API machines sets
	// it.
	version string

	// conditions are those that phases set in this reconcile. A condition that no phase set keeps its last state. The
	// conditions in cleared are removed.
	conditions map[string]metav1.Condition
	cleared    []string
}

func newScope(pool *hyperv1.NodePool) *scope {
	return &scope{pool: pool, conditions: map[string]metav1.Condition{}}
}

// key returns namespace/name, which identifies the pool in annotations.
func (s *scope) key() string { return s.pool.Namespace + "/" + s.pool.Name }

// namespace returns the hosted control plane namespace. It depends on the pool alone, so a pool whose cluster is gone
// still finds its objects.
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

// clear removes a condition that no longer applies, even if this reconcile has set it.
func (s *scope) clear(conditionType string) {
	delete(s.conditions, conditionType)
	s.cleared = append(s.cleared, conditionType)
}

// traits returns the traits of the pool's platform.
func (s *scope) traits() platforms.Traits {
	traits, _ := platforms.Of(s.pool.Spec.Platform.Type)
	return traits
}

// distribution returns the traits of the distribution that the pool's release contains.
func (s *scope) distribution() distributions.Traits {
	return distributions.Of(s.release.Distribution())
}

// inPlace reports whether nodes are updated without being replaced.
func (s *scope) inPlace() bool {
	return s.pool.Spec.Management.UpgradeType == hyperv1.UpgradeTypeInPlace
}

// view returns the data of the pool that the platform's plugin may read.
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
