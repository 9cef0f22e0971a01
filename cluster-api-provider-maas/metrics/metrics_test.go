// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/cluster"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/quarantine"
	"github.com/openshift/hypershift/support/metrics/metricstest"
)

var start = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func maasMachine(name, state string, conditions ...metav1.Condition) *infrav1.MaasMachine {
	m := &infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name, UID: types.UID(name),
		Labels: map[string]string{clusterv1.ClusterNameLabel: "demo"}}}
	if state != "" {
		m.Status.MachineState = ptr.To(state)
	}
	m.Status.Conditions = conditions
	return m
}

// is returns a condition that became True at the given time after the start; a negative duration is before it.
func is(conditionType string, after time.Duration) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(start.Add(after))}
}

func isNot(conditionType, reason string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason}
}

func maasCluster(t *testing.T, records ...quarantine.Record) *infrav1.MaasCluster {
	t.Helper()
	mc := &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}}
	for _, record := range records {
		if err := quarantine.Records.Set(mc, record.Hostname, record); err != nil {
			t.Fatal(err)
		}
	}
	return mc
}

const of = `cluster="demo",namespace="clusters-demo"`

func TestMetrics(t *testing.T) {
	refused := maasCluster(t)
	refused.Status.Conditions = []metav1.Condition{isNot(cluster.ConditionMAAS, machine.ReasonUnauthorized)}
	well := maasCluster(t, quarantine.Record{Hostname: "one", Failures: 2, Quarantined: true}, quarantine.Record{Hostname: "two", Failures: 1})
	well.Status.Conditions = []metav1.Condition{{Type: cluster.ConditionMAAS, Status: metav1.ConditionTrue, Reason: "AsExpected"}}
	dead := maasCluster(t)
	if err := handover.Records.Set(dead, "abc", handover.Record{UID: "u"}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		objects []client.Object
		want    metricstest.Samples
	}{
		{"When machines are in several states, it should count them by state", []client.Object{
			maasMachine("a", "Deployed"), maasMachine("b", "Deployed"), maasMachine("c", "Releasing"), maasMachine("d", "")},
			metricstest.Samples{
				`capmaas_machines{` + of + `,state="Deployed"}`: 2, `capmaas_machines{` + of + `,state="Releasing"}`: 1,
				`capmaas_machines{` + of + `,state="Unallocated"}`: 1,
			}},
		{"When machines are not ready, it should count them by reason", []client.Object{
			maasMachine("a", "", isNot(machine.ConditionReady, "NoCapacity")), maasMachine("b", "", isNot(machine.ConditionReady, "NoCapacity")),
			maasMachine("c", "", is(machine.ConditionReady, 0))},
			metricstest.Samples{`capmaas_machines{` + of + `,state="Unallocated"}`: 3, `capmaas_machines_not_ready{` + of + `,reason="NoCapacity"}`: 2}},
		{"When a machine was deployed and joined, it should measure both", []client.Object{maasMachine("a", "Deployed",
			is(machine.ConditionAllocated, -time.Minute), is(machine.ConditionDeployed, 9*time.Minute), is(machine.ConditionNode, 11*time.Minute))},
			metricstest.Samples{`capmaas_machines{` + of + `,state="Deployed"}`: 1,
				"capmaas_machine_deploy_duration_seconds_count": 1, "capmaas_machine_deploy_duration_seconds_sum": 600,
				"capmaas_machine_join_duration_seconds_count": 1, "capmaas_machine_join_duration_seconds_sum": 120}},
		{"When a machine was deployed before the process started, it should not measure the deployment", []client.Object{
			maasMachine("a", "Deployed", is(machine.ConditionAllocated, -time.Hour), is(machine.ConditionDeployed, -time.Minute))},
			metricstest.Samples{`capmaas_machines{` + of + `,state="Deployed"}`: 1}},
		{"When MAAS rejects the key, it should report MAAS as unavailable", []client.Object{refused}, metricstest.Samples{
			`capmaas_maas_available{` + of + `,reason="MAASUnauthorized"}`: 0,
			`capmaas_machine_deploy_failures{` + of + `}`:                  0, `capmaas_machines_quarantined{` + of + `}`: 0, `capmaas_machines_unreleased{` + of + `}`: 0}},
		{"When deployments failed, it should count the failures and the quarantined machines", []client.Object{well}, metricstest.Samples{
			`capmaas_maas_available{` + of + `,reason="AsExpected"}`: 1,
			`capmaas_machine_deploy_failures{` + of + `}`:            3, `capmaas_machines_quarantined{` + of + `}`: 1, `capmaas_machines_unreleased{` + of + `}`: 0}},
		{"When releases are pending, it should count the machines", []client.Object{dead}, metricstest.Samples{
			`capmaas_machine_deploy_failures{` + of + `}`: 0, `capmaas_machines_quarantined{` + of + `}`: 0, `capmaas_machines_unreleased{` + of + `}`: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(infrav1.AddToScheme(scheme)).To(Succeed())
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).Build()
			g.Expect(metricstest.Of(t, New(reader, clocktesting.NewFakePassiveClock(start)))).To(Equal(tc.want))
		})
	}
}
