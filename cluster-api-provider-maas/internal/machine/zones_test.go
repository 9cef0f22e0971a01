// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/guest"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

func TestZones(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for name, test := range map[string]func(*testing.T, *rest.Config){
		"When a pool may use several zones, it should be spread over these zones only":        spreads,
		"When machines are created at once, they should not all be in the emptiest zone":      spreadsAtOnce,
		"When a zone has no machines, the next one should be used":                            fallsThrough,
		"When the cluster sets no zones, all MAAS zones should be used":                       allZones,
		"When the Machine sets a zone, it should win":                                         machineWins,
		"When another MachineDeployment fills a zone, it should not count":                    ownSiblings,
		"When machines must be picked from a list, they should be spread too":                 spreadsListed,
		"When a machine runs, its zone should be reported to Cluster API and set on its Node": tellsZone,
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

// site returns the given number of machines in each zone. Machines in az9 are the cheapest, so MAAS would pick them.
func site(zones map[string]int) []simtest.Machine {
	var machines []simtest.Machine
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		for n := range zones[zone] {
			m := simtest.Machine{ID: fmt.Sprintf("%s%03d", zone, n), Zone: zone, CPU: 8}
			if zone == "az9" {
				m.CPU = 2
			}
			machines = append(machines, m)
		}
	}
	return machines
}

// allow sets the failure domains of the MaasCluster.
func (w *world) allow(zones ...string) {
	w.t.Helper()
	infra := &infrav1.MaasCluster{}
	w.get("demo", infra)
	infra.Spec.FailureDomains = zones
	w.Expect(w.client.Update(w.t.Context(), infra)).To(Succeed())
}

// addTo creates MaasMachines of a MachineDeployment.
func (w *world) addTo(deployment string, names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.add(name, infrav1.MaasMachineSpec{})
		m := w.machine(name)
		m.Labels[clusterv1.MachineDeploymentNameLabel] = deployment
		w.Expect(w.client.Update(w.t.Context(), m)).To(Succeed())
	}
}

// expectZones compares the number of allocated machines in each zone with want.
func (w *world) expectZones(want map[string]int) {
	w.t.Helper()
	got := map[string]int{}
	for _, m := range w.held() {
		got[w.DB.Zones.Get(m.ZoneID).Name]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("machines by zone (-want +got):\n%s", diff)
	}
}

func numbered(prefix string, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s-%d", prefix, i))
	}
	return names
}

func spreads(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, site(map[string]int{"az1": 6, "az2": 6, "az9": 6})...)
	w.allow("az1", "az2")
	names := numbered("m", 6)
	w.addTo("pool", names...)
	for _, name := range names {
		w.reconcile(name, 15*time.Second)
	}
	w.expectZones(map[string]int{"az1": 3, "az2": 3})
	w.restart()
	w.remove("m-0")
	w.passes("m-0", 2)
	w.addTo("pool", "late")
	w.reconcile("late", 15*time.Second)
	w.expectZones(map[string]int{"az1": 3, "az2": 3})
}

func spreadsAtOnce(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, site(map[string]int{"az1": 9, "az2": 9, "az3": 9})...)
	w.allow("az1", "az2", "az3")
	names := numbered("m", 9)
	w.addTo("pool", names...)
	// The list is a stale cache: it shows none of the writes of this process.
	seen := &infrav1.MaasMachineList{}
	w.Expect(w.client.List(t.Context(), seen, client.InNamespace(w.namespace))).To(Succeed())
	c := testenv.Client(t, cfg, scheme())
	w.kube = interceptor.NewClient(c, interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
		seen.DeepCopyInto(list.(*infrav1.MaasMachineList))
		return nil
	}})
	w.restart()
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() { w.reconcile(name, 0) })
	}
	all.Wait()
	w.expectZones(map[string]int{"az1": 3, "az2": 3, "az3": 3})
}

func fallsThrough(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, site(map[string]int{"az1": 1, "az2": 6, "az9": 6})...)
	w.allow("az1", "az2", "az7")
	names := numbered("m", 5)
	w.addTo("pool", names...)
	for _, name := range names {
		w.reconcile(name, 0)
	}
	w.expectZones(map[string]int{"az1": 1, "az2": 4})
	names = numbered("more", 3)
	w.addTo("pool", names...)
	for range 2 {
		for _, name := range names {
			w.reconcile(name, 15*time.Second)
		}
	}
	w.expectZones(map[string]int{"az1": 1, "az2": 6})
	w.expect("more-2", "Ready False NoCapacity", `none of 6 Ready machines is in zone "az1" or "az2" or "az7"; MAAS has no zone "az7"`)
}

func allZones(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, site(map[string]int{"az1": 4, "az2": 4, "az9": 4})...)
	names := numbered("m", 6)
	w.addTo("pool", names...)
	for _, name := range names {
		w.reconcile(name, 0)
	}
	w.expectZones(map[string]int{"az1": 2, "az2": 2, "az9": 2})
}

func machineWins(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, site(map[string]int{"az1": 3, "az2": 3})...)
	w.allow("az1")
	w.add("m", infrav1.MaasMachineSpec{FailureDomain: ptr.To("az1")})
	owner := &clusterv1.Machine{}
	w.get("m", owner)
	owner.Spec.FailureDomain = "az2"
	w.Expect(w.client.Update(t.Context(), owner)).To(Succeed())
	w.reconcile("m", 0)
	w.expectZones(map[string]int{"az2": 1})
}

func ownSiblings(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, site(map[string]int{"az1": 4, "az2": 4})...)
	w.allow("az1", "az2")
	for _, deployment := range []string{"a", "b", "c"} {
		w.addTo(deployment, deployment)
		w.reconcile(deployment, 0)
	}
	w.expectZones(map[string]int{"az1": 3})
}

func spreadsListed(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, append(site(map[string]int{"az1": 3, "az2": 3, "az9": 3}), simtest.Machine{ID: "bad", Zone: "az1", CPU: 2})...)
	simtest.FailDeployments(t, w.Simulator, "bad", 9)
	w.allow("az1", "az2")
	names := numbered("m", 4)
	w.addTo("pool", names...)
	for range 8 {
		for _, name := range names {
			w.reconcile(name, 15*time.Second)
		}
	}
	w.expectZones(map[string]int{"az1": 2, "az2": 2})
	w.Expect(w.Machine("bad").Owner).To(BeEmpty(), "it was tried, and is set aside")
}

func tellsZone(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg, simtest.Machine{ID: "aaaaaa", Hostname: "mole", Zone: "rack 7"})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "n-"}}
	w.Expect(w.client.Create(t.Context(), node)).To(Succeed())
	w.edit("aaaaaa", func(m *inventory.Machine) { m.Hostname = node.Name })
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "demo-kubeconfig"}, Data: map[string][]byte{"value": []byte(anyKubeconfig)}})
	w.reconciler.Nodes = &guest.Nodes{Reader: w.client, Clock: w.clock, Connect: func(*rest.Config) (client.Client, error) { return w.client, nil }}
	w.add("m", infrav1.MaasMachineSpec{})
	w.passes("m", 3)
	w.expect("m", "NodeProviderIDSet True NodeFound", "")
	w.Expect(w.machine("m").Status.FailureDomain).To(HaveValue(Equal("rack 7")))
	w.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(node), node)).To(Succeed())
	w.Expect(node.Labels).To(HaveKeyWithValue(corev1.LabelTopologyZone, "rack-7"))
	w.Expect(w.client.Delete(t.Context(), node)).To(Succeed())
}

const anyKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://guest.example.com:6443"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`
