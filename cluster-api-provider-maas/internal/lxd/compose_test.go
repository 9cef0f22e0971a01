// SPDX-License-Identifier: Apache-2.0

package lxd_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// region returns a MAAS with an LXD host and a bare metal machine, and a client with administrator rights.
func region(t *testing.T) (*simtest.Site, *maas.Client) {
	t.Helper()
	seed := simtest.WithVMHosts(simtest.Seed(simtest.Machine{ID: "metal1", Hostname: "metal"}),
		simtest.VMHost{Name: "h1", Zone: "north", Pool: "gold", StoragePools: map[string]int{"default": 500, "nvme": 200}})
	s := simtest.New(t, seed)
	c, err := maas.NewClient(maas.Config{Endpoint: simtest.Listen(t, s.Simulator), APIKey: s.Key("admin"), Clock: s.Clock, Retry: maas.RetryPolicy{Attempts: -1}})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// composed has MAAS compose a small virtual machine at the selected placement.
func composed(t *testing.T, c *maas.Client, hostname string) (*maas.Machine, error) {
	t.Helper()
	listed, err := c.ListVMHosts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	request := with(small, func(w *lxd.Request) { w.Store, w.Architecture = "nvme", "amd64" })
	choice, refusal := lxd.Select(request, lxd.Available(listed), now, nil, nil)
	if choice == nil {
		t.Fatal(refusal.Message)
	}
	return c.ComposeMachine(t.Context(), choice.Host.ID, lxd.ComposeRequest(request, lxd.Placement{Hostname: hostname, Store: choice.Store}, choice.Host))
}

// TestComposeFindDelete runs the lifecycle of a virtual machine in MAAS.
func TestComposeFindDelete(t *testing.T) {
	t.Parallel()
	s, c := region(t)
	if vm, err := lxd.Find(t.Context(), c, "vm-1"); vm != nil || err != nil {
		t.Fatalf("before it is composed there should be neither machine nor error: %v, %v", vm, err)
	}
	made, err := composed(t, c, "vm-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := composed(t, c, "vm-1-2"); err != nil {
		t.Fatal(err)
	}
	before := s.Load.Report().Of("machines.read").Machines
	vm, err := lxd.Find(t.Context(), c, "vm-1")
	if printed := s.Load.Report().Of("machines.read").Machines - before; printed != 1 {
		t.Errorf("MAAS printed %d machines, of which there may be thousands", printed)
	}
	if err != nil || vm == nil {
		t.Fatalf("it should be found by its name: %v, %v", vm, err)
	}
	got := map[string]any{"id": vm.SystemID, "cores": vm.CPUCount, "memory": vm.MemoryMiB, "zone": vm.Zone.Name, "pool": vm.Pool.Name, "vm": lxd.IsVM(*vm),
		"disk": vm.PhysicalBlockDevices[0].Size}
	want := map[string]any{"id": made.SystemID, "cores": 2, "memory": 4096, "zone": "north", "pool": "gold", "vm": true, "disk": int64(60e9)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what MAAS made (-want +got):\n%s", diff)
	}
	for range 2 {
		if err := lxd.Delete(t.Context(), c, made.SystemID); err != nil {
			t.Fatalf("deleting it should do, also a second time: %v", err)
		}
	}
	if vm, err := lxd.Find(t.Context(), c, "vm-1"); vm != nil || err != nil {
		t.Errorf("after it is deleted there should be neither machine nor error: %v, %v", vm, err)
	}
	if s.Machine("vm-1-2") == nil {
		t.Error("its neighbour went with it")
	}
}

// TestFindLeavesMetal checks that Find ignores a machine with the given name but a different power type. Such a machine
// was not composed, so it must not be deleted.
func TestFindLeavesMetal(t *testing.T) {
	t.Parallel()
	_, c := region(t)
	if vm, err := lxd.Find(t.Context(), c, "metal"); vm != nil || err != nil {
		t.Errorf("a machine of metal passes for a virtual one: %v, %v", vm, err)
	}
}

// careless is a MAAS that ignores filters, like one behind a proxy that drops parameters.
type careless struct {
	lxd.API
	machines []maas.Machine
	err      error
}

func (c careless) ListMachines(context.Context, maas.MachineFilter) ([]maas.Machine, error) {
	return c.machines, c.err
}

func TestFindAmongOthers(t *testing.T) {
	t.Parallel()
	others := []maas.Machine{{SystemID: "a", Hostname: "vm-2", PowerType: "lxd"}, {SystemID: "b", Hostname: "vm-1", PowerType: "virsh"}, {SystemID: "c", Hostname: "vm-1", PowerType: "lxd"}}
	vm, err := lxd.Find(t.Context(), careless{machines: others}, "vm-1")
	if err != nil || vm == nil || vm.SystemID != "c" {
		t.Errorf("it should be the virtual machine of the name: %+v, %v", vm, err)
	}
	down := errors.New("down")
	if vm, err := lxd.Find(t.Context(), careless{machines: others, err: down}, "vm-1"); vm != nil || !errors.Is(err, down) {
		t.Errorf("a list that failed says nothing about the machine: %+v, %v", vm, err)
	}
}

// TestDeleteRefused checks that a rejected deletion does not count as done.
func TestDeleteRefused(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"When the user lacks the permission": http.StatusForbidden, "When the host does not answer": http.StatusServiceUnavailable, "When MAAS fails with an internal error": http.StatusInternalServerError} {
		t.Run(name+", Delete should return the error", func(t *testing.T) {
			t.Parallel()
			s, c := region(t)
			made, err := composed(t, c, "vm-1")
			if err != nil {
				t.Fatal(err)
			}
			accept := simtest.Refuse(t, s.Simulator, "machine.delete", made.SystemID, status, "no")
			var refusal *maas.Error
			if err := lxd.Delete(t.Context(), c, made.SystemID); !errors.As(err, &refusal) || refusal.StatusCode != status {
				t.Errorf("the error is %v", err)
			}
			if s.Machine(made.SystemID) == nil {
				t.Error("the virtual machine is gone")
			}
			accept()
			if err := lxd.Delete(t.Context(), c, made.SystemID); err != nil {
				t.Errorf("it should go when MAAS is well again: %v", err)
			}
		})
	}
}

// TestDeleteElsewhere checks that an answer from an address without MAAS is not evidence about a machine.
func TestDeleteElsewhere(t *testing.T) {
	t.Parallel()
	s, c := region(t)
	simtest.Behind(t, s.Simulator, http.StatusNotFound)
	if err := lxd.Delete(t.Context(), c, "anything"); err == nil {
		t.Error("a page of a proxy passes for a machine that is gone")
	}
}

// TestOneHost checks that another host is tried only if the rejected call certainly composed nothing. Otherwise there
// could be two machines.
func TestOneHost(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"When MAAS rejects a parameter, another host should be tried":              {&maas.Error{StatusCode: http.StatusBadRequest}, true},
		"When the host's state causes a conflict, another host should be tried":    {&maas.Error{StatusCode: http.StatusConflict}, true},
		"When the host does not answer MAAS, another host should be tried":         {&maas.Error{StatusCode: http.StatusServiceUnavailable}, true},
		"When MAAS no longer knows the host, another host should be tried":         {&maas.Error{StatusCode: http.StatusNotFound, Message: "No Pod matches the given query."}, true},
		"When the storage pool is full, another host should be tried":              {&maas.Error{StatusCode: http.StatusInternalServerError, Message: "Not enough space on the storage pool"}, true},
		"When MAAS fails with an internal error, no other host should be tried":    {&maas.Error{StatusCode: http.StatusInternalServerError, Message: "Internal Server Error"}, false},
		"When a proxy times out, no other host should be tried":                    {&maas.Error{StatusCode: http.StatusGatewayTimeout, Message: "Not enough patience"}, false},
		"When a proxy loses its connection to MAAS, no other host should be tried": {&maas.Error{StatusCode: http.StatusBadGateway}, false},
		"When the request gets no answer, no other host should be tried":           {&maas.UnreachableError{Sent: true, Err: context.DeadlineExceeded}, false},
		"When MAAS is unreachable, no other host should be tried":                  {&maas.UnreachableError{Err: errors.New("connection refused")}, false},
		"When the user may not compose, no other host should be tried":             {&maas.Error{StatusCode: http.StatusForbidden}, false},
		"When the key is rejected, no other host should be tried":                  {&maas.Error{StatusCode: http.StatusUnauthorized}, false},
		"When a 404 is not about the host, no other host should be tried":          {&maas.Error{StatusCode: http.StatusNotFound, Message: "not here"}, false},
		"When another server answers, no other host should be tried":               {&maas.EndpointError{Err: errors.New("a page")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := lxd.OneHost(tc.err); got != tc.want {
				t.Errorf("another host is tried: %t", got)
			}
		})
	}
}

// TestRefusedByTheHost checks the errors that MAAS itself returns.
func TestRefusedByTheHost(t *testing.T) {
	t.Parallel()
	s, c := region(t)
	listed, err := c.ListVMHosts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	host := lxd.Available(listed)[0]
	compose := func(change func(*lxd.Request)) error {
		t.Helper()
		_, err := c.ComposeMachine(t.Context(), host.ID, lxd.ComposeRequest(with(small, change), lxd.Placement{Hostname: "vm-1"}, host))
		if err == nil {
			t.Fatal("MAAS composed")
		}
		return err
	}
	tooMany := compose(func(w *lxd.Request) { w.Cores = 17 })
	if !lxd.OneHost(tooMany) || lxd.ReasonIn(tooMany.Error()) != lxd.ReasonInsufficientResources {
		t.Errorf("more cores than the host has: %v", tooMany)
	}
	back := simtest.HostAway(t, s.Simulator, "h1")
	if away := compose(func(*lxd.Request) {}); !lxd.OneHost(away) {
		t.Errorf("a host that is away: %v", away)
	}
	back()
	s.Change("metal1", func(m *inventory.Machine) { m.Hostname = "vm-1" })
	if taken := compose(func(*lxd.Request) {}); !maas.IsInvalid(taken) {
		t.Errorf("a name that is taken, which is what keeps a try from making two: %v", taken)
	}
}

func TestRequestLeavesToMAAS(t *testing.T) {
	t.Parallel()
	host := lxd.Host{ZoneID: 0, PoolID: 0, Architectures: []string{"arm64/generic", "amd64/generic", "amd64/hwe"}}
	for name, tc := range map[string]struct {
		request lxd.Request
		place   lxd.Placement
		want    maas.ComposeRequest
	}{
		"When no storage pool is selected, MAAS should select it": {with(small, func(w *lxd.Request) { w.Architecture = "amd64/generic" }), lxd.Placement{Hostname: "vm-1"},
			maas.ComposeRequest{Hostname: "vm-1", Cores: 2, MemoryMiB: 4096, Storage: "root:60", Architecture: "amd64/generic", Zone: ptr.To(0), Pool: ptr.To(0)}},
		"When no architecture is requested, the request should leave it to MAAS": {small, lxd.Placement{Hostname: "vm-1"},
			maas.ComposeRequest{Hostname: "vm-1", Cores: 2, MemoryMiB: 4096, Storage: "root:60", Zone: ptr.To(0), Pool: ptr.To(0)}},
		"When several subarchitectures match, it should use the first one of the host": {with(small, func(w *lxd.Request) { w.Architecture = "amd64" }), lxd.Placement{Hostname: "vm-1"},
			maas.ComposeRequest{Hostname: "vm-1", Cores: 2, MemoryMiB: 4096, Storage: "root:60", Architecture: "amd64/generic", Zone: ptr.To(0), Pool: ptr.To(0)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, lxd.ComposeRequest(tc.request, tc.place, host)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestReasonAmongSeveral checks the reason if several hosts report errors. Lack of resources takes precedence over an
// unknown name, since an administrator can fix it.
func TestReasonAmongSeveral(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"host a: write /var: No space left on device":                               lxd.ReasonInsufficientResources,
		"host a: project \"x\" not found | host b: CPU OVERCOMMIT ratio is 1.0":     lxd.ReasonInsufficientResources,
		"host a: project \"x\" not found | host b: profile \"maas\" does not exist": lxd.ReasonProfileNotFound,
		"host a: name: Ensure this value has at most 64 characters":                 "",
		"": "",
	} {
		if got := lxd.ReasonIn(words); got != want {
			t.Errorf("%q is %q, and not %q", words, got, want)
		}
	}
}
