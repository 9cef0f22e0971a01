// SPDX-License-Identifier: Apache-2.0

package lxdhost

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// typed runs a command with the arguments that a user types.
func typed(t *testing.T, cmd *cobra.Command, stdin string, args ...string) (said string, err error) {
	t.Helper()
	t.Setenv("MAAS_API_KEY", "")
	var out bytes.Buffer
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append([]string{}, args...)) // Cobra replaces nil with the arguments of the test binary.
	err = cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestCreateUsage(t *testing.T) {
	for _, tt := range []struct{ name, args, says string }{
		{"nothing is named", "", "set one of --machine and --pool"},
		{"both a machine and a pool are set", "--machine=a --pool=b", "set one of --machine and --pool"},
		{"a machine and a zone are set", "--machine=a --zone=z", "choose a machine of --pool"},
		{"a machine and tags are set", "--machine=a --tags=b", "choose a machine of --pool"},
		{"a machine and cores are set", "--machine=a --cpu=1", "choose a machine of --pool"},
		{"a machine and memory are set", "--machine=a --memory=1", "choose a machine of --pool"},
		{"cores are negative", "--pool=a --cpu=-1", "must not be negative"},
		{"memory is negative", "--pool=a --memory=-1", "must not be negative"},
		{"cores are given away too seldom", "--pool=a --cpu-over-commit=0.09", "--cpu-over-commit must be between 0.1 and 10"},
		{"cores are given away too often", "--pool=a --cpu-over-commit=10.1", "--cpu-over-commit must be between 0.1 and 10"},
		{"cores are given away not a number of times", "--pool=a --cpu-over-commit=NaN", "--cpu-over-commit must be between 0.1 and 10"},
		{"memory is given away too seldom", "--pool=a --memory-over-commit=0", "--memory-over-commit must be between 0.1 and 10"},
		{"memory is given away not a number of times", "--pool=a --memory-over-commit=nan", "--memory-over-commit must be between 0.1 and 10"},
		{"there is no endpoint", "--pool=a --cpu-over-commit=0.1 --memory-over-commit=10", "--maas-endpoint is required"},
		{"both a Secret and an API key are set", "--pool=a --credentials-secret=b --maas-endpoint=https://maas/MAAS", "--credentials-secret names a Secret that holds all"},
	} {
		t.Run("When "+tt.name+" it should say so, and that it was the user's mistake", func(t *testing.T) {
			g := NewWithT(t)
			_, err := typed(t, NewCreateCommand(), "", strings.Fields(tt.args)...)
			g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			g.Expect(exit.Code(err)).To(Equal(exit.Usage))
		})
	}
	t.Run("When both --undo and --release are set, it should reject the flags", func(t *testing.T) {
		g := NewWithT(t)
		_, err := typed(t, NewDrainCommand(), "", "lxd-1", "--undo", "--release")
		g.Expect(err).To(MatchError("set one of --undo and --release"))
		g.Expect(exit.Code(err)).To(Equal(exit.Usage))
	})
	t.Run("When no host is named, it should return an error", func(t *testing.T) {
		_, err := typed(t, NewDrainCommand(), "")
		NewWithT(t).Expect(err).To(HaveOccurred())
	})
}

// TestOpen checks which users may create hosts.
func TestOpen(t *testing.T) {
	t.Run("When the user is not an administrator, it should allocate no machine", func(t *testing.T) {
		w := newWorld(t, rack())
		key := w.Key("alice")
		_, err := typed(t, NewCreateCommand(), key, "--pool=hosts", "--maas-endpoint", w.url, "--maas-api-key-file=-")
		w.Expect(err).To(MatchError("MAAS user alice is not an administrator; LXD hosts need the API key of a MAAS administrator"))
		w.Expect(exit.Code(err)).To(Equal(exit.Failure))
		w.Expect(w.owned()).To(BeEmpty())
	})
	t.Run("When the API key is invalid, it should not print the key", func(t *testing.T) {
		w := newWorld(t, rack())
		said, err := typed(t, NewCreateCommand(), "a:b:sesame", "--pool=hosts", "--maas-endpoint", w.url, "--maas-api-key-file=-")
		w.Expect(err).To(HaveOccurred())
		w.Expect(exit.Code(err)).To(Equal(exit.Failure))
		w.Expect(said + err.Error()).NotTo(ContainSubstring("sesame"))
	})
	t.Run("When an administrator runs the command, it should create the host and report it", func(t *testing.T) {
		w := newWorld(t, rack())
		said, err := typed(t, NewCreateCommand(), w.Key("admin"), "--machine=small", "--maas-endpoint", w.url, "--maas-api-key-file=-", "--timeout=1m", "--host-tags=gold")
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(said).To(ContainSubstring("LXD host small is there: "))
		w.Expect(said).NotTo(ContainSubstring(w.Key("admin")))
		w.Expect(w.hosts()[0].Tags).To(ContainElement("gold"))
		said, err = typed(t, NewDrainCommand(), w.Key("admin"), "small", "--maas-endpoint", w.url, "--maas-api-key-file=-")
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(said).To(ContainSubstring("VM host small has no VM"))
	})
	t.Run("When the management cluster of the Secret is not found, it should say so", func(t *testing.T) {
		g := NewWithT(t)
		_, err := typed(t, NewCreateCommand(), "", "--pool=a", "--credentials-secret=b", "--kubeconfig", filepath.Join(t.TempDir(), "none"))
		g.Expect(err).To(MatchError(ContainSubstring("find the management cluster")))
		g.Expect(exit.Code(err)).To(Equal(exit.Failure))
	})
	t.Run("When the MAAS CA bundle is invalid, it should return a usage error", func(t *testing.T) {
		g, file := NewWithT(t), filepath.Join(t.TempDir(), "ca.pem")
		g.Expect(os.WriteFile(file, []byte("no PEM"), 0o600)).To(Succeed())
		_, err := typed(t, NewCreateCommand(), "a:b:c", "--pool=a", "--maas-endpoint=https://maas/MAAS", "--maas-api-key-file=-", "--maas-ca-bundle", file)
		g.Expect(err).To(HaveOccurred())
		g.Expect(exit.Code(err)).To(Equal(exit.Usage))
	})
}

// TestTune checks that only the settings of a host that differ are changed.
func TestTune(t *testing.T) {
	w := newWorld(t, rack())
	w.Expect(w.create(func(c *create) { c.machine, c.hostTags = "small", []string{"gold"} })).To(Succeed())
	refuses := func(operation string) {
		t.Helper()
		simtest.Fault(t, w.Simulator, faults.Rule{Kind: faults.Error, Operation: operation, Status: 500})
	}
	refuses("vm-host.update")
	refuses("vm-host.add_tag")
	w.Expect(w.create(func(c *create) { c.machine, c.hostTags = "small", []string{"gold"} })).To(Succeed(), "what is as it should be is not written")
	w.Expect(w.create(func(c *create) { c.machine, c.hostTags = "small", []string{"silver"} })).NotTo(Succeed())
	w.Expect(w.create(func(c *create) { c.machine, c.memoryOverCommit = "small", 2 })).NotTo(Succeed())
	w.Expect(w.hosts()[0].MemoryOverCommit).To(Equal(1.0))
}

// owner returns an owner reference of a Machine or MaasMachine.
func owner(apiVersion, kind, name string, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: "uid", Controller: &controller}
}

func TestMachineOf(t *testing.T) {
	ours := clusterv1.GroupVersion.String()
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: hosted, Name: "node"}}
	vm := func(name, systemID string, owners ...metav1.OwnerReference) *infrav1.MaasMachine {
		m := &infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{Namespace: hosted, Name: name, OwnerReferences: owners}}
		if systemID != "" {
			m.Spec.SystemID = ptr.To(systemID)
		}
		return m
	}
	for name, tt := range map[string]struct {
		have  []client.Object
		found bool
	}{
		"When a Machine owns the VM's MaasMachine, it should return the Machine":                  {[]client.Object{machine, vm("a", "other", owner(ours, "Machine", "none", true)), vm("b", "abc123", owner(ours, "Machine", "node", true))}, true},
		"When the owner reference has an older Cluster API version, it should return the Machine": {[]client.Object{machine, vm("b", "abc123", owner("cluster.x-k8s.io/v1beta1", "Machine", "node", true))}, true},
		"When no MaasMachine has the VM, it should return nil":                                    {[]client.Object{machine, vm("b", "other", owner(ours, "Machine", "node", true)), vm("c", "")}, false},
		"When the owner is a Machine of another API group, it should return nil":                  {[]client.Object{machine, vm("b", "abc123", owner("machine.openshift.io/v1beta1", "Machine", "node", true))}, false},
		"When the owner is of another kind, it should return nil":                                 {[]client.Object{machine, vm("b", "abc123", owner(ours, "MachineSet", "node", true))}, false},
		"When the owning Machine is already deleted, it should return nil":                        {[]client.Object{vm("b", "abc123", owner(ours, "Machine", "node", true))}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := machineOf(t.Context(), fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(tt.have...).Build(), "abc123")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got != nil).To(Equal(tt.found))
		})
	}
	refused := errors.New("no rights")
	t.Run("When the Machine or MaasMachines cannot be read, it should return the error", func(t *testing.T) {
		g := NewWithT(t)
		have := func() *fake.ClientBuilder {
			return fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(vm("b", "abc123", owner(ours, "Machine", "node", true)))
		}
		_, err := machineOf(t.Context(), have().WithInterceptorFuncs(interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return refused
		}}).Build(), "abc123")
		g.Expect(err).To(MatchError("read Machine clusters-demo/node: no rights"))
		_, err = machineOf(t.Context(), have().WithInterceptorFuncs(interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return refused
		}}).Build(), "abc123")
		g.Expect(err).To(MatchError("list the MaasMachines of the management cluster: no rights"))
	})
}

func TestOwnerOf(t *testing.T) {
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: hosted, Name: "set"}}
	for name, tt := range map[string]struct {
		owners []metav1.OwnerReference
		found  bool
		says   string
	}{
		"When a MachineSet controls the Machine, it should return the MachineSet": {owners: []metav1.OwnerReference{owner("a/v1", "Cluster", "c", false), owner("a/v1", "MachineSet", "set", true)}, found: true},
		"When a MachineSet is only a non-controller owner, it should return nil":  {owners: []metav1.OwnerReference{owner("a/v1", "MachineSet", "set", false)}},
		"When no owner is marked as the controller, it should return nil":         {owners: []metav1.OwnerReference{{Kind: "MachineSet", Name: "set"}}},
		"When another kind controls the Machine, it should return nil":            {owners: []metav1.OwnerReference{owner("a/v1", "KubeadmControlPlane", "set", true)}},
		"When the MachineSet is deleted, it should return an error":               {owners: []metav1.OwnerReference{owner("a/v1", "MachineSet", "gone", true)}, says: "read MachineSet clusters-demo/gone"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: hosted, Name: "node", OwnerReferences: tt.owners}}
			got, err := ownerOf(t.Context(), fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(set).Build(), machine)
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got != nil).To(Equal(tt.found))
		})
	}
}

// TestDeleting checks that the reason for a pending deletion is reported in one line.
func TestDeleting(t *testing.T) {
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: hosted, Name: "node"}}
	g := NewWithT(t)
	g.Expect(deleting(machine)).To(Equal("Machine clusters-demo/node is being deleted"))
	machine.Status.Conditions = []metav1.Condition{
		{Type: clusterv1.MachineReadyCondition, Message: "not of interest"},
		{Type: clusterv1.MachineDeletingCondition, Message: "Drain not completed:\n* Pod a/b: cannot evict, PodDisruptionBudget c"},
	}
	g.Expect(deleting(machine)).To(Equal("Machine clusters-demo/node is being deleted: Drain not completed: * Pod a/b: cannot evict, PodDisruptionBudget c"))
}

// TestReplacedMeanwhile checks that the wait ends if another Machine of the same name exists: an interrupted command
// may be repeated later.
func TestReplacedMeanwhile(t *testing.T) {
	w := site(t)
	c := newClusterAPI(w)
	c.add(w.compose("lxd-2", "b"), true)
	before := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: hosted, Name: "node-1", UID: "an earlier one"}}
	d := &drain{connection: w.connection(), host: "lxd-1"}
	gone := &maas.Machine{SystemID: "zzzzzz", Hostname: "a"}
	w.Expect(d.awaitGone(t.Context(), c, w.maas, before, gone, w.report())).To(Succeed())
	w.Expect(w.out.String()).To(ContainSubstring("VM a (zzzzzz) is gone"))
}

// TestReleaseHeldUp checks that a host is not released if another user has composed a VM on it.
func TestReleaseHeldUp(t *testing.T) {
	w := site(t)
	host, err := findHost(t.Context(), w.maas, func(h *maas.VMHost) bool { return h.Name == "lxd-1" })
	w.Expect(err).NotTo(HaveOccurred())
	w.compose("lxd-1", "late")
	d := &drain{connection: w.connection(), host: "lxd-1", release: true}
	w.Expect(d.giveBack(t.Context(), w.maas, host, w.report())).To(MatchError(ContainSubstring("VM host lxd-1 has a new VM, late")))
	w.Expect(w.owned()).To(ContainElement("lxd-1"))
	w.Expect(w.hosts()).To(HaveLen(2))
}
