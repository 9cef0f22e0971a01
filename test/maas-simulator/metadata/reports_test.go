// SPDX-License-Identifier: Apache-2.0

package metadata_test

import (
	"fmt"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// report sends a report of a step, as curtin and cloud-init do.
func report(site *simtest.Site, origin, kind, name, result string) simtest.Answer {
	return as(site, "one", "POST", "status/aaaaa1", fmt.Sprintf(
		`{"origin": %q, "description": "d", "timestamp": 1.5, "event_type": %q, "name": %q, "result": %q}`, origin, kind, name, result))
}

func events(site *simtest.Site, level string) []string {
	var out []string
	list, _ := site.Do("admin", "GET", "events/?op=query&id=aaaaa1&limit=1000&level="+level).Object()["events"].([]any)
	for _, e := range list {
		event := e.(map[string]any)
		out = append(out, fmt.Sprint(event["level"], " ", event["type"], " ", event["description"]))
	}
	return out
}

// TestVMHost verifies when a machine that becomes a VM host is Deployed: after it has fetched its user-data and then
// finished its configuration.
func TestVMHost(t *testing.T) {
	g := NewWithT(t)
	site := rack(t)
	site.Change("aaaaa1", func(m *inventory.Machine) { m.VMHost = true })
	is := func(s status.Status, why string) {
		t.Helper()
		g.Expect(site.Has("one").Status).To(Equal(s), why)
	}
	report(site, "cloud-init", "finish", "modules-final", "SUCCESS")
	is(status.Deploying, "it has no user-data yet")
	g.Expect(as(site, "one", "GET", "2012-03-01/user-data", "").Body).To(Equal("hello"))
	g.Expect(site.Has("one").AgentName).To(Equal("maas-kvm-pod"))
	report(site, "cloud-init", "start", "modules-final", "")
	report(site, "cloud-init", "finish", "modules-config", "SUCCESS")
	report(site, "cloud-init", "finish", "modules-final", "FAIL")
	is(status.Deploying, "a step that failed is passed over")
	report(site, "cloud-init", "finish", "modules-final", "SUCCESS")
	is(status.Deployed, "all is configured")
	g.Expect(site.Do("admin", "GET", "vm-hosts/").Each("name")).To(Equal([]string{"one"}))
}

// TestFailedSteps verifies that only a failed top-level step of a running operation fails the operation.
func TestFailedSteps(t *testing.T) {
	for s, to := range map[status.Status]status.Status{
		status.Deploying: status.FailedDeployment, status.Commissioning: status.FailedCommissioning, status.DiskErasing: status.FailedDiskErasing,
		status.Testing: status.Testing, status.Deployed: status.Deployed, status.Ready: status.Ready,
	} {
		t.Run("When the machine is "+s.String()+", a failed step should fail only a transient operation", func(t *testing.T) {
			g := NewWithT(t)
			site := rack(t)
			site.Change("aaaaa1", func(m *inventory.Machine) { m.Status = s })
			report(site, "curtin", "start", "cmd-install", "FAIL")
			report(site, "curtin", "finish", "cmd-install/stage-partitioning/builtin", "FAILURE")
			g.Expect(site.Has("one").Status).To(Equal(s))
			g.Expect(report(site, "curtin", "finish", "/cmd-install/", "FAILURE").Code).To(Equal(204))
			g.Expect(site.Has("one").Status).To(Equal(to))
			if s != to {
				g.Expect(site.Has("one").ErrorDescription).To(Equal("Installation failed (/cmd-install/: d)"))
			}
		})
	}
}

// TestWhatIsLogged verifies the events of reported steps. The start of a step is logged with the name of the
// operation. A failed step is logged as an error if MAAS has an error event for the status.
func TestWhatIsLogged(t *testing.T) {
	for s, want := range map[status.Status][]string{
		status.Commissioning: {"ERROR Node commissioning failure 'curtin' d", "DEBUG Node commissioning 'curtin' d"},
		status.Deploying:     {"ERROR Node installation failure 'curtin' d", "DEBUG Node installation 'curtin' d"},
		status.Deployed:      {"ERROR Node post-installation failure 'curtin' d", "DEBUG Node status event 'curtin' d"},
		status.Testing:       {"DEBUG Node status event 'curtin' d", "DEBUG Node status event 'curtin' d"},
	} {
		t.Run("When the machine is "+s.String()+", the events should be those of MAAS", func(t *testing.T) {
			g := NewWithT(t)
			site := rack(t)
			site.Change("aaaaa1", func(m *inventory.Machine) { m.Status = s })
			before := len(events(site, "DEBUG"))
			report(site, "curtin", "start", "a/b", "")
			report(site, "curtin", "finish", "a/b", "SUCCESS")
			report(site, "curtin", "finish", "a/b", "FAIL")
			all := events(site, "DEBUG")
			g.Expect(all[:len(all)-before]).To(Equal(want))
		})
	}
}

// TestMissingParts verifies that a report without a required field is rejected.
func TestMissingParts(t *testing.T) {
	const whole = `{"origin": "o", "description": "d", "event_type": "start", "name": "n"}`
	site := rack(t)
	g := NewWithT(t)
	g.Expect(as(site, "one", "POST", "status/aaaaa1", whole).Code).To(Equal(204))
	for part, body := range map[string]string{
		"origin":      `{"description": "d", "event_type": "start", "name": "n"}`,
		"description": `{"origin": "o", "event_type": "start", "name": "n"}`,
		"event_type":  `{"origin": "o", "description": "d", "name": "n"}`,
		"name":        `{"origin": "o", "description": "d", "event_type": "start", "name": ""}`,
	} {
		answer := as(site, "one", "POST", "status/aaaaa1", body)
		g.Expect(answer.Code).To(Equal(400))
		g.Expect(answer.Body).To(Equal("Missing parameter in status message " + part))
	}
	answer := as(site, "one", "POST", "status/aaaaa1", `["start"]`)
	g.Expect(answer.Code).To(Equal(400))
	g.Expect(answer.Body).To(HavePrefix("Status payload is not valid JSON: "))
}

// TestSignals verifies that every known signal of a machine is accepted, and that only the failure signals end the
// operation.
func TestSignals(t *testing.T) {
	for _, word := range []string{"OK", "WORKING", "COMMISSIONING", "TESTING", "INSTALLING", "APPLYING_NETCONF", "RELEASING"} {
		g := NewWithT(t)
		site := rack(t)
		answer := as(site, "one", "POST", "2012-03-01/?op=signal", "status="+word)
		g.Expect(answer.Code).To(Equal(200), word)
		g.Expect(answer.Body).To(Equal("OK"))
		g.Expect(site.Has("one").Status).To(Equal(status.Deploying), word)
	}
	for body, reason := range map[string]string{"status=FAILED": "the machine reported FAILED", "status=TIMEDOUT": "the machine reported TIMEDOUT",
		"status=FAILED&error=no+disk": "no disk"} {
		g := NewWithT(t)
		site := rack(t)
		as(site, "one", "POST", "2012-03-01/?op=signal", body)
		g.Expect(site.Has("one")).To(And(HaveField("Status", status.FailedDeployment), HaveField("ErrorDescription", reason)))
	}
	for body, says := range map[string]string{"a=b": "No provided status!", "status=ok": "Unknown commissioning/installation status: 'ok'"} {
		answer := as(rack(t), "one", "POST", "2012-03-01/?op=signal", body)
		NewWithT(t).Expect(answer).To(And(HaveField("Code", 400), HaveField("Body", says)))
	}
	answer := as(rack(t), "one", "POST", "2012-03-01/", "a=b")
	NewWithT(t).Expect(answer).To(And(HaveField("Code", 400), HaveField("Body", "Unrecognised signature: method=POST op=")))
	answer = as(rack(t), "one", "POST", "2012-03-01/?op=signal", "status=%zz")
	NewWithT(t).Expect(answer.Code).To(Equal(400), "a form that is broken")
}

func TestNetboot(t *testing.T) {
	g := NewWithT(t)
	site := rack(t)
	for _, turn := range []string{"off", "on", "off"} {
		g.Expect(as(site, "one", "POST", "2012-03-01/?op=netboot_"+turn, "").Code).To(Equal(200))
		g.Expect(site.Has("one").Netboot).To(Equal(turn == "on"))
		g.Expect(site.Do("alice", "GET", "machines/aaaaa1/").Object()).To(HaveKeyWithValue("netboot", turn == "on"))
	}
	g.Expect(site.Has("two").Netboot).To(BeTrue(), "each speaks for itself")
}

// TestGoneMachines verifies that the credentials of a deleted machine are invalid.
func TestGoneMachines(t *testing.T) {
	g := NewWithT(t)
	site := rack(t)
	token := site.Has("one").Token
	g.Expect(site.Do("admin", "DELETE", "machines/aaaaa1/").Code).To(Equal(204))
	r := httptest.NewRequest("GET", "/MAAS/metadata/latest/user-data", nil)
	r.Header.Set("Authorization", site.Authorization(token.Consumer+":"+token.Key+":"+token.Secret))
	answer := site.Send(r)
	g.Expect(answer.Code).To(Equal(401))
	g.Expect(answer.Header.Get("WWW-Authenticate")).To(HavePrefix("OAuth "))
	g.Expect(answer.Body).NotTo(ContainSubstring(token.Secret))
	mixed := site.Has("two").Token
	for _, key := range []string{mixed.Consumer + ":" + token.Key, token.Consumer + ":" + mixed.Key, site.Has("three").Token.Consumer + ":" + mixed.Key} {
		r.Header.Set("Authorization", site.Authorization(key+":"+mixed.Secret))
		g.Expect(site.Send(r).Code).To(Equal(401), "halves of two keys are none")
	}
}
