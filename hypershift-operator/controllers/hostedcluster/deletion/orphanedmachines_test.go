// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
)

// orphans returns the Cluster API objects of a pool, and its infrastructure machines.
func orphans(machines ...string) []client.Object {
	at := func(name string, finalizers ...string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "clusters-demo", Name: name, Finalizers: finalizers}
	}
	all := []client.Object{
		&clusterv1.MachineDeployment{ObjectMeta: at("deployment", clusterv1.MachineDeploymentFinalizer)},
		&clusterv1.MachineSet{ObjectMeta: at("set", clusterv1.MachineSetFinalizer)},
		&clusterv1.Machine{ObjectMeta: at("machine", clusterv1.MachineFinalizer)},
		&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "theirs", Finalizers: []string{clusterv1.MachineFinalizer}}},
	}
	for _, name := range machines {
		all = append(all, &infrav1.MaasMachine{ObjectMeta: at(name, "test/provider")})
	}
	return all
}

func TestOrphansGo(t *testing.T) {
	t.Run("When machines remain, it should delete them and their Cluster API objects, and wait for the release", func(t *testing.T) {
		g, d, p := NewWithT(t), newDesk(orphans("a", "b", "c", "d")...), &clustertest.Plugin{MachineLists: &infrav1.MaasMachineList{}, Says: "MAAS is away"}
		s := clustertest.On(p)
		waitsFor, err := d.deleteOrphanedMachines(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(waitsFor).To(And(ContainSubstring("4 machines"), HaveSuffix("released: a, b, c, .... MAAS is away")))
		g.Expect(p.Seen[0]).To(Equal(s.ForPlatform(operatorImage)))
		machine, set := &infrav1.MaasMachine{}, &clusterv1.Machine{}
		machine.Namespace, machine.Name, set.Namespace, set.Name = "clusters-demo", "a", "clusters-demo", "machine"
		g.Expect(d.Has(t, machine) && d.Has(t, set)).To(BeTrue())
		g.Expect(machine.DeletionTimestamp != nil && set.DeletionTimestamp != nil).To(BeTrue())
		d.Wrote = nil
		_, err = d.deleteOrphanedMachines(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Wrote).To(BeEmpty(), "they were asked already")
	})
	t.Run("When the last machine is released, it should remove the finalizers of the Cluster API objects", func(t *testing.T) {
		g, d, s := NewWithT(t), newDesk(orphans()...), clustertest.On(&clustertest.Plugin{MachineLists: &infrav1.MaasMachineList{}})
		for range 2 {
			waitsFor, err := d.deleteOrphanedMachines(t.Context(), s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(waitsFor).To(HaveSuffix(": deployment, set, machine"))
		}
		g.Expect(d.deleteOrphanedMachines(t.Context(), s)).To(BeEmpty())
		theirs := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "theirs"}}
		g.Expect(d.Has(t, theirs)).To(BeTrue())
		g.Expect(theirs.DeletionTimestamp).To(BeNil())
	})
	for name, s := range map[string]*cluster.Scope{
		"the platform is not served":       clustertest.On(&clustertest.Plugin{MachineLists: &infrav1.MaasMachineList{}}, func(s *cluster.Scope) { s.PlatformServed = false }),
		"the platform creates no machines": clustertest.On(&clustertest.Plugin{}),
		"the platform is unknown":          clustertest.Scope(),
	} {
		t.Run("When "+name+", it should not wait for the platform's machines", func(t *testing.T) {
			g, d := NewWithT(t), newDesk(orphans("a")...)
			g.Expect(d.deleteOrphanedMachines(t.Context(), s)).NotTo(ContainSubstring("outlived their Cluster to be released"))
			g.Expect(d.Has(t, &infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "a"}})).To(BeTrue())
		})
	}
}

func TestOrphansThatCannotGo(t *testing.T) {
	for refuse, tc := range map[string]struct {
		machines []string
		says     string
	}{
		"list v1beta2.MachineSetList":                  {[]string{"a"}, ""},
		"list v1beta1.MaasMachineList":                 {[]string{"a"}, ""},
		"delete v1beta1.MaasMachine clusters-demo/a":   {[]string{"a"}, "1 machine"},
		"delete v1beta2.Machine clusters-demo/machine": {nil, "machine"},
		"patch v1beta2.MachineDeployment":              {nil, "deployment"},
		"patch v1beta2.Machine clusters-demo/machine":  {nil, "machine"},
		"the platform": {[]string{"a"}, "1 machine"},
		"delete v1beta2.MachineDeployment clusters-demo/dep": {nil, "deployment"},
	} {
		t.Run("When "+refuse+" fails, it should return the error and what it waits for", func(t *testing.T) {
			g, d, p := NewWithT(t), newDesk(orphans(tc.machines...)...), &clustertest.Plugin{MachineLists: &infrav1.MaasMachineList{}}
			if d.Refuse = refuse; refuse == "the platform" {
				p.Err = clustertest.ErrNotNow
			}
			waitsFor, err := d.deleteOrphanedMachines(t.Context(), clustertest.On(p))
			if err == nil {
				waitsFor, err = d.deleteOrphanedMachines(t.Context(), clustertest.On(p))
			}
			g.Expect(errors.Is(err, clustertest.ErrNotNow)).To(BeTrue(), "%v", err)
			g.Expect(waitsFor).To(ContainSubstring(tc.says))
			g.Expect(waitsFor == "").To(Equal(tc.says == ""))
		})
	}
	t.Run("When the Machines cannot be listed, it should return an error", func(t *testing.T) {
		g, d := NewWithT(t), newDesk()
		d.Refuse = "list v1beta2.MachineList"
		_, err := d.deleteOrphanedMachines(t.Context(), clustertest.On(&clustertest.Plugin{}))
		g.Expect(err).To(MatchError(And(HavePrefix("listing "), HaveSuffix("of namespace clusters-demo: not now"))))
	})
}
