// SPDX-License-Identifier: Apache-2.0

package lxdhost

import (
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// compose creates a VM on a host.
func (w *world) compose(host, name string) string {
	w.t.Helper()
	hosts, err := w.maas.ListVMHosts(w.t.Context())
	w.Expect(err).NotTo(HaveOccurred())
	for _, h := range hosts {
		if h.Name == host {
			made, err := w.maas.ComposeMachine(w.t.Context(), h.ID, maas.ComposeRequest{Hostname: name, SkipCommissioning: true})
			w.Expect(err).NotTo(HaveOccurred())
			return made.SystemID
		}
	}
	w.t.Fatalf("there is no VM host %s", host)
	return ""
}

// clusterAPI is a management cluster with one MachineSet. When one of its Machines is deleted, the VM is removed and
// another is composed on the other host, as Cluster API and the provider do.
type clusterAPI struct {
	client.Client
	w *world
	// missing is the largest number of machines of the set that were not Ready at a deletion.
	missing int
	deleted []string
	made    int
	// blind is the number of further VMs that are placed by a provider which has not yet seen the drain of the first host.
	blind int
}

const hosted = "clusters-demo"

func newClusterAPI(w *world) *clusterAPI {
	c := &clusterAPI{w: w}
	c.Client = fake.NewClientBuilder().WithScheme(kube.Scheme).WithStatusSubresource(&clusterv1.Machine{}).
		WithObjects(&clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: hosted, Name: "set", UID: "set"}}).
		WithInterceptorFuncs(interceptor.Funcs{Delete: func(ctx context.Context, k client.WithWatch, obj client.Object, options ...client.DeleteOption) error {
			if machine, ok := obj.(*clusterv1.Machine); ok {
				return c.replace(ctx, k, machine)
			}
			return k.Delete(ctx, obj, options...)
		}}).Build()
	return c
}

func (c *clusterAPI) add(vm string, owned bool) {
	c.made++
	name := fmt.Sprintf("node-%d", c.made)
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: hosted, Name: name, UID: "uid"}}
	if owned {
		machine.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet", Name: "set", UID: "set", Controller: ptr.To(true)}}
	}
	ctx := c.w.t.Context()
	c.w.Expect(c.Create(ctx, machine)).To(Succeed())
	machine.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineReadyCondition, Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.Now()}}
	c.w.Expect(c.Status().Update(ctx, machine)).To(Succeed())
	c.w.Expect(c.Create(ctx, &infrav1.MaasMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: hosted, Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: name, UID: "uid"}}},
		Spec:       infrav1.MaasMachineSpec{SystemID: &vm},
	})).To(Succeed())
}

func (c *clusterAPI) scale(replicas int32) {
	set := &clusterv1.MachineSet{}
	key := client.ObjectKey{Namespace: hosted, Name: "set"}
	c.w.Expect(c.Get(c.w.t.Context(), key, set)).To(Succeed())
	set.Spec.Replicas = &replicas
	c.w.Expect(c.Update(c.w.t.Context(), set)).To(Succeed())
}

func (c *clusterAPI) replace(ctx context.Context, k client.Client, machine *clusterv1.Machine) error {
	set := &clusterv1.MachineSet{}
	if err := k.Get(ctx, client.ObjectKey{Namespace: hosted, Name: "set"}, set); err != nil {
		return err
	}
	ready, _, err := machinesOf(ctx, k, set)
	if err != nil {
		return err
	}
	c.missing = max(c.missing, int(*set.Spec.Replicas)-ready)
	infra := &infrav1.MaasMachine{}
	if err := k.Get(ctx, client.ObjectKeyFromObject(machine), infra); err != nil {
		return err
	}
	// The fake client's Delete calls this function, so the objects are removed with DeleteAllOf.
	in, field := client.InNamespace(machine.Namespace), client.MatchingLabels{"gone": machine.Name}
	for _, obj := range []client.Object{machine, infra} {
		obj.SetLabels(map[string]string{"gone": machine.Name})
		if err := errors.Join(k.Update(ctx, obj), k.DeleteAllOf(ctx, obj, in, field)); err != nil {
			return err
		}
	}
	c.deleted = append(c.deleted, machine.Name)
	if err := c.w.maas.DeleteMachine(ctx, *infra.Spec.SystemID); err != nil {
		return err
	}
	host := "lxd-2"
	if c.blind > 0 {
		c.blind--
		host = "lxd-1"
	}
	c.add(c.w.compose(host, "new-"+machine.Name), true)
	return nil
}

func (w *world) drain(c *clusterAPI, change func(*drain)) error {
	d := &drain{connection: w.connection(), host: "lxd-1"}
	change(d)
	return d.drain(w.t.Context(), w.maas, func() (client.Client, error) {
		if c == nil {
			w.t.Fatal("the management cluster is not needed")
		}
		return c, nil
	}, w.report())
}

// site returns a MAAS with two LXD hosts; the first runs on a machine that MAAS has deployed.
func site(t *testing.T) *world {
	return newWorld(t, simtest.WithVMHosts(
		simtest.Seed(simtest.Machine{ID: "aaaaa1", Hostname: "lxd-1", Status: status.Deployed, Owner: "admin", Power: "on"}),
		simtest.VMHost{Name: "lxd-1", Machine: "aaaaa1"}, simtest.VMHost{Name: "lxd-2"}))
}

func (w *world) on(host string) []string {
	machines, err := w.maas.ListMachines(w.t.Context(), maas.MachineFilter{VMHosts: []string{host}})
	w.Expect(err).NotTo(HaveOccurred())
	names := []string{}
	for _, m := range machines {
		names = append(names, m.Hostname)
	}
	return names
}

func TestDrain(t *testing.T) {
	t.Run("When a host has VMs of a pool, it should replace them elsewhere one by one", func(t *testing.T) {
		w := site(t)
		c := newClusterAPI(w)
		for _, vm := range []string{"a", "b", "c"} {
			c.add(w.compose("lxd-1", vm), true)
		}
		c.scale(3)
		w.Expect(w.drain(c, func(*drain) {})).To(Succeed(), w.out.String())
		w.Expect(w.on("lxd-1")).To(BeEmpty())
		w.Expect(w.on("lxd-2")).To(Equal([]string{"new-node-1", "new-node-2", "new-node-3"}))
		w.Expect(c.missing).To(Equal(0), "no Machine is deleted while another is missing")
		w.Expect(w.hosts()[0].Tags).To(ContainElement(maas.DrainTag))
		w.Expect(w.out.String()).To(And(ContainSubstring("takes no new VM"), ContainSubstring("has no VM")))
		w.Expect(w.owned()).To(ContainElement("lxd-1"), "nobody asked for its release")
	})
	t.Run("When a VM is composed before the tag is seen, it should replace that VM too", func(t *testing.T) {
		w := site(t)
		c := newClusterAPI(w)
		c.add(w.compose("lxd-1", "a"), true)
		c.scale(1)
		c.blind = 1
		w.Expect(w.drain(c, func(*drain) {})).To(Succeed(), w.out.String())
		w.Expect(w.on("lxd-1")).To(BeEmpty())
	})
	t.Run("When the controller ignores the drain tag, it should stop with an error after several rounds", func(t *testing.T) {
		w := site(t)
		c := newClusterAPI(w)
		c.add(w.compose("lxd-1", "a"), true)
		c.scale(1)
		c.blind = 100
		w.Expect(w.drain(c, func(*drain) {})).To(MatchError(ContainSubstring("honor the tag")))
		w.Expect(c.deleted).To(HaveLen(rounds))
	})
	t.Run("When the pool is not complete, it should delete no Machine", func(t *testing.T) {
		w := site(t)
		c := newClusterAPI(w)
		c.add(w.compose("lxd-1", "a"), true)
		c.scale(2)
		ctx, stop := context.WithCancel(t.Context())
		d := &drain{connection: w.connection(), host: "lxd-1"}
		ended := make(chan error)
		reports := make(chan string, 1000)
		go func() {
			ended <- d.drain(ctx, w.maas, func() (client.Client, error) { return watched{c, reports}, nil }, w.report())
		}()
		<-reports
		<-reports // The command has polled twice, and continues to poll.
		stop()
		w.Expect(<-ended).To(MatchError(context.Canceled))
		w.Expect(c.deleted).To(BeEmpty())
		w.Expect(w.out.String()).To(ContainSubstring("1 of 2 machines ready"))
	})
	t.Run("When VMs belong to no Machine, it should name them and keep them", func(t *testing.T) {
		w := site(t)
		c := newClusterAPI(w)
		c.add(w.compose("lxd-1", "ours"), true)
		c.scale(1)
		w.compose("lxd-1", "theirs")
		w.Expect(w.drain(c, func(d *drain) { d.release = true })).To(MatchError(ContainSubstring("1 VMs on lxd-1 belong to no Machine of this management cluster: theirs")))
		w.Expect(w.on("lxd-1")).To(Equal([]string{"theirs"}))
		w.Expect(w.owned()).To(ContainElement("lxd-1"))
	})
	t.Run("When no MachineSet owns a Machine, it should keep the Machine", func(t *testing.T) {
		w := site(t)
		c := newClusterAPI(w)
		c.add(w.compose("lxd-1", "single"), false)
		w.Expect(w.drain(c, func(*drain) {})).To(MatchError(ContainSubstring("has no MachineSet that would replace it")))
		w.Expect(w.on("lxd-1")).To(Equal([]string{"single"}))
	})
	t.Run("When the drain is undone, the host should accept new VMs again", func(t *testing.T) {
		w := site(t)
		w.Expect(w.drain(nil, func(*drain) {})).To(Succeed())
		w.Expect(w.drain(nil, func(d *drain) { d.undo = true })).To(Succeed())
		w.Expect(w.hosts()[0].Tags).NotTo(ContainElement(maas.DrainTag))
	})
	t.Run("When the host is unknown, it should say so", func(t *testing.T) {
		w := site(t)
		w.Expect(w.drain(nil, func(d *drain) { d.host = "lxd-9" })).To(MatchError(ContainSubstring(`no VM host "lxd-9"`)))
	})
}

// watched reports each list of Machines.
type watched struct {
	client.Client
	lists chan<- string
}

func (w watched) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, machines := list.(*clusterv1.MachineList); machines {
		select {
		case w.lists <- "listed":
		case <-ctx.Done(): // The reader has stopped.
		}
	}
	return w.Client.List(ctx, list, options...)
}

func TestDrainRelease(t *testing.T) {
	released := func(w *world) {
		w.t.Helper()
		w.Expect(w.Machine("lxd-1").Status).To(Equal(status.Ready))
		w.Expect(w.hosts()).To(HaveLen(1))
	}
	t.Run("When the release is requested, it should release the host's machine", func(t *testing.T) {
		w := site(t)
		w.Expect(w.drain(nil, func(d *drain) { d.release = true })).To(Succeed(), w.out.String())
		released(w)
		w.Expect(w.out.String()).To(ContainSubstring("machine lxd-1 (aaaaa1) is released"))
	})
	t.Run("When the response of MAAS is lost, the next run should complete the release", func(t *testing.T) {
		w := site(t)
		simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.LostAnswer, Operation: "machine.release", Count: 1})
		w.Expect(w.drain(nil, func(d *drain) { d.release = true })).NotTo(Succeed())
		w.Expect(w.drain(nil, func(d *drain) { d.release = true })).To(Succeed(), w.out.String())
		released(w)
	})
	t.Run("When the release fails, it should return an error", func(t *testing.T) {
		w := site(t)
		simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.ReleaseFails})
		w.Expect(w.drain(nil, func(d *drain) { d.release = true })).To(MatchError(ContainSubstring("is Releasing failed")))
	})
	t.Run("When MAAS does not know the host's machine, it should keep the host", func(t *testing.T) {
		w := site(t)
		w.Expect(w.drain(nil, func(d *drain) { d.host, d.release = "lxd-2", true })).To(MatchError(ContainSubstring("MAAS does not know the machine")))
		w.Expect(w.hosts()).To(HaveLen(2))
	})
}
