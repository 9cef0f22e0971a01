// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// fuse fails the n-th write of a process, to MAAS or to the API server, and all later ones. It fails before the write,
// or after it, so that the answer is lost.
type fuse struct {
	left  int
	after bool
	burnt bool
}

func (f *fuse) before() error {
	if f.burnt {
		return errCut
	}
	if f.left--; f.left == 0 {
		f.burnt = true
		if !f.after {
			return errCut
		}
	}
	return nil
}

func (f *fuse) done() error {
	if f.burnt {
		return errCut
	}
	return nil
}

// fused returns a client of the API server whose writes fail as the fuse specifies.
func (w *world) fused(f *fuse) client.Client {
	c := testenv.Client(w.t, w.cfg, scheme())
	guard := func(write func() error) error {
		if err := f.before(); err != nil {
			return err
		}
		if err := write(); err != nil {
			return err
		}
		return f.done()
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			return guard(func() error { return c.Patch(ctx, obj, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return guard(func() error { return c.SubResource(sub).Patch(ctx, obj, p, opts...) })
		},
	})
}

// die runs one provider process until the fuse fails its writes or its work is done.
func (w *world) die(name string, f *fuse) {
	w.kube = w.fused(f)
	w.before, w.after = func(string) error { return f.before() }, func(string) error { return f.done() }
	w.restart()
	for range 4 {
		if f.burnt || w.gone(name) {
			break
		}
		w.pass(name)
	}
	w.kube, w.before, w.after = w.client, nil, nil
	w.restart()
}

// lagging returns a client that acts like a stale cache: it shows the MaasMachines, but none of the later writes to
// them.
func (w *world) lagging() client.Client {
	seen := &infrav1.MaasMachineList{}
	w.Expect(w.client.List(w.t.Context(), seen, client.InNamespace(w.namespace))).To(Succeed())
	c := testenv.Client(w.t, w.cfg, scheme())
	return interceptor.NewClient(c, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			seen.DeepCopyInto(list.(*infrav1.MaasMachineList))
			return nil
		},
	})
}

func crowd(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	const many = 20
	var names []string
	for n := range many {
		names = append(names, fmt.Sprintf("m-%d", n))
		w.addStatic(names[n], infrav1.StaticIPConfig{Range: &infrav1.IPRange{Start: "10.9.0.30", End: "10.9.0.49"}})
	}
	w.kube = w.lagging()
	w.restart()
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() { w.reconcile(name, 0) })
	}
	all.Wait()
	chosen := map[string]string{}
	for _, name := range names {
		var a struct{ IP string }
		w.Expect(json.Unmarshal([]byte(w.machine(name).Annotations[machine.AddressAnnotation]), &a)).To(Succeed(), name)
		w.Expect(chosen).NotTo(HaveKey(a.IP), "%s and %s", name, chosen[a.IP])
		chosen[a.IP] = name
	}
	w.Expect(chosen).To(HaveLen(many))
}

func dies(t *testing.T, cfg *rest.Config) {
	w := newRack(t, cfg, "admin")
	n := 1
	for w.diesAt(n, false) && w.diesAt(n, true) {
		n++
	}
	w.Expect(n).To(BeNumerically(">", 11), "a machine with a static address takes that many writes until it is deployed")
}

// diesAt runs the lifecycle of a machine, and interrupts it at the n-th write of its creation and of its deletion. It
// reports whether there were that many writes.
func (w *world) diesAt(n int, after bool) bool {
	w.t.Helper()
	name := fmt.Sprintf("m-%d-%t", n, after)
	w.addStatic(name, infrav1.StaticIPConfig{CIDR: "10.9.0.0/24", Range: &infrav1.IPRange{Start: "10.9.0.10", End: "10.9.0.11"}})
	making, ending := &fuse{left: n, after: after}, &fuse{left: n, after: after}
	w.die(name, making)
	w.until("Ready True Ready", name)
	id := *w.machine(name).Spec.SystemID
	w.Expect(w.modes(id, 0)).To(Equal([]string{"static 10.9.0.10"}), name)
	w.remove(name)
	w.die(name, ending)
	w.leave(name)
	for _, m := range w.Machines() {
		w.Expect(m.Status).To(Equal(status.Ready), "%s: %s", name, m.Hostname)
		w.Expect(m.IPs()).To(BeEmpty(), "%s: %s", name, m.Hostname)
	}
	w.Expect(w.modes(id, 0)).To(Equal([]string{"auto"}), name)
	return making.burnt || ending.burnt
}
