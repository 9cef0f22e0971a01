// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/quarantine"
	"github.com/openshift/hypershift/support/metrics/metricstest"
)

// site returns a cache with objects, in which lists of a kind may fail.
func site(t *testing.T, refuse func(client.ObjectList) error, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := refuse(list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		}}).Build()
}

func answers(client.ObjectList) error { return nil }

// TestCacheThatFails checks that a scrape returns no values if a list fails. Partial metrics would look like machines
// that disappear.
func TestCacheThatFails(t *testing.T) {
	down := errors.New("the cache is not synced")
	for name, refuse := range map[string]func(client.ObjectList) error{
		"MaasMachines": func(list client.ObjectList) error {
			if _, is := list.(*infrav1.MaasMachineList); is {
				return down
			}
			return nil
		},
		"MaasClusters": func(list client.ObjectList) error {
			if _, is := list.(*infrav1.MaasClusterList); is {
				return down
			}
			return nil
		},
	} {
		t.Run("When "+name+" can't be listed, there should be no values", func(t *testing.T) {
			g := NewWithT(t)
			got := metricstest.Of(t, New(site(t, refuse, maasMachine("a", "Deployed"), maasCluster(t)), clocktesting.NewFakePassiveClock(start)))
			g.Expect(got).To(BeEmpty())
		})
	}
}

// TestWhoseTheyAre checks that the cluster label of a metric is the Cluster in the label of the object, or else the
// name of the MaasCluster.
func TestWhoseTheyAre(t *testing.T) {
	g := NewWithT(t)
	labelled := maasCluster(t, quarantine.Record{Hostname: "a", Failures: 4}, quarantine.Record{Hostname: "b", Failures: 1, Quarantined: true}, quarantine.Record{Hostname: "c", Failures: 1})
	labelled.Name, labelled.Labels = "infra", map[string]string{clusterv1.ClusterNameLabel: "demo"}
	stray := maasMachine("stray", "Deployed")
	stray.Labels = nil
	g.Expect(metricstest.Of(t, New(site(t, answers, labelled, stray), clocktesting.NewFakePassiveClock(start)))).To(Equal(metricstest.Samples{
		`capmaas_machines{cluster="",namespace="clusters-demo",state="Deployed"}`: 1,
		`capmaas_machine_deploy_failures{` + of + `}`:                             6, `capmaas_machines_quarantined{` + of + `}`: 1, `capmaas_machines_unreleased{` + of + `}`: 0}))
}

// TestTimesThatCannotBe checks that a clock that was set back does not yield a negative duration. Without one of the
// two conditions there is no duration.
func TestTimesThatCannotBe(t *testing.T) {
	g := NewWithT(t)
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		want       metricstest.Samples
	}{
		"the deployment time is before the allocation time": {[]metav1.Condition{is(machine.ConditionAllocated, time.Minute), is(machine.ConditionDeployed, 0)},
			metricstest.Samples{"capmaas_machine_deploy_duration_seconds_count": 1, "capmaas_machine_deploy_duration_seconds_sum": 0}},
		"the time of allocation is unknown": {[]metav1.Condition{is(machine.ConditionDeployed, time.Minute)}, metricstest.Samples{}},
		"the time of deployment is unknown": {[]metav1.Condition{is(machine.ConditionNode, time.Minute)}, metricstest.Samples{}},
		"it is not deployed":                {[]metav1.Condition{is(machine.ConditionAllocated, time.Minute), isNot(machine.ConditionDeployed, "MachineDeploying")}, metricstest.Samples{}},
	} {
		tc.want[`capmaas_machines{`+of+`,state="Deployed"}`] = 1
		got := metricstest.Of(t, New(site(t, answers, maasMachine("a", "Deployed", tc.conditions...)), clocktesting.NewFakePassiveClock(start)))
		g.Expect(got).To(Equal(tc.want), "when "+name)
	}
}

// TestDeadlinesAreBuckets checks that the default timeouts are bucket boundaries, so that durations beyond a timeout
// are distinguishable.
func TestDeadlinesAreBuckets(t *testing.T) {
	g := NewWithT(t)
	g.Expect(deployBuckets).To(ContainElement(infrav1.DefaultDeployTimeout.Seconds()))
	g.Expect(joinBuckets).To(ContainElement((infrav1.DefaultBootTimeout + infrav1.DefaultJoinTimeout).Seconds()))
}
