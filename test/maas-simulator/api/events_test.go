// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// logged returns a site with an event of every level for each of three machines. User bob owns the third.
func logged(t *testing.T) *simtest.Site {
	t.Helper()
	site := simtest.New(t, simtest.Rack)
	site.Change("aaaaa3", func(m *inventory.Machine) { m.Status, m.Owner, m.AgentName = status.Deployed, "bob", "his" })
	err := site.DB.Update(func() error {
		for _, id := range []string{"aaaaa1", "aaaaa2", "aaaaa3"} {
			for _, level := range []string{"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", "AUDIT"} {
				site.DB.Events.Put(&inventory.Event{
					ID: site.DB.Next("events"), SystemID: id, Hostname: site.DB.Machines.Get(id).Hostname, Username: "u" + id[5:], Level: level,
					Created: site.Now(), Type: strings.ToLower(level), Description: id,
				})
			}
		}
		site.DB.Events.Put(&inventory.Event{ID: site.DB.Next("events"), SystemID: "zzzzzz", Hostname: "gone", Level: "INFO", Created: site.Now()})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return site
}

func ids(answer simtest.Answer) string {
	var out []string
	list, _ := answer.Object()["events"].([]any)
	for _, e := range list {
		out = append(out, fmt.Sprint(e.(map[string]any)["id"]))
	}
	return strings.Join(out, " ")
}

// TestEventFilters verifies that events are sorted, newest first, and filtered. A user sees no events of other users'
// machines. Audit events are returned only on request.
func TestEventFilters(t *testing.T) {
	site := logged(t)
	for query, want := range map[string]string{
		"": "19 11 10 9 8 5 4 3 2", "&level=DEBUG": "19 11 10 9 8 7 5 4 3 2 1", "&level=WARNING": "11 10 9 5 4 3", "&level=ERROR": "11 10 5 4",
		"&level=CRITICAL": "11 5", "&level=AUDIT": "12 6",
		"&hostname=one": "5 4 3 2", "&hostname=one&hostname=gone": "19 5 4 3 2", "&id=aaaaa2": "11 10 9 8", "&owner=u1": "5 4 3 2",
		"&zone=north": "11 10 9 8", "&domain=lab.example": "", "&agent_name=his": "", "&mac_address=52:54:00:00:00:01": "5 4 3 2",
		"&mac_address=52:54:00:00:00:99": "", "&hostname=gone&zone=default": "",
		"&limit=2": "19 11", "&limit=2&before=9": "8 5", "&limit=2&after=3": "5 4", "&after=9&before=12": "11 10", "&limit=0": "", "&after=19": "", "&before=1": "",
	} {
		t.Run("When alice asks for "+query+" the answer should contain only her machines", func(t *testing.T) {
			NewWithT(t).Expect(ids(site.Do("alice", "GET", "events/?op=query"+query))).To(Equal(want))
		})
	}
	g := NewWithT(t)
	g.Expect(ids(site.Do("bob", "GET", "events/?op=query&agent_name=his"))).To(Equal("17 16 15 14"))
	g.Expect(ids(site.Do("admin", "GET", "events/?op=query&level=CRITICAL"))).To(Equal("17 11 5"))
}

// TestEventPages verifies that the links lead to every event once and keep the filters.
func TestEventPages(t *testing.T) {
	g := NewWithT(t)
	site := logged(t)
	follow := func(link any) simtest.Answer {
		uri, _ := link.(string)
		return site.Do("alice", "GET", strings.TrimPrefix(uri, "/MAAS/api/2.0/"))
	}
	page := site.Do("alice", "GET", "events/?op=query&limit=4&hostname=one&hostname=two")
	g.Expect(ids(page)).To(Equal("11 10 9 8"))
	g.Expect(page.Object()["next_uri"]).To(Equal("/MAAS/api/2.0/events/?op=query&limit=4&hostname=one&hostname=two&after=11"))
	older := follow(page.Object()["prev_uri"])
	g.Expect(ids(older)).To(Equal("5 4 3 2"))
	oldest := follow(older.Object()["prev_uri"])
	g.Expect(oldest.Object()).To(And(HaveKeyWithValue("count", 0.0), HaveKeyWithValue("events", BeEmpty()), HaveKeyWithValue("prev_uri", BeNil())))
	g.Expect(ids(follow(older.Object()["next_uri"]))).To(Equal("11 10 9 8"))
	newest := follow(page.Object()["next_uri"])
	g.Expect(ids(newest)).To(BeEmpty())
	link, err := url.Parse(newest.Object()["next_uri"].(string))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(link.Query()).To(Equal(url.Values{"op": {"query"}, "limit": {"4"}, "hostname": {"one", "two"}}))
	g.Expect(site.Do("alice", "GET", "events/?op=query&before=x").Body).To(Equal("Invalid before: Please enter an integer value"))
	g.Expect(site.Do("alice", "GET", "events/?op=query&limit=1000").Code).To(Equal(200))
}

func TestWhatAnEventSays(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	story(t, site, ask("alice", "POST machines/aaaaa1/?op=deploy", "comment", "for the demo"))
	site.Settle(time.Hour)
	events := site.Do("alice", "GET", "events/?op=query&level=DEBUG&after=0&limit=1000").Object()["events"].([]any)
	g.Expect(events[len(events)-1]).To(And(HaveKeyWithValue("type", "User acquiring node"), HaveKeyWithValue("description", "(alice)"),
		HaveKeyWithValue("level", "DEBUG"), HaveKeyWithValue("username", "alice"), HaveKeyWithValue("node", "aaaaa1"), HaveKeyWithValue("hostname", "one"),
		HaveKeyWithValue("created", "Wed, 04 Mar. 2026 05:06:07")))
	g.Expect(events[len(events)-2]).To(And(HaveKeyWithValue("type", "User starting deployment"), HaveKeyWithValue("description", "(alice) - for the demo")))
}
