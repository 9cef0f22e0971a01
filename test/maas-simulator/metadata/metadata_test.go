// SPDX-License-Identifier: Apache-2.0

package metadata_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// metal is a backend whose machines send their own reports.
type metal struct{ boot.None }

// rack returns a site where machine "one" is installed and boots.
func rack(t *testing.T) *simtest.Site {
	site := simtest.New(t, simtest.Rack, func(o *simulator.Options) {
		o.Backend = &metal{}
		o.Durations.Deploy = 0
	})
	answer := site.Do("alice", "POST", "machines/aaaaa1/?op=deploy", "distro_series", "custom/node", "user_data", "aGVsbG8=")
	if answer.Code != 200 {
		t.Fatal(answer.Body)
	}
	site.Pass(10 * time.Second)
	return site
}

// as sends a request with a machine's credentials. An empty machine sends none.
func as(site *simtest.Site, machine, method, path, body string) simtest.Answer {
	r := httptest.NewRequest(method, "/MAAS/metadata/"+path, strings.NewReader(body))
	if strings.Contains(body, "=") {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if machine != "" {
		token := site.Has(machine).Token
		r.Header.Set("Authorization", site.Authorization(token.Consumer+":"+token.Key+":"+token.Secret))
	}
	return site.Send(r)
}

func TestMetaData(t *testing.T) {
	site := rack(t)
	site.Do("alice", "POST", "account/prefs/sshkeys/", "key", "ssh-ed25519 AAAA me")
	tests := map[string]struct {
		machine, path string
		code          int
		says          string
	}{
		"the versions are requested":     {"", "", 200, "latest\n2012-03-01\n2009-04-04"},
		"there are no credentials":       {"", "2012-03-01/meta-data/instance-id", 401, "Not authenticated."},
		"the version is unknown":         {"one", "1999-01-01/meta-data/", 404, "Unknown metadata version 1999-01-01."},
		"the top level is requested":     {"one", "latest/", 200, "meta-data/\nuser-data\nmaas-commissioning-scripts\nmaas-scripts"},
		"the items are requested":        {"one", "2012-03-01/meta-data/", 200, "instance-id\nlocal-hostname\nlocal-ipv4\nplacement/availability-zone\npublic-keys\nvendor-data\nx509"},
		"the ID is requested":            {"one", "2012-03-01/meta-data/instance-id", 200, "aaaaa1"},
		"the name is requested":          {"one", "2012-03-01/meta-data/local-hostname", 200, "one.maas"},
		"the address is requested":       {"one", "2012-03-01/meta-data/local-ipv4", 200, "10.9.0.251"},
		"the zone is requested":          {"one", "2012-03-01/meta-data/placement/availability-zone", 200, "default"},
		"the owner's keys are requested": {"one", "2012-03-01/meta-data/public-keys", 200, "ssh-ed25519 AAAA me"},
		"vendor data is requested":       {"one", "2012-03-01/meta-data/vendor-data", 200, "cloud-init: |\n  #cloud-config\n  ntp:\n    pools: []\n    servers:\n    - 192.0.2.1\n"},
		"curtin requests the ID":         {"one", "curtin/2012-03-01/meta-data/instance-id", 200, "aaaaa1"},
		"an unknown item is requested":   {"one", "2012-03-01/meta-data/colour", 404, "Unknown metadata attribute: colour"},
		"an unknown path is requested":   {"one", "2012-03-01/colour", 404, "Unknown metadata attribute: colour"},
		"there is no user-data":          {"two", "2012-03-01/user-data", 404, "No user data available for this node."},
		"an idle machine has no address": {"two", "2012-03-01/meta-data/local-ipv4", 404, "Unknown metadata attribute: local-ipv4"},
	}
	for name, test := range tests {
		t.Run("When "+name+", the response should be that of MAAS", func(t *testing.T) {
			g := NewWithT(t)
			answer := as(site, test.machine, "GET", test.path, "")
			g.Expect(answer.Code).To(Equal(test.code))
			g.Expect(answer.Body).To(Equal(test.says))
		})
	}
	g := NewWithT(t)
	g.Expect(site.Has("one").Status).To(Equal(status.Deploying), "meta-data is no sign of a system that is up")
}

func TestUserData(t *testing.T) {
	t.Run("When the deployed system fetches its user-data, the machine should be Deployed", func(t *testing.T) {
		g := NewWithT(t)
		site := rack(t)
		g.Expect(as(site, "one", "GET", "2012-03-01/user-data", "").Body).To(Equal("hello"))
		m := site.Has("one")
		g.Expect(m.Status).To(Equal(status.Deployed))
		g.Expect(m.Task).To(BeNil())
		g.Expect(*m.StatusMessage).To(Equal("Deployed"))
		g.Expect(as(site, "one", "GET", "2012-03-01/user-data", "").Code).To(Equal(200), "it may fetch it again")
	})
	t.Run("When the machine becomes a VM host, fetching its user-data should not be enough", func(t *testing.T) {
		g := NewWithT(t)
		site := rack(t)
		site.Change("aaaaa1", func(m *inventory.Machine) { m.VMHost = true })
		as(site, "one", "GET", "2012-03-01/user-data", "")
		g.Expect(site.Has("one").Status).To(Equal(status.Deploying))
	})
	t.Run("When the boot is made to hang, no user-data should be served and the deployment should fail", func(t *testing.T) {
		g := NewWithT(t)
		site := rack(t)
		_, err := site.Faults.Add(faults.Rule{Kind: faults.BootHangs, Machine: "one"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(as(site, "one", "GET", "2012-03-01/user-data", "").Code).To(Equal(503))
		site.Pass(2 * time.Hour)
		g.Expect(site.Has("one").Status).To(Equal(status.FailedDeployment))
	})
	t.Run("When the system is made to go silent, the machine should be Deployed with empty user-data", func(t *testing.T) {
		g := NewWithT(t)
		site := rack(t)
		_, err := site.Faults.Add(faults.Rule{Kind: faults.GoesSilent, Machine: "one"})
		g.Expect(err).NotTo(HaveOccurred())
		answer := as(site, "one", "GET", "2012-03-01/user-data", "")
		g.Expect(answer.Code).To(Equal(200))
		g.Expect(answer.Body).To(BeEmpty())
		g.Expect(site.Has("one").Status).To(Equal(status.Deployed))
	})
	t.Run("When a machine is released, its old credentials should be invalid", func(t *testing.T) {
		g := NewWithT(t)
		site := rack(t)
		token := site.Has("one").Token
		site.Do("alice", "POST", "machines/aaaaa1/?op=release")
		site.Settle(time.Minute)
		r := httptest.NewRequest("GET", "/MAAS/metadata/2012-03-01/user-data", nil)
		r.Header.Set("Authorization", site.Authorization(token.Consumer+":"+token.Key+":"+token.Secret))
		g.Expect(site.Send(r).Code).To(Equal(401))
	})
}

func TestSignal(t *testing.T) {
	tests := map[string]struct {
		path, body string
		code       int
		leads      status.Status
	}{
		"all is well":              {"2012-03-01/?op=signal", "status=OK", 200, status.Deploying},
		"op is in the body":        {"2012-03-01/", "op=signal&status=WORKING", 200, status.Deploying},
		"the machine failed":       {"2012-03-01/?op=signal", "status=FAILED&error=no+disk", 200, status.FailedDeployment},
		"the machine timed out":    {"2012-03-01/?op=signal", "status=TIMEDOUT", 200, status.FailedDeployment},
		"the status is unknown":    {"2012-03-01/?op=signal", "status=MAYBE", 400, status.Deploying},
		"the status is missing":    {"2012-03-01/?op=signal", "a=b", 400, status.Deploying},
		"netboot is turned off":    {"2012-03-01/?op=netboot_off", "", 200, status.Deploying},
		"the operation is unknown": {"2012-03-01/?op=sing", "", 400, status.Deploying},
	}
	for name, test := range tests {
		t.Run("When "+name+", the machine should have the resulting status", func(t *testing.T) {
			g := NewWithT(t)
			site := rack(t)
			g.Expect(as(site, "one", "POST", test.path, test.body).Code).To(Equal(test.code))
			g.Expect(site.Has("one").Status).To(Equal(test.leads))
		})
	}
	t.Run("When an idle machine signals a failure, its status should not change", func(t *testing.T) {
		g := NewWithT(t)
		site := rack(t)
		g.Expect(as(site, "two", "POST", "2012-03-01/?op=signal", "status=FAILED").Code).To(Equal(200))
		g.Expect(site.Has("two").Status).To(Equal(status.Ready))
	})
}

func TestReport(t *testing.T) {
	const head = `{"origin": "curtin", "description": "d", "timestamp": 1.5, `
	tests := map[string]struct {
		machine, id, body string
		code              int
		leads             status.Status
	}{
		"a step begins":                     {"one", "aaaaa1", head + `"event_type": "start", "name": "cmd-install"}`, 204, status.Deploying},
		"a step succeeds":                   {"one", "aaaaa1", head + `"event_type": "finish", "name": "cmd-install", "result": "SUCCESS"}`, 204, status.Deploying},
		"a nested step fails":               {"one", "aaaaa1", head + `"event_type": "finish", "name": "cmd-install/stage-x", "result": "FAIL"}`, 204, status.Deploying},
		"a top-level step fails":            {"one", "aaaaa1", head + `"event_type": "finish", "name": "cmd-install", "result": "FAIL"}`, 204, status.FailedDeployment},
		"the report is not JSON":            {"one", "aaaaa1", "{", 400, status.Deploying},
		"a field is missing":                {"one", "aaaaa1", `{"event_type": "start"}`, 400, status.Deploying},
		"there are no credentials":          {"", "aaaaa1", head + `"event_type": "start", "name": "x"}`, 401, status.Deploying},
		"the report is for another machine": {"two", "aaaaa1", head + `"event_type": "finish", "name": "cmd-install", "result": "FAIL"}`, 401, status.Deploying},
		"the path ends with a slash":        {"one", "aaaaa1/", head + `"event_type": "start", "name": "x"}`, 204, status.Deploying},
		"an idle machine reports a failure": {"two", "aaaaa2", head + `"event_type": "finish", "name": "modules-final", "result": "FAIL"}`, 204, status.Deploying},
	}
	for name, test := range tests {
		t.Run("When "+name+", the report should be handled as by MAAS", func(t *testing.T) {
			g := NewWithT(t)
			site := rack(t)
			g.Expect(as(site, test.machine, "POST", "status/"+test.id, test.body).Code).To(Equal(test.code))
			g.Expect(site.Has("one").Status).To(Equal(test.leads))
			g.Expect(site.Has("two").Status).To(Equal(status.Ready))
		})
	}
	g := NewWithT(t)
	site := rack(t)
	g.Expect(as(site, "one", "GET", "status/aaaaa1", "").Code).To(Equal(405))
	last := func(level string) map[string]any {
		events := site.Do("alice", "GET", "events/?op=query&limit=1&level="+level).Object()["events"].([]any)
		return events[0].(map[string]any)
	}
	as(site, "one", "POST", "status/aaaaa1", head+`"event_type": "start", "name": "cmd-install"}`)
	g.Expect(last("DEBUG")).To(And(HaveKeyWithValue("type", "Node installation"), HaveKeyWithValue("description", "'curtin' d")))
	as(site, "one", "POST", "status/aaaaa1", head+`"event_type": "finish", "name": "cmd-install", "result": "SUCCESS", "description": "e"}`)
	g.Expect(last("DEBUG")).To(HaveKeyWithValue("description", "'curtin' d"), "what ends well is not logged")
	as(site, "one", "GET", "2012-03-01/user-data", "")
	const final = `{"origin": "cloudinit", "description": "running modules for final", "timestamp": 1.5, "name": "modules-final", `
	as(site, "one", "POST", "status/aaaaa1", final+`"event_type": "start"}`)
	g.Expect(last("DEBUG")).To(HaveKeyWithValue("type", "Node status event"))
	as(site, "one", "POST", "status/aaaaa1", final+`"event_type": "finish", "result": "FAIL"}`)
	g.Expect(last("ERROR")).To(And(HaveKeyWithValue("type", "Node post-installation failure"),
		HaveKeyWithValue("description", "'cloudinit' running modules for final")))
	g.Expect(site.Has("one").Status).To(Equal(status.Deployed), "user-data that fails takes nothing back")
	g.Expect(*site.Has("one").StatusMessage).To(Equal("Node post-installation failure - 'cloudinit' running modules for final"))
}

func TestVendorData(t *testing.T) {
	for url, want := range map[string]string{
		"http://maas.example:5240/MAAS/metadata/": "pools:\n    - maas.example",
		"http://[2001:db8::1]:5240/MAAS/":         "servers:\n    - 2001:db8::1",
		"":                                        "#cloud-config\n  {}",
	} {
		site := simtest.New(t, simtest.Rack, func(o *simulator.Options) { o.MetadataURL = url })
		answer := as(site, "one", "GET", "2012-03-01/meta-data/vendor-data", "")
		NewWithT(t).Expect(answer.Body).To(ContainSubstring(want), url)
	}
}
