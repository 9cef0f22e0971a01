// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/metrics"
)

// unsupportedPlatform is the reason why the CPUs of machines are not counted: MAAS reports them per machine, not per
// instance type as a cloud does.
const unsupportedPlatform = "unsupported platform"

// poolTransitions are the conditions of a NodePool whose transition time is measured.
var poolTransitions = map[string]bool{
	hyperv1.NodePoolReachedIgnitionEndpoint: true, hyperv1.NodePoolAllMachinesReadyConditionType: true,
	hyperv1.NodePoolAllNodesHealthyConditionType: true,
}

type poolMetrics struct {
	snapshot *metrics.Snapshot

	count, failures, perCluster, cpus, cpusError *prometheus.GaugeVec
	rollingOut, size, available, deleting        *prometheus.GaugeVec
	transition                                   *prometheus.HistogramVec
}

func newPoolMetrics(s *metrics.Snapshot) *poolMetrics {
	perCluster := func(name, help string, more ...string) *prometheus.GaugeVec {
		return s.Gauge(name, help, append([]string{"namespace", "name", "_id", "platform"}, more...)...)
	}
	perPool := func(name, help string) *prometheus.GaugeVec {
		return s.Gauge(name, help, "namespace", "name", "_id", "cluster_name", "platform")
	}
	return &poolMetrics{
		snapshot: s,
		count:    s.Gauge("hypershift_nodepools", "NodePools by platform.", "platform"),
		failures: s.Gauge("hypershift_nodepools_failure_conditions",
			"NodePools by platform and condition that is not as it should be; not_X means that X is not True.", "platform", "condition"),
		perCluster: perCluster("hypershift_hostedcluster_nodepools", "NodePools of a HostedCluster."),
		cpus:       perCluster("hypershift_cluster_vcpus", "Virtual CPUs of the nodes of a HostedCluster; -1 where the platform does not report them."),
		cpusError:  perCluster("hypershift_cluster_vcpus_computation_error", "1 where hypershift_cluster_vcpus is -1.", "reason"),
		rollingOut: perPool("hypershift_nodepools_initial_rolling_out_duration_seconds",
			"Seconds since the creation of a NodePool whose machines have not all run a release yet."),
		size:      perPool("hypershift_nodepools_size", "Desired number of machines of a NodePool."),
		available: perPool("hypershift_nodepools_available_replicas", "Machines of a NodePool that are ready."),
		deleting:  perPool("hypershift_nodepools_deleting_duration_seconds", "Seconds since the deletion of a NodePool that is still there."),
		transition: s.Histogram("hypershift_nodepools_transition_seconds",
			"Seconds from the creation of NodePools until a condition is True.", transitionBuckets, "condition"),
	}
}

func (m *poolMetrics) compute(pools []hyperv1.NodePool, clusters []hyperv1.HostedCluster, sizes map[client.ObjectKey]int32) {
	startAtZero(m.count, m.failures, poolFailures)
	known := map[client.ObjectKey]*hyperv1.HostedCluster{}
	for i := range clusters {
		hc := &clusters[i]
		known[client.ObjectKeyFromObject(hc)] = hc
		labels := labelsOf(hc, string(hc.Spec.Platform.Type))
		m.perCluster.WithLabelValues(labels...).Set(0)
		m.cpus.WithLabelValues(labels...).Set(0)
	}
	for i := range pools {
		pool := &pools[i]
		conditions := conditionsOf(pool)
		m.count.WithLabelValues(string(pool.Spec.Platform.Type)).Inc()
		countFailures(m.failures, poolFailures, pool.Spec.Platform.Type, conditions)
		for j := range conditions {
			if c := &conditions[j]; poolTransitions[c.Type] && m.snapshot.Reached(pool, c) {
				m.transition.WithLabelValues(c.Type).Observe(c.LastTransitionTime.Sub(pool.CreationTimestamp.Time).Seconds())
			}
		}
		hc := known[client.ObjectKey{Namespace: pool.Namespace, Name: pool.Spec.ClusterName}]
		m.ofCluster(pool, hc)
		m.ofPool(pool, hc, sizes)
	}
}

func (m *poolMetrics) ofCluster(pool *hyperv1.NodePool, hc *hyperv1.HostedCluster) {
	if hc == nil {
		return
	}
	labels := labelsOf(hc, string(hc.Spec.Platform.Type))
	m.perCluster.WithLabelValues(labels...).Inc()
	if pool.Status.Replicas > 0 {
		m.cpus.WithLabelValues(labels...).Set(-1)
		m.cpusError.WithLabelValues(append(labels, unsupportedPlatform)...).Set(1)
	}
}

func (m *poolMetrics) ofPool(pool *hyperv1.NodePool, hc *hyperv1.HostedCluster, sizes map[client.ObjectKey]int32) {
	id, size := "", pool.Spec.Replicas
	if hc != nil {
		id = hc.Spec.ClusterID
		if wanted, ok := sizes[client.ObjectKey{Namespace: naming.ControlPlaneNamespace(hc), Name: pool.Name}]; ok {
			size = &wanted
		}
	}
	labels := []string{pool.Namespace, pool.Name, id, pool.Spec.ClusterName, string(pool.Spec.Platform.Type)}
	if size != nil {
		m.size.WithLabelValues(labels...).Set(float64(*size))
	}
	m.available.WithLabelValues(labels...).Set(float64(pool.Status.Replicas))
	if pool.Status.Version == "" {
		m.rollingOut.WithLabelValues(labels...).Set(m.snapshot.Clock.Since(pool.CreationTimestamp.Time).Seconds())
	}
	if !pool.DeletionTimestamp.IsZero() {
		m.deleting.WithLabelValues(labels...).Set(m.snapshot.Clock.Since(pool.DeletionTimestamp.Time).Seconds())
	}
}

// conditionsOf converts the conditions of a NodePool, which have their own type, to metav1.Condition.
func conditionsOf(pool *hyperv1.NodePool) []metav1.Condition {
	var all []metav1.Condition
	for _, c := range pool.Status.Conditions {
		all = append(all, metav1.Condition{Type: c.Type, Status: metav1.ConditionStatus(c.Status), LastTransitionTime: c.LastTransitionTime})
	}
	return all
}

// wantedMachines returns the spec.replicas of each MachineDeployment and MachineSet. An autoscaler changes them, and a
// NodePool does not report them.
func wantedMachines(ctx context.Context, reader client.Reader) (map[client.ObjectKey]int32, error) {
	deployments, sets := &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}
	if err := reader.List(ctx, deployments); err != nil {
		return nil, fmt.Errorf("listing MachineDeployments: %w", err)
	}
	if err := reader.List(ctx, sets); err != nil {
		return nil, fmt.Errorf("listing MachineSets: %w", err)
	}
	all := map[client.ObjectKey]int32{}
	for i := range sets.Items {
		if replicas := sets.Items[i].Spec.Replicas; replicas != nil {
			all[client.ObjectKeyFromObject(&sets.Items[i])] = *replicas
		}
	}
	for i := range deployments.Items {
		if replicas := deployments.Items[i].Spec.Replicas; replicas != nil {
			all[client.ObjectKeyFromObject(&deployments.Items[i])] = *replicas
		}
	}
	return all, nil
}
