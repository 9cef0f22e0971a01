// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// inMemory returns a fixture whose API server is always in memory, without authorization.
func inMemory(t *testing.T) *world {
	t.Helper()
	c := fixture.InMemory(t)
	clock := testingclock.NewFakeClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	return &world{GomegaWithT: NewWithT(t), t: t, client: c, clock: clock, namespace: "clusters", Reconciler: &Reconciler{
		Client: c, Clock: clock, Recorder: &events.FakeRecorder{}, Releases: fixture.Payloads(), Platforms: fixture.Platforms(nil),
	}}
}

// rolling returns the API server's default for a pool that sets no update strategy.
func rolling() *hyperv1.ReplaceUpgrade {
	return &hyperv1.ReplaceUpgrade{Strategy: hyperv1.UpgradeStrategyRollingUpdate, RollingUpdate: &hyperv1.RollingUpdate{
		MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromInt32(1))}}
}

// begin creates a pool whose cluster is ready, without reconciling it.
func (s *world) begin(mutate func(*hyperv1.NodePool)) {
	s.t.Helper()
	s.ready(nil)
	pool := fixture.NodePool(s.namespace)
	if mutate != nil {
		mutate(pool)
	}
	fixture.Create(s.t, s.client, pool)
}

// startInMemory returns an in-memory world with a pool that is reconciled up to its MachineDeployment.
func startInMemory(t *testing.T, mutate func(*hyperv1.NodePool)) *world {
	t.Helper()
	s := inMemory(t)
	s.begin(mutate)
	s.mustPass()
	return s
}

// TestPassesInMemory checks that reconciles in memory create a MachineDeployment.
func TestPassesInMemory(t *testing.T) {
	s := startInMemory(t, nil)
	s.Expect(s.deployment().Spec.Template.Spec.Version).To(Equal("1.36.3"))
}
