// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/cluster"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/identity"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/quarantine"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// between connects the reconciler to an API server and a MAAS that fail each request once.
func (w *world) between() *testenv.Grudging {
	w.t.Helper()
	server := testenv.NewGrudging(testenv.Client(w.t, w.cfg, w.client.Scheme()))
	// Most phases report a MAAS error in a condition, and retry after 15 seconds as for any other problem.
	server.Soon = 15 * time.Second
	machines := &machine.Reconciler{Client: server, Reader: server, Recorder: w.recorder, Clock: w.clock}
	machines.Default()
	w.reconciler.Client, w.reconciler.Reader, w.reconciler.Machines = server, server, machines
	w.reconciler.Identities = identity.NewResolver(identity.Options{Reader: server, Clock: w.clock, Template: maas.Config{
		Transport: server.Transport(http.DefaultTransport), Retry: maas.RetryPolicy{Attempts: -1}}})
	machines.Identities = w.reconciler.Identities
	return server
}

// against reconciles until no request fails any more.
func (w *world) against(server *testenv.Grudging) {
	w.t.Helper()
	pass := func() (ctrl.Result, error) {
		w.Life.Tick(w.t.Context())
		w.clock.SetTime(w.clock.Now().Add(3 * time.Minute))
		return w.reconciler.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.namespace, Name: "demo"}})
	}
	server.Exhaust(w.t, pass, func() any {
		if w.gone() {
			return nil
		}
		return w.infra().Status.Conditions
	})
}

// TestRefusals runs the lifecycle of a MaasCluster with an API server and a MAAS that fail each request once.
func TestRefusals(t *testing.T) {
	w := newWorld(t, testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI), simtest.Machine{ID: "mole01", Hostname: "mole"}, simtest.Machine{ID: "rat001"})
	server := w.between()
	w.add(infrav1.MaasClusterSpec{}, map[string]string{infrav1.OwnerAnnotation: provider})
	w.against(server)
	name := w.infra().Status.Network.DNSName
	w.Expect(w.infra().Spec.ControlPlaneEndpoint.Host).To(Equal(name))

	m := w.controlPlane("cp", true, "192.168.0.4")
	m.Spec.SystemID = ptr.To("another")
	w.Expect(w.client.Update(t.Context(), m)).To(Succeed())
	w.runs(m, true, "192.168.0.4")
	w.against(server)
	w.Expect(w.dns()[name]).To(Equal([]string{"192.168.0.4"}))
	w.Expect(w.attached()).To(Equal([]string{"cp"}))

	w.reconciler.QuarantineAfter = 3
	w.remember(func(infra *infrav1.MaasCluster) error {
		return quarantine.Records.Set(infra, "mole01", quarantine.Record{Hostname: "mole", Failures: 3, Last: w.clock.Now(), Image: "ubuntu/noble"})
	})
	w.against(server)
	w.Expect(w.tagsOf("mole01")).To(ContainElement(quarantine.Tag))
	w.expect(cluster.ConditionQuarantine, "True DeploymentsFailed", "hypershift-quarantine remove=mole01")

	w.addMachine(simtest.Machine{ID: "orphan", Status: status.Allocated, Owner: provider, AgentName: maas.AllocationKey("gone"),
		Annotations: map[string]string{maas.AnnotationClusterUID: string(w.infra().UID), maas.AnnotationMachineUID: "gone"}})
	w.addMachine(simtest.Machine{ID: "second", Status: status.Allocated, Owner: provider, AgentName: maas.AllocationKey(string(m.UID))})
	w.against(server)
	w.Expect(w.left()).To(BeEmpty())

	w.Change("rat001", func(m *inventory.Machine) {
		m.Status, m.Owner, m.AgentName, m.PowerState = status.Deployed, provider, maas.AllocationKey("handed"), "on"
	})
	w.remember(func(infra *infrav1.MaasCluster) error {
		return handover.Records.Set(infra, "rat001", handover.Record{Machine: "m", UID: "handed", Hostname: "rat", User: provider, Since: w.clock.Now()})
	})
	w.against(server)
	w.Expect(w.left()).To(BeEmpty())

	w.Expect(w.client.Delete(t.Context(), m)).To(Succeed())
	w.Expect(w.client.Delete(t.Context(), w.infra())).To(Succeed())
	w.against(server)
	w.Expect(w.gone()).To(BeTrue())
	w.Expect(w.dns()).To(BeEmpty())
}

// TestRefusalsOfAnEndpoint covers an endpoint that the Cluster specifies.
func TestRefusalsOfAnEndpoint(t *testing.T) {
	w := newWorld(t, testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI))
	w.owner.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "vip.example.com", Port: 443}
	w.Expect(w.client.Update(t.Context(), w.owner)).To(Succeed())
	server := w.between()
	w.add(infrav1.MaasClusterSpec{}, nil)
	w.against(server)
	w.Expect(w.infra().Spec.ControlPlaneEndpoint).To(Equal(infrav1.APIEndpoint{Host: "vip.example.com", Port: 443}))
}
