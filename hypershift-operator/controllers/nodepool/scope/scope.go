// SPDX-License-Identifier: Apache-2.0

// Package scope holds what all phases of a NodePool's reconcile need: the pool, what the controller observed of its
// cluster and machines, and the conditions that phases set.
package scope

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/pause"
	"github.com/openshift/hypershift/support/platforms"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// maxResourcesName leaves room for the prefix that Cluster API adds to label keys.
const maxResourcesName = 43

// Scope is the state of one reconcile that all phases share.
type Scope struct {
	// Pool is the NodePool as read from the API server.
	Pool *hyperv1.NodePool
	Now  time.Time
	// HC is nil if the HostedCluster does not exist.
	HC *hyperv1.HostedCluster
	// Platform is nil if no plugin implements it. If PlatformServed is false, the platform's kinds are not installed.
	Platform       platform.Platform
	PlatformServed bool
	// Machines are the Machines of the pool, and Neighbors the Machines of the cluster's other pools.
	Machines, Neighbors []*clusterv1.Machine
	// Infra holds the platform's objects behind the machines, by name; nil until they are known.
	Infra map[string]client.Object
	// Release is the pool's payload; nil until it is known.
	Release *releaseinfo.ReleaseImage
	// Stream is the operating system stream; empty if the release has only one, or before one is chosen.
	Stream string
	// Kept is the image that the machines boot from; nil if the platform does not manage one.
	Kept *platform.Kept

	// Conditions are those that phases set in this reconcile. A condition that no phase set keeps its last state. The
	// conditions in Cleared are removed.
	Conditions map[string]metav1.Condition
	Cleared    []string
}

// New returns the scope of a pool.
func New(pool *hyperv1.NodePool) *Scope {
	return &Scope{Pool: pool, Conditions: map[string]metav1.Condition{}}
}

// Key returns namespace/name, which identifies the pool in annotations.
func (s *Scope) Key() string { return s.Pool.Namespace + "/" + s.Pool.Name }

// Namespace returns the hosted control plane namespace. It depends on the pool alone, so a pool whose cluster is gone
// still finds its objects.
func (s *Scope) Namespace() string {
	return naming.ControlPlaneNamespace(&hyperv1.HostedCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Pool.Namespace, Name: s.Pool.Spec.ClusterName},
	})
}

// Named returns the metadata of the object that has the pool's name in the hosted control plane namespace.
func (s *Scope) Named() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.Namespace(), Name: s.Pool.Name}
}

// ResourcesName returns the label that selects the machines of this pool. It is both the key and the value of the
// label.
func (s *Scope) ResourcesName() string {
	return naming.Join(s.HC.Spec.InfraID+"-"+s.Pool.Spec.ClusterName, s.Pool.Name, maxResourcesName)
}

// Traits returns the traits of the pool's platform.
func (s *Scope) Traits() platforms.Traits {
	traits, _ := platforms.Of(s.Pool.Spec.Platform.Type)
	return traits
}

// Distribution returns the traits of the distribution that the pool's release contains.
func (s *Scope) Distribution() distributions.Traits {
	return distributions.Of(s.Release.Distribution())
}

// InPlace reports whether nodes are updated without being replaced.
func (s *Scope) InPlace() bool {
	return s.Pool.Spec.Management.UpgradeType == hyperv1.UpgradeTypeInPlace
}

// Paused reports whether the pool is paused.
func (s *Scope) Paused() bool {
	return pause.Until(s.Pool.Spec.PausedUntil, s.Now).Paused
}

// View returns the data of the pool that the platform's plugin may read.
func (s *Scope) View() platform.Pool {
	view := platform.Pool{NodePool: s.Pool, HostedCluster: s.HC, Release: s.Release, Stream: s.Stream}
	if s.Kept != nil {
		view.Kept = s.Kept.Status
	}
	return view
}

// IsTrue reports whether a condition was true after the last reconcile.
func (s *Scope) IsTrue(conditionType string) bool {
	last := Find(s.Pool.Status.Conditions, conditionType)
	return last != nil && last.Status == corev1.ConditionTrue
}
