// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/journey"
)

// sample is a snapshot of the cluster and its pool. The pool's status is read before the machines and nodes, and the
// cluster's status after them. In this order, a concurrent change does not look like a false status. The snapshot
// leaves out the machines of failingPool.
type sample struct {
	cluster  hyperv1.HostedCluster
	pool     hyperv1.NodePool
	machines clusterv1.MachineList
	nodes    corev1.NodeList
}

func (s *suite) sample(ctx context.Context) (*sample, error) {
	now := &sample{}
	key := client.ObjectKey{Namespace: journey.Namespace, Name: s.cluster}
	if err := s.c.Get(ctx, key, &now.pool); err != nil {
		return nil, err
	}
	if err := s.c.List(ctx, &now.machines, client.InNamespace(journey.HostedNamespace(s.cluster))); err != nil {
		return nil, err
	}
	now.machines.Items = slices.DeleteFunc(now.machines.Items, func(m clusterv1.Machine) bool {
		return m.Labels[clusterv1.MachineDeploymentNameLabel] == failingPool
	})
	nodes, err := s.nodes(ctx)
	if err != nil {
		return nil, err
	}
	now.nodes = *nodes
	return now, s.c.Get(ctx, key, &now.cluster)
}

// nodes lists the nodes of the hosted cluster.
func (s *suite) nodes(ctx context.Context) (*corev1.NodeList, error) {
	guest, err := s.GuestClient(s.cluster)
	if err != nil {
		return nil, err
	}
	nodes := &corev1.NodeList{}
	return nodes, guest.List(ctx, nodes)
}

// clusterLooked reports whether the operator has observed the cluster's newest spec.
func (n *sample) clusterLooked() bool {
	progressing := meta.FindStatusCondition(n.cluster.Status.Conditions, string(hyperv1.HostedClusterProgressing))
	return progressing != nil && progressing.ObservedGeneration == n.cluster.Generation
}

func (n *sample) progressing() bool {
	return meta.IsStatusConditionTrue(n.cluster.Status.Conditions, string(hyperv1.HostedClusterProgressing))
}

// newest returns the newest entry of the cluster's history.
func (n *sample) newest() configv1.UpdateHistory {
	if n.cluster.Status.Version == nil || len(n.cluster.Status.Version.History) == 0 {
		return configv1.UpdateHistory{}
	}
	return n.cluster.Status.Version.History[0]
}

// completed returns the newest version that the control plane has completed.
func (n *sample) completed() semver.Version {
	for _, entry := range n.cluster.Status.Version.History {
		if entry.State == configv1.CompletedUpdate {
			return parseVersion(entry.Version)
		}
	}
	return semver.Version{}
}

// poolLooked reports whether the operator has observed the pool's newest spec.
func (n *sample) poolLooked() bool {
	for _, c := range n.pool.Status.Conditions {
		if c.Type == hyperv1.NodePoolUpdatingVersionConditionType {
			return c.ObservedGeneration == n.pool.Generation
		}
	}
	return false
}

func (n *sample) poolTrue(conditionType string) bool {
	for _, c := range n.pool.Status.Conditions {
		if c.Type == conditionType {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// poolDone reports whether the pool's status says that all of its nodes match its spec.
func (n *sample) poolDone() bool {
	return n.poolLooked() && !n.poolTrue(hyperv1.NodePoolUpdatingVersionConditionType) && !n.poolTrue(hyperv1.NodePoolUpdatingConfigConditionType) &&
		n.pool.Status.Version == n.newest().Version
}

func (n *sample) currentConfig() string {
	return n.pool.Annotations[hyperv1.NodePoolCurrentConfigAnnotation]
}

// secrets returns the names of the machines' bootstrap Secrets, which contain the hash of release and configuration.
func (n *sample) secrets() sets.Set[string] {
	names := sets.New[string]()
	for _, m := range n.machines.Items {
		if name := m.Spec.Bootstrap.DataSecretName; name != nil {
			names.Insert(*name)
		}
	}
	return names
}

// machineUIDs returns the UIDs of all machines of the cluster.
func (n *sample) machineUIDs() sets.Set[types.UID] {
	uids := sets.New[types.UID]()
	for _, m := range n.machines.Items {
		uids.Insert(m.UID)
	}
	return uids
}

// newestNode returns the newest kubelet version of the nodes.
func (n *sample) newestNode() semver.Version {
	newest := semver.Version{}
	for _, node := range n.nodes.Items {
		if v := parseVersion(node.Status.NodeInfo.KubeletVersion); v.GT(newest) {
			newest = v
		}
	}
	return newest
}

func (n *sample) String() string {
	return fmt.Sprintf("cluster %s %s (progressing %t), pool %s (updating %t), %d machines with %d configurations, newest node %s",
		n.newest().Version, n.newest().State, n.progressing(), n.pool.Status.Version,
		n.poolTrue(hyperv1.NodePoolUpdatingVersionConditionType), len(n.machines.Items), n.secrets().Len(), n.newestNode())
}
