// SPDX-License-Identifier: Apache-2.0

package nodeplan_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/support/nodeplan"
)

// whole returns a plan with every field set.
func whole() *nodeplan.Plan {
	return &nodeplan.Plan{
		Version: nodeplan.Version, ConfigHash: "0a1b", KernelArguments: []string{"quiet"}, PullSecret: []byte("secret"), Owned: []string{"/etc/owned"},
		Groups:      []nodeplan.Group{{Name: "g", GID: ptr.To(0), System: true}, {Name: "gone", Absent: true}},
		Users:       []nodeplan.User{{Name: "core", UID: ptr.To(1000), SSHKeys: []string{"k"}, Groups: []string{"g"}, PasswordHash: "$6$"}},
		Directories: []nodeplan.Directory{{Path: "/etc/d", Mode: 0o755, Owner: nodeplan.Owner{User: "core", Group: "0"}}},
		Files: []nodeplan.File{
			{Path: "/etc/f", Mode: 0o600, Content: []byte("a\x00b"), Append: [][]byte{[]byte("c")}, Keep: true}, {Path: "/etc/kept", Mode: 0o644}},
		Links: []nodeplan.Link{{Path: "/etc/l", Target: "f", Hard: true}},
		Units: []nodeplan.Unit{
			{Name: "a.service", Content: "[Unit]", Enabled: ptr.To(false), DropIns: []nodeplan.DropIn{{Name: "10.conf", Content: "[Service]"}}},
			{Name: "b.service", Masked: true}, {Name: "c.service", Enabled: ptr.To(true)}},
		Node:  nodeplan.Image{Name: "n", Sources: []nodeplan.Source{{Image: "r/n", Insecure: true, CAs: []string{"/ca"}}}},
		Pod:   nodeplan.Image{Name: "p", Sources: []nodeplan.Source{{Image: "r/p"}}},
		Proxy: nodeplan.Proxy{HTTP: "http://p", HTTPS: "http://s", NoProxy: "n"},
	}
}

func TestParse(t *testing.T) {
	raw, err := json.Marshal(whole())
	if err != nil {
		t.Fatal(err)
	}
	got, err := nodeplan.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole(), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	t.Run("When the content of a file is empty, it should differ from a file whose content is kept", func(t *testing.T) {
		g := NewWithT(t)
		raw, err := json.Marshal(nodeplan.Plan{Version: 1, Files: []nodeplan.File{{Path: "/emptied", Content: []byte{}}, {Path: "/kept"}}})
		g.Expect(err).NotTo(HaveOccurred())
		plan, err := nodeplan.Parse(raw)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(plan.Files[0].Content).NotTo(BeNil())
		g.Expect(plan.Files[1].Content).To(BeNil())
	})
	for name, tc := range map[string]struct{ raw, says string }{
		"an Ignition config": {`{"ignition": {"version": "3.4.0"}, "passwd": "hunter2"}`, "check that spec.platform.maas.userDataFormat of the NodePool is CloudConfig"},
		"a page":             {"<html>hunter2", "13 bytes are not a node plan"},
		"nothing":            {"", "0 bytes are not a node plan"},
		"null":               {"null", "are not a node plan"},
		"of another shape":   {`{"version": 1, "files": "hunter2"}`, "are not a node plan"},
		"truncated":          {string(raw[:len(raw)-1]), "are not a node plan"},
		"of a later server":  {`{"version": 2, "pullSecret": "aHVudGVyMg=="}`, "the node plan has version 2, and this node-agent knows 1"},
		"of version -1":      {`{"version": -1}`, "has version -1"},
	} {
		t.Run("When the response is "+name+", it should return an error that prints none of the content", func(t *testing.T) {
			g := NewWithT(t)
			plan, err := nodeplan.Parse([]byte(tc.raw))
			g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
			g.Expect(err.Error()).NotTo(Or(ContainSubstring("hunter2"), ContainSubstring("aHVudGVyMg"), ContainSubstring("secret")))
			g.Expect(plan).To(BeNil())
		})
	}
	t.Run("When a later server adds a field, it should ignore the field", func(t *testing.T) {
		_, err := nodeplan.Parse([]byte(`{"version": 1, "new": true}`))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
}

// TestPaths checks that Paths is exact, because node-agent uses it to remove files that a later plan no longer has. A
// missing path would leave a file behind; an extra one would delete a file.
func TestPaths(t *testing.T) {
	plan := whole()
	g := NewWithT(t)
	g.Expect(plan.Paths()).To(ConsistOf("/etc/owned", "/etc/f", "/etc/kept", "/etc/l", "/etc/systemd/system/a.service", "/etc/systemd/system/a.service.d/10.conf",
		"/etc/systemd/system/b.service"), "not folders, and not the file of a unit that the image has")
	g.Expect(plan).To(Equal(whole()), "asking changes nothing")
	g.Expect((&nodeplan.Plan{}).Paths()).To(BeEmpty())

	spare := make([]string, 1, 8)
	plan.Owned = spare
	plan.Paths()
	g.Expect(spare[:2][1]).To(BeEmpty(), "the list that the plan holds has room that is not to be written to")
}
