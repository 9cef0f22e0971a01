// SPDX-License-Identifier: Apache-2.0

// Package metrics exports Prometheus metrics about machines, computed from the cache at each scrape.
package metrics

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/cluster"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/quarantine"
	"github.com/openshift/hypershift/support/metrics"
)

// unallocated is the state of a MaasMachine without a MAAS machine.
const unallocated = "Unallocated"

var (
	deployBuckets = []float64{60, 120, 180, 300, 420, 600, 900, 1200, 1800, 2700, 3600}
	joinBuckets   = []float64{10, 30, 60, 120, 300, 600, 900, 1200, 1800, 2100}
)

type machineMetrics struct {
	snapshot *metrics.Snapshot

	machines, problems, available, failures, quarantined, unreleased *prometheus.GaugeVec
	deploy, join                                                     *prometheus.HistogramVec
}

// New returns a collector for the machines in a cache.
func New(reader client.Reader, clock clock.PassiveClock) prometheus.Collector {
	s := metrics.NewSnapshot(clock)
	m := &machineMetrics{
		snapshot: s,
		machines: s.Gauge("capmaas_machines", "MaasMachines by the state of their machine in MAAS.", "namespace", "cluster", "state"),
		problems: s.Gauge("capmaas_machines_not_ready", "MaasMachines that are not Ready, by the reason that they give.", "namespace", "cluster", "reason"),
		available: s.Gauge("capmaas_maas_available", "1 while MAAS answers and takes the API key, 0 while it does not; the reason is that of the MaasCluster.",
			"namespace", "cluster", "reason"),
		failures:    s.Gauge("capmaas_machine_deploy_failures", "Failed deployments that a cluster remembers, of all machines.", "namespace", "cluster"),
		quarantined: s.Gauge("capmaas_machines_quarantined", "Machines in MAAS that a cluster has quarantined.", "namespace", "cluster"),
		unreleased: s.Gauge("capmaas_machines_unreleased", "Machines that MAAS has not released although their MaasMachines are gone.",
			"namespace", "cluster"),
		deploy: s.Histogram("capmaas_machine_deploy_duration_seconds",
			"Seconds from the allocation for a MaasMachine until a machine is Deployed, all attempts included.", deployBuckets),
		join: s.Histogram("capmaas_machine_join_duration_seconds", "Seconds from Deployed until the machine's Node is there.", joinBuckets),
	}
	s.Compute = func(ctx context.Context) error {
		machines, clusters := &infrav1.MaasMachineList{}, &infrav1.MaasClusterList{}
		if err := reader.List(ctx, machines); err != nil {
			return fmt.Errorf("listing MaasMachines: %w", err)
		}
		if err := reader.List(ctx, clusters); err != nil {
			return fmt.Errorf("listing MaasClusters: %w", err)
		}
		for i := range machines.Items {
			m.ofMachine(&machines.Items[i])
		}
		for i := range clusters.Items {
			m.ofCluster(&clusters.Items[i])
		}
		return nil
	}
	return s
}

func (m *machineMetrics) ofMachine(mm *infrav1.MaasMachine) {
	name := mm.Labels[clusterv1.ClusterNameLabel]
	state := unallocated
	if mm.Status.MachineState != nil {
		state = *mm.Status.MachineState
	}
	m.machines.WithLabelValues(mm.Namespace, name, state).Inc()
	if ready := find(mm.Status.Conditions, machine.ConditionReady); ready != nil && ready.Status != metav1.ConditionTrue {
		m.problems.WithLabelValues(mm.Namespace, name, ready.Reason).Inc()
	}
	allocated, deployed := find(mm.Status.Conditions, machine.ConditionAllocated), find(mm.Status.Conditions, machine.ConditionDeployed)
	if m.snapshot.Reached(mm, deployed) && allocated != nil {
		m.deploy.WithLabelValues().Observe(between(allocated, deployed))
	}
	if node := find(mm.Status.Conditions, machine.ConditionNode); m.snapshot.Reached(mm, node) && deployed != nil {
		m.join.WithLabelValues().Observe(between(deployed, node))
	}
}

func find(conditions []metav1.Condition, conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(conditions, conditionType)
}

func between(from, to *metav1.Condition) float64 {
	return max(0, to.LastTransitionTime.Sub(from.LastTransitionTime.Time).Seconds())
}

func (m *machineMetrics) ofCluster(mc *infrav1.MaasCluster) {
	name := mc.Labels[clusterv1.ClusterNameLabel]
	if name == "" {
		name = mc.Name
	}
	if c := find(mc.Status.Conditions, cluster.ConditionMAAS); c != nil {
		value := 0.0
		if c.Status == metav1.ConditionTrue {
			value = 1
		}
		m.available.WithLabelValues(mc.Namespace, name, c.Reason).Set(value)
	}
	failures, quarantined := 0, 0
	for _, record := range quarantine.Records.Of(mc) {
		failures += record.Failures
		if record.Quarantined {
			quarantined++
		}
	}
	m.failures.WithLabelValues(mc.Namespace, name).Set(float64(failures))
	m.quarantined.WithLabelValues(mc.Namespace, name).Set(float64(quarantined))
	m.unreleased.WithLabelValues(mc.Namespace, name).Set(float64(len(handover.Records.Of(mc))))
}
