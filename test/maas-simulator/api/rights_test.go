// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// rights maps the required right to the operations on a machine: to see it, to own it, or to be an administrator.
var rights = map[string][]string{
	"seeing": {
		"GET machines/aaaaa2/", "GET nodes/aaaaa2/", "GET machines/aaaaa2/?op=query_power_state", "GET machines/aaaaa2/?op=details",
		"GET nodes/aaaaa2/?op=details", "GET machines/aaaaa2/?op=get_curtin_config", "GET nodes/aaaaa2/interfaces/", "GET nodes/aaaaa2/interfaces/eth0/",
		"GET nodes/aaaaa2/blockdevices/", "GET nodes/aaaaa2/blockdevices/sda/", "POST machines/aaaaa2/?op=lock", "POST machines/aaaaa2/?op=unlock",
	},
	"owning": {
		"GET machines/aaaaa2/?op=get_token", "POST machines/aaaaa2/?op=deploy", "POST machines/aaaaa2/?op=release", "POST machines/aaaaa2/?op=abort",
		"POST machines/aaaaa2/?op=power_on", "POST machines/aaaaa2/?op=power_off", "POST machines/aaaaa2/?op=set_workload_annotations",
		"POST machines/aaaaa2/?op=set_owner_data", "POST machines/?op=release machines=aaaaa2",
	},
	"administering": {
		"GET machines/aaaaa2/?op=power_parameters", "GET nodes/aaaaa2/?op=power_parameters", "PUT machines/aaaaa2/", "DELETE machines/aaaaa2/",
		"POST machines/aaaaa2/?op=commission", "POST machines/aaaaa2/?op=test", "POST machines/aaaaa2/?op=override_failed_testing",
		"POST machines/aaaaa2/?op=mark_fixed", "POST machines/aaaaa2/?op=rescue_mode", "POST machines/aaaaa2/?op=exit_rescue_mode",
		"POST machines/aaaaa2/?op=set_storage_layout", "POST machines/aaaaa2/?op=restore_networking_configuration",
		"POST machines/aaaaa2/?op=clear_default_gateways", "POST nodes/aaaaa2/interfaces/?op=create_bridge", "PUT nodes/aaaaa2/interfaces/eth0/",
		"DELETE nodes/aaaaa2/interfaces/eth0/", "POST machines/aaaaa2/interfaces/eth0/?op=link_subnet", "POST machines/?op=accept machines=aaaaa2",
	},
}

// callers are the users who send requests for bob's machine, with the operations that are rejected for each user.
var callers = []struct {
	user    string
	locked  bool
	refused map[string]bool
}{
	{"alice", false, map[string]bool{"seeing": true, "owning": true, "administering": true}},
	{"bob", false, map[string]bool{"administering": true}},
	{"admin", false, nil},
	{"bob", true, map[string]bool{"owning": true, "administering": true}},
	{"admin", true, map[string]bool{"owning": true, "administering": true}},
}

func TestRights(t *testing.T) {
	for need, requests := range rights {
		for _, request := range requests {
			for _, caller := range callers {
				t.Run(fmt.Sprintf("When %s sends %s (locked: %t), the user's rights should decide", caller.user, request, caller.locked), func(t *testing.T) {
					g := NewWithT(t)
					site := simtest.New(t, simtest.Rack)
					site.Change("aaaaa2", func(m *inventory.Machine) {
						m.Status, m.Owner, m.PowerState, m.Locked = status.Deployed, "bob", "on", caller.locked
					})
					before := site.Has("aaaaa2")
					parts := strings.Split(request, " ")
					answer := site.Do(caller.user, parts[0], parts[1], strings.Split(strings.Join(parts[2:], ""), "=")...)
					g.Expect(answer.Code == 403).To(Equal(caller.refused[need]), "%d %s", answer.Code, answer.Body)
					if caller.refused[need] {
						g.Expect(cmp.Diff(before, site.Has("aaaaa2"))).To(BeEmpty(), "a refusal changes nothing")
						g.Expect(answer.Header.Get("WWW-Authenticate")).To(BeEmpty(), "another key does not help")
					}
				})
			}
		}
	}
}

// TestWhoOwnsNothing verifies that every user may see and allocate a machine without an owner, but not administer it.
func TestWhoOwnsNothing(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("alice", "GET machines/aaaaa2/").with("owner=<nil>"),
		ask("alice", "GET machines/aaaaa2/?op=query_power_state").with("state=off"),
		ask("alice", "PUT machines/aaaaa2/", "description", "mine").is(403, ""),
		ask("alice", "POST machines/aaaaa2/?op=test").is(403, ""),
		ask("alice", "POST machines/aaaaa2/?op=deploy").with("owner=alice", "status_name=Deploying"),
		ask("bob", "GET machines/aaaaa2/").is(403, ""),
		ask("bob", "GET machines/?hostname=two").is(200, "[]"),
		ask("bob", "GET nodes/?hostname=two").is(200, "[]"),
		ask("bob", "GET tags/fast/?op=machines").with("hostname=three"),
		ask("bob", "POST machines/?op=allocate", "name", "two").is(409, ""),
		ask("admin", "GET machines/?hostname=two").with("owner=alice"),
	)
}

// TestLocks verifies that only deployed machines can be locked, by their owner, and that only the owner or an
// administrator can unlock them.
func TestLocks(t *testing.T) {
	site := simtest.New(t, simtest.Rack)
	story(t, site,
		ask("alice", "POST machines/aaaaa1/?op=lock").is(409, "Can't lock, machine isn't deployed"),
		ask("alice", "POST machines/aaaaa1/?op=unlock").is(409, "Machine aaaaa1 is not locked"),
		ask("alice", "POST machines/aaaaa1/?op=deploy"),
		ask("alice", "POST machines/aaaaa1/?op=lock").with("locked=true", "status_name=Deploying"),
		ask("bob", "POST machines/aaaaa1/?op=unlock").is(403, ""),
		ask("alice", "POST machines/aaaaa1/?op=abort").is(403, ""),
		ask("alice", "POST machines/?op=release", "machines", "aaaaa1").
			is(403, "You don't have the required permission to release the following machine(s): aaaaa1."),
		ask("admin", "POST machines/aaaaa1/?op=unlock").with("locked=false"),
		ask("alice", "POST machines/aaaaa1/?op=release").with("status_name=Ready"),
	)
}
