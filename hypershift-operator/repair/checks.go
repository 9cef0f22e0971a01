// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// maxNamed is the maximum number of machines in a message.
const maxNamed = 5

// clusterCauses are conditions of the HostedCluster whose cause affects all machines.
var clusterCauses = []string{
	string(hyperv1.HostedClusterAvailable), string(hyperv1.InfrastructureReady),
	string(hyperv1.ControlPlaneConnectionAvailable), string(hyperv1.PlatformCredentialsFound),
	string(hyperv1.ValidHostedClusterConfiguration),
}

// poolCauses are conditions of the NodePool whose cause would also affect a replacement.
var poolCauses = []string{
	hyperv1.NodePoolValidPlatformConfigConditionType, hyperv1.NodePoolValidReleaseImageConditionType,
	hyperv1.NodePoolValidPlatformImageType, hyperv1.NodePoolValidArchPlatform,
	hyperv1.NodePoolValidMachineConfigConditionType, hyperv1.NodePoolValidTuningConfigConditionType,
	hyperv1.NodePoolValidGeneratedPayloadConditionType, hyperv1.NodePoolValidMachineTemplateConditionType,
	hyperv1.NodePoolIgnitionEndpointAvailableConditionType,
}

func (s State) paused(Machine) (reason, why string) {
	if !s.Paused {
		return "", ""
	}
	return hyperv1.NodePoolReconciliationPausedReason,
		"the NodePool or its HostedCluster is paused; remove spec.pausedUntil to continue"
}

// sharedByCluster requires that the control plane works. The connection to the nodes may be lost if the candidate is
// gone, because the candidate may have been the only node.
func (s State) sharedByCluster(candidate Machine) (reason, why string) {
	for _, name := range clusterCauses {
		c := meta.FindStatusCondition(s.Cluster, name)
		known := c != nil && c.Status != metav1.ConditionUnknown
		switch {
		case known && c.Status == metav1.ConditionTrue:
		case candidate.Gone && name == string(hyperv1.ControlPlaneConnectionAvailable):
		case known, name == string(hyperv1.HostedClusterAvailable):
			return hyperv1.NodePoolSharedCauseReason, fmt.Sprintf(
				"condition %s of the HostedCluster is not True, which hits all machines. "+
					"Follow the message of that condition; if the machine itself is broken, delete the Machine", name)
		}
	}
	return "", ""
}

func (s State) sharedByPool(Machine) (reason, why string) {
	for _, name := range poolCauses {
		if meta.IsStatusConditionFalse(s.Pool, name) {
			return hyperv1.NodePoolSharedCauseReason, fmt.Sprintf("condition %s of the NodePool is False, "+
				"which hits another machine too; follow the message of that condition", name)
		}
	}
	return "", ""
}

func (s State) sharedByProvider(Machine) (reason, why string) {
	if s.Provider == "" {
		return "", ""
	}
	return hyperv1.NodePoolSharedCauseReason, fmt.Sprintf("the provider of machines reports %s, "+
		"which hits another machine too; the condition AllMachinesReady says what to do", s.Provider)
}

// sharedByNetwork holds the repair back for a cause that lies outside of the machine. The cluster network may lack a pod
// range for another node, or an image of the network cannot be pulled.
func (s State) sharedByNetwork(candidate Machine) (reason, why string) {
	if !candidate.WithoutNetwork {
		return "", ""
	}
	return hyperv1.NodePoolSharedCauseReason, "the network of pods is not ready on its node, which hits another machine " +
		"too. Check that clusterNetwork has a range for each node, and the pods of the network; " +
		"if the machine itself is broken, delete the Machine"
}

// group is a set of machines that one cause can affect at once.
type group struct {
	name    string
	failing []string
	total   int
}

// groups returns the pool of the candidate, its zone in all pools, and the cluster. A machine whose own failure is
// proven does not count, unless it is the candidate.
func (s State) groups(candidate Machine) (pool, zone, cluster group) {
	pool.name, zone.name, cluster.name = "pool", "zone "+candidate.Zone, "cluster"
	for _, m := range s.Machines {
		if !m.Deleted.IsZero() || !m.Healthy && !m.failing() {
			continue
		}
		inZone := candidate.Zone != "" && m.Zone == candidate.Zone
		for g, in := range map[*group]bool{&pool: !m.OtherPool, &zone: inZone, &cluster: true} {
			if !in {
				continue
			}
			g.total++
			if m.failing() && (!m.proven() || m.Name == candidate.Name) {
				g.failing = append(g.failing, m.Name)
			}
		}
	}
	return pool, zone, cluster
}

// crowd holds the repair back while several machines fail, because the cause may be shared.
func (s State) crowd(candidate Machine) (reason, why string) {
	pool, zone, cluster := s.groups(candidate)
	if pool.total <= smallPool && len(pool.failing) > 1 || pool.most() {
		return pool.together()
	}
	for _, g := range []group{zone, cluster} {
		if g.most() {
			return g.together()
		}
	}
	all := group{name: "pool", total: pool.total}
	for _, m := range s.Machines {
		if !m.OtherPool && m.failing() {
			all.failing = append(all.failing, m.Name)
		}
	}
	if len(all.failing) > s.MaxUnhealthy {
		return all.together()
	}
	return "", ""
}

// most reports whether several machines fail, and more than half of the group.
func (g group) most() bool { return len(g.failing) > 1 && 2*len(g.failing) > g.total }

func (g group) together() (reason, why string) {
	slices.Sort(g.failing)
	names := strings.Join(g.failing[:min(len(g.failing), maxNamed)], ", ")
	return hyperv1.NodePoolTooManyUnhealthyReason, fmt.Sprintf("%d of %d machines of the %s fail at once, "+
		"so the cause may be shared. Check the network and the configuration; "+
		"if the machines themselves are broken, delete the Machines one by one: %s", len(g.failing), g.total, g.name, names)
}

// alone requires another healthy Node, which shows that nodes reach the API server. The conditions of the cluster may
// be out of date, since their writer can be lost together with the nodes.
func (s State) alone(candidate Machine) (reason, why string) {
	healthy := slices.ContainsFunc(s.Machines, func(m Machine) bool { return m.Healthy && m.Deleted.IsZero() })
	if healthy || candidate.Gone || !candidate.Joined {
		return "", ""
	}
	return hyperv1.NodePoolNoHealthyNodeReason, "no other node of the cluster is healthy, so nothing shows that nodes " +
		"reach the API server. Check the network; if the machine itself is broken, delete the Machine"
}

// inProgress allows one repair of the pool at a time. In small pools, and in the zone of the candidate, it also waits
// for deletions and installations. A new node there shows that the zone works.
func (s State) inProgress(candidate Machine) (reason, why string) {
	small := s.size() <= smallPool
	for _, m := range s.Machines {
		if m.OtherPool || m.Name == candidate.Name {
			continue
		}
		deleting := !m.Deleted.IsZero() && s.Now.Sub(m.Deleted) < leaving
		repairing := m.Marked && (m.Deleted.IsZero() || deleting)
		near := small || candidate.Zone != "" && m.Zone == candidate.Zone
		if repairing || near && (deleting || m.Starting) {
			return hyperv1.NodePoolWaitingForRepairReason,
				fmt.Sprintf("Machine %s is being replaced or installed; the repair continues afterwards", m.Name)
		}
	}
	return "", ""
}
