// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/admin"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

func send(site *simtest.Site, request, body string) (int, string) {
	method, path, _ := strings.Cut(request, " ")
	w := httptest.NewRecorder()
	admin.New(site.Simulator).ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w.Code, strings.TrimSpace(w.Body.String())
}

func TestFaults(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	code, body := send(site, "POST /faults", `{"kind": "error", "operation": "zones.read", "status": 502, "message": "gone fishing", "for": "1m"}`)
	g.Expect(code).To(Equal(201))
	g.Expect(body).To(Equal(`{"id":1}`))
	answer := site.Do("alice", "GET", "zones/")
	g.Expect(answer.Code).To(Equal(502))
	g.Expect(answer.Body).To(Equal("gone fishing"))
	_, body = send(site, "GET /faults", "")
	g.Expect(body).To(MatchJSON(`[{"id": 1, "kind": "error", "operation": "zones.read", "status": 502, "message": "gone fishing", "for": "1m0s", "hits": 1}]`))

	site.Clock.Step(61e9)
	_, body = send(site, "GET /faults", "")
	g.Expect(body).To(Equal("[]"), "its time is over")
	g.Expect(site.Do("alice", "GET", "zones/").Code).To(Equal(200))

	send(site, "POST /faults", `{"kind": "drop"}`)
	code, _ = send(site, "DELETE /faults/2", "")
	g.Expect(code).To(Equal(204))
	code, _ = send(site, "DELETE /faults/2", "")
	g.Expect(code).To(Equal(404))
	code, _ = send(site, "DELETE /faults", "")
	g.Expect(code).To(Equal(204))
	for _, bad := range []string{`{"kind": "rain"}`, `{"kind": "error", "rate": 2}`, `{"kind": "error", "status": 200}`, `{"kind": "error", "operation": "["}`, `{"kind": "dead-bmc", "machine": "["}`, `{"colour": 1}`, `{`, `{"kind": "error", "for": "soon"}`} {
		code, body = send(site, "POST /faults", bad)
		g.Expect(code).To(Equal(400), bad)
		g.Expect(body).To(ContainSubstring(`"error":`))
	}
}

func TestLevers(t *testing.T) {
	tests := map[string]struct {
		from  status.Status
		lever string
		code  int
		leads status.Status
	}{
		"a machine breaks":              {status.Deployed, "broken?text=smoke", 204, status.Broken},
		"a Broken machine is repaired":  {status.Broken, "fixed", 204, status.Ready},
		"a healthy machine is repaired": {status.Ready, "fixed", 409, status.Ready},
		"a user releases a machine":     {status.Deployed, "release", 204, status.Releasing},
		"a deployment fails":            {status.Deploying, "fail?text=why", 204, status.FailedDeployment},
		"an idle machine fails":         {status.Ready, "fail", 409, status.Ready},
		"the status is set":             {status.Ready, "status?text=missing", 204, status.Missing},
		"the status is unknown":         {status.Ready, "status?text=tired", 409, status.Ready},
		"an idle machine resumes":       {status.Ready, "resume", 409, status.Ready},
		"a deployment resumes":          {status.Deploying, "resume", 204, status.Deploying},
		"the hardware is tested":        {status.Deployed, "test", 204, status.Testing},
		"the power state is unknown":    {status.Ready, "power?text=half", 409, status.Ready},
		"the action is unknown":         {status.Ready, "paint", 404, status.Ready},
	}
	for name, test := range tests {
		t.Run("When "+name+", the response code and the machine's status should match", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			site.Change("aaaaa1", func(m *inventory.Machine) { m.Status, m.PowerState, m.Owner = test.from, "on", "alice" })
			code, body := send(site, "POST /machines/one/"+test.lever, "")
			g.Expect(code).To(Equal(test.code), body)
			g.Expect(site.Has("aaaaa1").Status).To(Equal(test.leads))
		})
	}
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	send(site, "POST /machines/aaaaa1/power?text=error", "")
	g.Expect(site.Has("one").PowerState).To(Equal("error"))
	send(site, "POST /machines/aaaaa1/delete", "")
	g.Expect(site.Machine("one")).To(BeNil())
	code, _ := send(site, "POST /machines/aaaaa1/delete", "")
	g.Expect(code).To(Equal(404))
}

func TestLists(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	site.Do("alice", "POST", "machines/?op=allocate", "name", "two", "agent_name", "mine")
	site.Do("alice", "POST", "machines/aaaaa2/?op=deploy", "user_data", "aGVsbG8=")
	site.Do("alice", "GET", "zones/x/")
	_, body := send(site, "GET /machines", "")
	g.Expect(body).To(ContainSubstring(`{"system_id":"aaaaa2","hostname":"two","status":"Deploying","power":"off","owner":"alice","agent_name":"mine","image":"ubuntu/jammy","ips":["10.9.0.251"],"user_data_bytes":5}`))
	_, body = send(site, "GET /requests", "")
	g.Expect(body).To(Equal(`[{"operation":"machine.deploy","status":200,"count":1},{"operation":"machines.allocate","status":200,"count":1},{"operation":"zone.read","status":404,"count":1}]`))
	send(site, "DELETE /requests", "")
	_, body = send(site, "GET /requests", "")
	g.Expect(body).To(Equal("[]"))
	code, _ := send(site, "GET /healthz", "")
	g.Expect(code).To(Equal(200))
}

func TestLoad(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	code, _ := send(site, "PUT /cost", `{"request": "10ms", "machine": "25ms"}`)
	g.Expect(code).To(Equal(204))
	send(site, "DELETE /requests", "")
	site.Do("alice", "GET", "machines/")
	site.Do("alice", "GET", "machines/?agent_name=nobody")
	site.Do("alice", "GET", "machines/aaaaa1/")
	site.Do("alice", "GET", "zones/")
	site.Clock.Step(30e9)
	_, body := send(site, "GET /load", "")
	g.Expect(body).To(MatchJSON(`{"seconds": 30,
		"total": {"calls": 4, "machines": 6, "busy_seconds": 0.19, "queued_seconds": 0, "calls_per_minute": 8, "busy_seconds_per_minute": 0.38},
		"operations": [
			{"operation": "machines.read", "calls": 2, "machines": 5, "busy_seconds": 0.145, "queued_seconds": 0, "calls_per_minute": 4, "busy_seconds_per_minute": 0.29},
			{"operation": "machine.read", "calls": 1, "machines": 1, "busy_seconds": 0.035, "queued_seconds": 0, "calls_per_minute": 2, "busy_seconds_per_minute": 0.07},
			{"operation": "zones.read", "calls": 1, "machines": 0, "busy_seconds": 0.01, "queued_seconds": 0, "calls_per_minute": 2, "busy_seconds_per_minute": 0.02}]}`))
	for _, bad := range []string{`{"workers": -1}`, `{"request": "soon"}`, `{"colour": 1}`} {
		code, body := send(site, "PUT /cost", bad)
		g.Expect(code).To(Equal(400), bad)
		g.Expect(body).To(ContainSubstring(`"error":`))
	}
}
