// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// TestWhatALeverSays verifies the machine's event log: it attributes the action to the administrator and contains the
// reason.
func TestWhatALeverSays(t *testing.T) {
	for lever, from := range map[string]status.Status{"broken": status.Deployed, "fixed": status.Broken, "release": status.Deployed, "test": status.Ready} {
		t.Run("When the action is "+lever+" the event should name the user and the reason", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			site.Change("aaaaa1", func(m *inventory.Machine) { m.Status, m.Owner, m.PowerState = from, "alice", "on" })
			code, body := send(site, "POST /machines/aaaaa1/"+lever+"?text=smoke", "")
			g.Expect(code).To(Equal(204), body)
			g.Expect(body).To(BeEmpty())
			events := site.Do("admin", "GET", "events/?op=query&level=DEBUG&owner=admin").Object()["events"]
			g.Expect(events).To(HaveExactElements(And(HaveKeyWithValue("description", "(admin) - smoke"), HaveKeyWithValue("username", "admin"))))
		})
	}
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	site.Change("aaaaa1", func(m *inventory.Machine) { m.Status = status.Deploying })
	send(site, "POST /machines/one/fail?text=no+disk", "")
	g.Expect(site.Has("one").ErrorDescription).To(Equal("no disk"))
	code, body := send(site, "POST /machines/one/fail?text=again", "")
	g.Expect(code).To(Equal(409))
	g.Expect(body).To(Equal(`{"error":"machine one is Failed deployment: it does nothing that could fail"}`))
	g.Expect(site.Has("one").ErrorDescription).To(Equal("no disk"))
	code, _ = send(site, "POST /machines/two/release", "")
	g.Expect(code).To(Equal(204), "there is nothing to release")
	site.Change("aaaaa2", func(m *inventory.Machine) { m.Status = status.Testing })
	code, body = send(site, "POST /machines/two/release", "")
	g.Expect(code).To(Equal(409))
	g.Expect(body).To(ContainSubstring("Machine cannot be released in its current state ('Testing')."))
}

// TestPowerLever verifies that the lever sets only the power state.
func TestPowerLever(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	for _, state := range []string{"on", "off", "unknown", "error"} {
		code, _ := send(site, "POST /machines/one/power?text="+state, "")
		g.Expect(code).To(Equal(204))
		g.Expect(site.Has("one")).To(And(HaveField("PowerState", state), HaveField("Task", BeNil())))
	}
	code, body := send(site, "POST /machines/one/power", "")
	g.Expect(code).To(Equal(409))
	g.Expect(body).To(Equal(`{"error":"power state \"\" is not known: use on, off, unknown or error"}`))
	code, body = send(site, "POST /machines/nobody/power?text=on", "")
	g.Expect(code).To(Equal(404))
	g.Expect(body).To(Equal(`{"error":"no machine has the system id or hostname \"nobody\""}`))
	code, body = send(site, "POST /machines/one/paint", "")
	g.Expect(code).To(Equal(404))
	g.Expect(body).To(Equal(`{"error":"there is no lever \"paint\""}`))
}

// TestRowsAreSorted verifies that the counters have a stable order, so that two responses can be compared line by line.
func TestRowsAreSorted(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	for _, path := range []string{"zones/", "zones/nowhere/", "machines/", "machines/?zone=x", "zones/north/", "machines/aaaaa1/", "machines/"} {
		site.Do("alice", "GET", path)
	}
	want := `[{"operation":"machine.read","status":200,"count":1},{"operation":"machines.read","status":200,"count":2},` +
		`{"operation":"machines.read","status":400,"count":1},{"operation":"zone.read","status":200,"count":1},` +
		`{"operation":"zone.read","status":404,"count":1},{"operation":"zones.read","status":200,"count":1}]`
	for range 8 {
		_, body := send(site, "GET /requests", "")
		g.Expect(body).To(Equal(want))
	}
	code, body := send(site, "GET /healthz", "")
	g.Expect(code).To(Equal(200))
	g.Expect(body).To(Equal(`"ok"`))
	_, body = send(site, "GET /machines", "")
	g.Expect(body).To(ContainSubstring(`{"system_id":"aaaaa1","hostname":"one","status":"Ready","power":"off"}`), "what there is not is not shown")
	code, _ = send(site, "PUT /machines", "")
	g.Expect(code).To(Equal(405))
	code, _ = send(site, "GET /nothing", "")
	g.Expect(code).To(Equal(404))
}

// TestLargeBodies verifies that a large body is rejected before it fills the memory.
func TestLargeBodies(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	large := make([]byte, 1<<20)
	for i := range large {
		large[i] = ' '
	}
	code, body := send(site, "POST /faults", string(large)+`{"kind": "drop"}`)
	g.Expect(code).To(Equal(400))
	g.Expect(body).To(ContainSubstring("reading a fault: http: request body too large"))
	g.Expect(site.Faults.List()).To(BeEmpty())
}

// TestHostsGoAndCome verifies that a repeated lever has no further effect.
func TestHostsGoAndCome(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.WithVMHost)
	g.Expect(site.Do("admin", "POST", "vm-hosts/7/?op=compose", "hostname", "vm", "skip_commissioning", "true").Code).To(Equal(200))
	id := site.Has("vm").SystemID
	g.Expect(site.Do("alice", "POST", "machines/"+id+"/?op=deploy").Code).To(Equal(200))
	site.Settle(time.Hour)
	for range 2 {
		code, _ := send(site, "POST /vm-hosts/lxd-1/away", "")
		g.Expect(code).To(Equal(204))
		site.Settle(time.Minute)
		g.Expect(site.Has("vm").PowerState).To(Equal("error"))
	}
	for range 2 {
		send(site, "POST /vm-hosts/lxd-1/back", "")
		site.Settle(time.Minute)
		g.Expect(site.Has("vm").PowerState).To(Equal("on"))
	}
	for range 2 {
		code, _ := send(site, "POST /vm-hosts/lxd-1/fill?text=default", "")
		g.Expect(code).To(Equal(204))
		pools := site.Do("admin", "GET", "vm-hosts/7/").Object()["storage_pools"].([]any)
		g.Expect(pools[0]).To(And(HaveKeyWithValue("available", 0.0), HaveKeyWithValue("used", 5e11)))
	}
	_, body := send(site, "POST /vm-hosts/lxd-1/fill?text=fast", "")
	g.Expect(body).To(Equal(`{"error":"VM host lxd-1 has no storage pool \"fast\""}`))
}
