// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// marked returns a site where alice owns machine one with an annotation, in the given status and power state.
func marked(t *testing.T, s status.Status, power string) *simtest.Site {
	t.Helper()
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("alice", "POST machines/?op=allocate", "name", "one", "agent_name", "mine"),
		ask("alice", "POST machines/aaaaa1/?op=set_workload_annotations", "mark", "old"),
	)
	if s != status.Allocated {
		story(t, site, ask("alice", "POST machines/aaaaa1/?op=deploy"))
	}
	if s == status.Deployed {
		site.Settle(time.Hour)
	}
	site.Change("aaaaa1", func(m *inventory.Machine) { m.PowerState = power })
	return site
}

// TestMarkBroken verifies that a machine that is powered on keeps the annotations of its previous owner, because its
// release never completes.
func TestMarkBroken(t *testing.T) {
	const gone, kept = "workload_annotations=map[]", "workload_annotations=map[mark:old]"
	tests := map[string]struct {
		status  status.Status
		power   string
		broken  []string
		settled []string
		fixed   []string
	}{
		"it is Allocated and on": {status.Allocated, "on",
			[]string{"status_name=Broken", "owner=<nil>", kept, "status_message=Releasing"},
			[]string{"status_name=Broken", "power_state=off", kept}, []string{"status_name=Ready", "owner=<nil>", kept}},
		"it is Allocated and off": {status.Allocated, "off",
			[]string{"status_name=Broken", "owner=<nil>", gone, "status_message=Released"},
			[]string{"status_name=Broken", "power_state=off", gone}, []string{"status_name=Ready", "owner=<nil>", gone}},
		"it is Deploying and on": {status.Deploying, "on",
			[]string{"status_name=Broken", "owner=<nil>", kept, "osystem=", "ip_addresses=[10.9.0.251]"},
			[]string{"status_name=Broken", "power_state=off", kept}, []string{"status_name=Ready", "owner=<nil>", kept, "ip_addresses=[10.9.0.251]"}},
		"it is Deployed and on": {status.Deployed, "on",
			[]string{"status_name=Broken", "owner=<nil>", kept, "osystem=", "current_installation_result_id=<nil>"},
			[]string{"status_name=Broken", "power_state=off", kept}, []string{"status_name=Deployed", "owner=<nil>", "power_state=off", "osystem=", kept}},
		"it is Deployed and off": {status.Deployed, "off",
			[]string{"status_name=Broken", "owner=<nil>", gone, "ip_addresses=[]"},
			[]string{"status_name=Broken", "power_state=off", gone}, []string{"status_name=Deployed", "owner=<nil>", "power_state=off", gone}},
	}
	for name, test := range tests {
		t.Run("When "+name+", marking it broken and fixed should have the effects of MAAS", func(t *testing.T) {
			g := NewWithT(t)
			site := marked(t, test.status, test.power)
			story(t, site,
				ask("admin", "POST machines/aaaaa1/?op=mark_broken").is(403, ""),
				ask("bob", "POST machines/aaaaa1/?op=mark_broken").is(403, ""),
				ask("alice", "POST machines/aaaaa1/?op=mark_broken", "comment", "smoke").with(test.broken...),
			)
			g.Expect(site.Has("one")).To(And(HaveField("AgentName", ""), HaveField("ErrorDescription", "smoke")))
			site.Settle(time.Hour)
			story(t, site,
				ask("admin", "GET machines/aaaaa1/").with(test.settled...),
				ask("admin", "POST machines/aaaaa1/?op=mark_fixed").with(test.fixed...),
			)
			g.Expect(site.Has("one").ErrorDescription).To(BeEmpty())
		})
	}
}

// TestOldMarks verifies that the next owner sees the annotations of the previous one until a release completes.
func TestOldMarks(t *testing.T) {
	g := NewWithT(t)
	site := marked(t, status.Allocated, "on")
	story(t, site,
		ask("alice", "POST machines/aaaaa1/?op=mark_broken"),
		ask("admin", "POST machines/aaaaa1/?op=mark_fixed"),
		ask("bob", "POST machines/?op=allocate", "name", "one", "agent_name", "his").with("workload_annotations=map[mark:old]"),
		ask("bob", "GET machines/?agent_name=mine").is(200, "[]"),
		ask("bob", "POST machines/aaaaa1/?op=set_workload_annotations", "mark", "new").with("workload_annotations=map[mark:new]"),
		ask("bob", "POST machines/aaaaa1/?op=deploy"),
	)
	site.Settle(time.Hour)
	story(t, site, ask("bob", "POST machines/aaaaa1/?op=release").with("status_name=Releasing", "owner=bob", "workload_annotations=map[mark:new]"))
	site.Settle(time.Minute)
	story(t, site, ask("bob", "GET machines/aaaaa1/").with("status_name=Ready", "owner=<nil>", "workload_annotations=map[]"))
	g.Expect(site.Has("one").AgentName).To(BeEmpty())
}

// TestEraseKeepsTheAllocation verifies that the release begins after the disks are erased.
func TestEraseKeepsTheAllocation(t *testing.T) {
	g := NewWithT(t)
	site := marked(t, status.Deployed, "on")
	story(t, site, ask("alice", "POST machines/aaaaa1/?op=release", "erase", "true").with("status_name=Disk erasing", "owner=alice", "workload_annotations=map[mark:old]"))
	g.Expect(site.Has("one").AgentName).To(Equal("mine"))
	for site.Has("one").Status == status.DiskErasing {
		site.Pass(time.Second)
	}
	g.Expect(site.Has("one")).To(And(HaveField("Status", status.Releasing), HaveField("AgentName", ""), HaveField("Owner", "alice")))
	site.Settle(time.Minute)
	g.Expect(site.Has("one")).To(And(HaveField("Status", status.Ready), HaveField("Owner", ""), HaveField("Annotations", BeEmpty())))
}

func TestReleaseWhileDeploying(t *testing.T) {
	site := marked(t, status.Deploying, "on")
	story(t, site,
		ask("alice", "POST machines/aaaaa1/?op=release").with("status_name=Releasing", "ip_addresses=[10.9.0.251]", "current_installation_result_id=<nil>"),
		ask("alice", "GET machines/aaaaa1/").with("ip_addresses=[10.9.0.251]"),
	)
	site.Settle(time.Minute)
	story(t, site, ask("alice", "GET machines/aaaaa1/").with("status_name=Ready", "ip_addresses=[]", "status_message=Released"))
}
