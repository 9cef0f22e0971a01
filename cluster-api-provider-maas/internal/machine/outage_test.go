// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// TestReleaseAnswerLost checks the report of a release whose answer was lost, when another user has the machine since.
func TestReleaseAnswerLost(t *testing.T) {
	w := newRack(t, testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI), "admin")
	w.addPlain("m")
	w.until("Ready True Ready", "m")
	id := w.holds("m")
	w.after = func(op string) error {
		if op == "release" {
			return errCut
		}
		return nil
	}
	w.remove("m")
	w.pass("m")
	w.tick()
	w.Expect(w.Machine(id).Status).To(Equal(status.Ready))
	w.edit(id, func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName = status.Allocated, "bob", "other" })
	w.after = nil
	w.leave("m")
	told := strings.Join(w.told(), "\n")
	w.Expect(told).To(ContainSubstring("it was released and allocated again"))
	w.Expect(told).NotTo(ContainSubstring("outside Cluster API"))
	w.Expect(w.Machine(id).Owner).To(Equal("bob"))
}

// TestClaimEnds checks that a machine that a reconcile picked is free again when the reconcile did not request it.
func TestClaimEnds(t *testing.T) {
	w := newLXD(t, testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI), lxdHost{name: "h1"})
	for _, m := range w.Machines()[1:] {
		w.edit(m.SystemID, func(m *inventory.Machine) { m.Status, m.Owner = status.Deployed, "bob" })
	}
	w.addPlain("m")
	conflicts := 0
	w.kube = interceptor.NewClient(testenv.Client(t, w.cfg, scheme()), interceptor.Funcs{Patch: func(
		ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption,
	) error {
		if obj.GetAnnotations()[machine.AttemptAnnotation] != "" && conflicts == 0 {
			conflicts++
			return apierrors.NewConflict(schema.GroupResource{Resource: "maasmachines"}, obj.GetName(), nil)
		}
		return c.Patch(ctx, obj, p, o...)
	}})
	w.restart()
	for range 4 {
		_, _ = w.attempt("m", 100*time.Millisecond)
	}
	w.Expect(conflicts).To(Equal(1))
	w.Expect(w.holds("m")).NotTo(BeEmpty(), "%v", w.machine("m").Status.Conditions)
}

// TestArchitectureUnknown checks the report when MAAS knows no image of the architecture yet.
func TestArchitectureUnknown(t *testing.T) {
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	// With VM hosts, the provider lists the machines and names one; otherwise MAAS picks one.
	for _, w := range []*world{newRack(t, cfg, "admin"), newLXD(t, cfg, lxdHost{name: "h1"})} {
		w.add("m", infrav1.MaasMachineSpec{Image: "custom/node", MinCPU: ptr.To(1), MinMemory: ptr.To(1024), Arch: "ppc64el"})
		w.passes("m", 3)
		w.expect("m", "Ready False ImageNotFound", "no synchronized image for architecture ppc64el")
		w.leave("m")
	}
}

// TestVMHostsEnded checks that a MAAS without VM hosts is reported before anything is requested for a virtual machine.
func TestVMHostsEnded(t *testing.T) {
	w := newLXD(t, testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI), lxdHost{name: "h1"})
	w.addVM("old")
	w.until("Ready True Ready", "old")
	simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.Error, Operation: "vm-host*", Status: http.StatusGone})
	w.addVM("m", func(spec *infrav1.MaasMachineSpec) {
		spec.StaticIP = &infrav1.StaticIPConfig{IP: "10.9.0.77", CIDR: "10.9.0.0/24"}
	})
	w.wrote()
	w.passes("m", 3)
	w.expect("m", "Ready False HostUnavailable", "this MAAS has no VM hosts")
	w.Expect(w.wrote()).To(BeEmpty())
	w.Expect(w.machine("m").Annotations).NotTo(Or(HaveKey(machine.AddressAnnotation), HaveKey(lxd.PlacementAnnotation)))
	w.told()
	w.leave("old")
	w.Expect(strings.Join(w.told(), "\n")).To(ContainSubstring("it may still run in LXD: delete it there"))
}
