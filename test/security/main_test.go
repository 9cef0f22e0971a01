// SPDX-License-Identifier: Apache-2.0

// Package security simulates attacks: each test tries what a tenant, a guest, a worker or a machine must not be able to
// do.
package security

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// patience is how long an API server may take to enforce new permissions and policies, on a busy machine.
const patience = 2 * time.Minute

func TestMain(m *testing.M) { fixture.Main(m) }

// operator runs both of the operator's controllers on a management cluster, for the cluster and pool in one tenant's
// namespace.
type operator struct {
	*GomegaWithT
	t        *testing.T
	client   client.Client
	tenant   string
	clusters *hostedcluster.Reconciler
	pools    *nodepool.Reconciler
}

func newOperator(t *testing.T, tenant string) *operator {
	c := fixture.Start(t)
	clock := testingclock.NewFakeClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	platforms, rights := fixture.Platforms(nil), fixture.AsOperator(t)
	return &operator{
		GomegaWithT: NewWithT(t), t: t, client: c, tenant: tenant,
		clusters: &hostedcluster.Reconciler{
			Client: rights, LiveReader: rights, Clock: clock, Recorder: &events.FakeRecorder{}, Releases: fixture.Payloads(), Platforms: platforms,
			Settings: hostedcluster.Settings{
				OperatorNamespace: fixture.OperatorNamespace, OperatorImage: "registry.example/hypershift:1",
			},
		},
		pools: &nodepool.Reconciler{Client: rights, Clock: clock, Recorder: &events.FakeRecorder{}, Releases: fixture.Payloads(), Platforms: platforms},
	}
}

// hosted returns the namespace of the tenant's control plane.
func (o *operator) hosted() string { return fixture.Hosted(o.tenant) }

// pass reconciles cluster and pool a few times, and returns the last errors.
func (o *operator) pass() (cluster, pool error) {
	for range 3 {
		_, cluster = o.clusters.Reconcile(o.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: o.tenant, Name: fixture.ClusterName}})
		_, pool = o.pools.Reconcile(o.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: o.tenant, Name: fixture.PoolName}})
	}
	return cluster, pool
}

func (o *operator) condition(conditionType hyperv1.ConditionType) metav1.Condition {
	o.t.Helper()
	hc := &hyperv1.HostedCluster{}
	o.Expect(o.client.Get(o.t.Context(), client.ObjectKey{Namespace: o.tenant, Name: fixture.ClusterName}, hc)).To(Succeed())
	found := meta.FindStatusCondition(hc.Status.Conditions, string(conditionType))
	o.Expect(found).NotTo(BeNil(), "condition %s", conditionType)
	return *found
}

// read reads an object of the hosted namespace.
func (o *operator) read(obj client.Object, name string) {
	o.t.Helper()
	o.Expect(o.client.Get(o.t.Context(), client.ObjectKey{Namespace: o.hosted(), Name: name}, obj)).To(Succeed())
}
