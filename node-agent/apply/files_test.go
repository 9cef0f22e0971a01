// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"io/fs"
	"os"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/apply"
	"github.com/openshift/hypershift/support/nodeplan"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	const path = "/etc/app/f"
	pieces := func(texts ...string) (all [][]byte) {
		for _, text := range texts {
			all = append(all, []byte(text))
		}
		return all
	}
	for name, tt := range map[string]struct {
		// present is the existing content; empty for no file.
		present    string
		file       nodeplan.File
		want, says string
	}{
		"When a file is new, it should have the content of the plan":                          {"", nodeplan.File{Content: []byte("new")}, "new", ""},
		"When a file exists, it should have the content of the plan":                          {"old", nodeplan.File{Content: []byte("new")}, "new", ""},
		"When the plan has no content for an existing file, it should keep the content":       {"old", nodeplan.File{}, "old", ""},
		"When the plan has no content for a new file, it should create an empty file":         {"", nodeplan.File{}, "", ""},
		"When the content in the plan is empty, it should empty the file":                     {"old", nodeplan.File{Content: []byte{}}, "", ""},
		"When content is appended to an existing file, it should follow the existing content": {"old ", nodeplan.File{Append: pieces("one ", "two ")}, "old one two ", ""},
		"When all content was already appended, it should not be appended again":              {"old one two ", nodeplan.File{Append: pieces("one ", "two ")}, "old one two ", ""},
		"When an earlier plan appended the first part, it should append only the rest":        {"old one ", nodeplan.File{Append: pieces("one ", "two ")}, "old one two ", ""},
		"When only the last part is already in the file, it should append all parts":          {"old two ", nodeplan.File{Append: pieces("one ", "two ")}, "old two one two ", ""},
		"When an appended part is empty, it should append the other parts":                    {"old ", nodeplan.File{Append: pieces("", "one ", "")}, "old one ", ""},
		"When content is appended to a new file, it should write all of it":                   {"", nodeplan.File{Append: pieces("one ", "two ")}, "one two ", ""},
		"When the plan has content and appended content, it should write both":                {"old", nodeplan.File{Content: []byte("new "), Append: pieces("one ")}, "new one ", ""},
		"When the content equals the appended content, it should write both":                  {"old", nodeplan.File{Content: []byte("one "), Append: pieces("one ")}, "one one ", ""},
		"When a file to keep has the same content, it should succeed":                         {"new", nodeplan.File{Content: []byte("new"), Keep: true}, "new", ""},
		"When a file to keep does not exist, it should create the file":                       {"", nodeplan.File{Content: []byte("new"), Keep: true}, "new", ""},
		"When a file to keep has other content, it should return an error": {"old", nodeplan.File{Content: []byte("new"), Keep: true}, "old",
			"file /etc/app/f: the image has it with another content"},
		"When the user does not exist, it should return an error that names the user": {"", nodeplan.File{Content: []byte("new"), Owner: nodeplan.Owner{User: "ghost"}}, "new", `there is no "ghost" in /etc/passwd`},
		"When the group does not exist, it should return an error that names the group": {"", nodeplan.File{Content: []byte("new"), Owner: nodeplan.Owner{User: "me", Group: "ghosts"}}, "new",
			`there is no "ghosts" in /etc/group`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, m := newMachine(t)
			if tt.present != "" {
				m.Put(path, tt.present)
			}
			tt.file.Path, tt.file.Mode = path, 0o644
			err := apply.Plan(t.Context(), m.Host, &nodeplan.Plan{Files: []nodeplan.File{tt.file}})
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(m.Text(path)).To(Equal(tt.want))
		})
	}
	t.Run("When a link is at the path of a file, it should replace the link and keep its target", func(t *testing.T) {
		g, m := newMachine(t)
		m.Put("/srv/theirs", "theirs")
		m.PutLink(path, "/srv/theirs")
		g.Expect(apply.Plan(t.Context(), m.Host, &nodeplan.Plan{Files: []nodeplan.File{{Path: path, Mode: 0o644, Content: []byte("new")}}})).To(Succeed())
		g.Expect(m.Files("/var")).To(And(HaveKeyWithValue(path, "-rw-r--r-- new"), HaveKeyWithValue("/srv/theirs", "-rw-r--r-- theirs")))
	})
}

func TestModes(t *testing.T) {
	t.Parallel()
	for mode, want := range map[uint32]fs.FileMode{
		0o644: 0o644, 0o600: 0o600, 0o777: 0o777, 0: 0, 0o4755: 0o755 | fs.ModeSetuid, 0o2755: 0o755 | fs.ModeSetgid, 0o1777: 0o777 | fs.ModeSticky,
		0o7000: fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky,
	} {
		t.Run("When the mode is "+strconv.FormatUint(uint64(mode), 8)+", files and folders should have it, even if they existed", func(t *testing.T) {
			t.Parallel()
			g, m := newMachine(t)
			m.PutMode("/etc/f", "old", 0o666)
			g.Expect(os.Mkdir(m.Path("/srv"), 0o700)).To(Succeed())
			g.Expect(apply.Plan(t.Context(), m.Host, &nodeplan.Plan{
				Files: []nodeplan.File{{Path: "/etc/f", Mode: mode, Content: []byte("new")}}, Directories: []nodeplan.Directory{{Path: "/srv", Mode: mode}, {Path: "/opt/a/b", Mode: mode}},
			})).To(Succeed())
			g.Expect(m.Mode("/etc/f")).To(Equal(want))
			g.Expect(m.Mode("/srv")).To(Equal(want | fs.ModeDir))
			g.Expect(m.Mode("/opt/a/b")).To(Equal(want | fs.ModeDir))
			g.Expect(m.Mode("/opt/a").Perm()).To(BeEquivalentTo(0o755), "folders on the way are for all")
			g.Expect(os.Chmod(m.Path("/srv"), 0o700)).To(Succeed()) // The directory can only be removed with this mode.
			g.Expect(os.Chmod(m.Path("/opt/a/b"), 0o700)).To(Succeed())
		})
	}
}

// TestSecretsOnTheWay checks each file after its content was written and before its owner was set: only root may read
// it then.
func TestSecretsOnTheWay(t *testing.T) {
	t.Parallel()
	g, m := newMachine(t)
	seen := map[string]fs.FileMode{}
	m.Changed = func(path string) { seen[path] = m.Mode(path) }
	g.Expect(apply.Plan(t.Context(), m.Host, &nodeplan.Plan{
		Files: []nodeplan.File{{Path: "/etc/secret", Mode: 0o640, Owner: nodeplan.Owner{User: "me", Group: "me"}, Content: []byte("secret")}, {Path: "/etc/open", Mode: 0o644, Content: []byte("open")}},
	})).To(Succeed())
	g.Expect(seen).To(And(HaveKeyWithValue("/etc/secret", fs.FileMode(0o600)), HaveKeyWithValue("/etc/open", fs.FileMode(0o600))))
	g.Expect(m.Mode("/etc/secret")).To(BeEquivalentTo(0o640))
	g.Expect(m.Mode(apply.Mark)).To(BeEquivalentTo(0o600))
}

// TestOwners requires root: other users can assign files to themselves only.
func TestOwners(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root gives files to others")
	}
	for name, tt := range map[string]struct {
		owner nodeplan.Owner
		want  string
	}{
		"When the owner is a name, it should be looked up":                                         {nodeplan.Owner{User: "app", Group: "ops"}, "1200:1300"},
		"When the owner is a number, it should not need an entry":                                  {nodeplan.Owner{User: "77", Group: "78"}, "77:78"},
		"When only a user is set, the group should be root":                                        {nodeplan.Owner{User: "app"}, "1200:0"},
		"When only a group is set, the user should be root":                                        {nodeplan.Owner{Group: "ops"}, "0:1300"},
		"When no owner is set, it should be root":                                                  {nodeplan.Owner{}, "0:0"},
		"When a user and a group have the same name, each should be looked up in its own database": {nodeplan.Owner{User: "both", Group: "both"}, "5:6"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, m := newMachine(t)
			m.Put("/etc/passwd", "app:x:1200:1200::/srv:/bin/sh\nboth:x:5:5::/:/bin/sh\n")
			m.Put("/etc/group", "ops:x:1300:\nboth:x:6:\n")
			g.Expect(apply.Plan(t.Context(), m.Host, &nodeplan.Plan{
				Files:       []nodeplan.File{{Path: "/etc/f", Mode: 0o4750, Owner: tt.owner, Content: []byte("new")}},
				Directories: []nodeplan.Directory{{Path: "/srv", Mode: 0o700, Owner: tt.owner}},
				Links:       []nodeplan.Link{{Path: "/etc/l", Target: "/etc/passwd", Owner: tt.owner}},
			})).To(Succeed())
			for _, path := range []string{"/etc/f", "/srv", "/etc/l"} {
				g.Expect(m.Owner(path)).To(Equal(tt.want), path)
			}
			g.Expect(m.Mode("/etc/f")).To(Equal(0o750|fs.ModeSetuid), "giving a file away takes such a mode from it")
			g.Expect(m.Owner("/etc/passwd")).To(Equal("0:0"), "a link is given away, and not what it leads to")
		})
	}
	t.Run("When authorized keys are written, they should be owned by the user", func(t *testing.T) {
		g, m := newMachine(t)
		m.Put("/etc/passwd", "app:x:1200:1300::/home/app:/bin/sh\n")
		g.Expect(apply.Plan(t.Context(), m.Host, &nodeplan.Plan{Users: []nodeplan.User{{Name: "app", SSHKeys: []string{"ssh-rsa A"}}}})).To(Succeed())
		g.Expect(m.Owner("/home/app/.ssh")).To(Equal("1200:1300"))
		g.Expect(m.Owner("/home/app/.ssh/authorized_keys")).To(Equal("1200:1300"))
	})
}

// TestDamagedDatabases checks that a damaged user database does not make a file owned by root or by any other user.
func TestDamagedDatabases(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ passwd, says string }{
		"When a user's line is truncated, it should be treated as missing":                 {"me:x\n", `there is no "me" in /etc/passwd`},
		"When a user's ID is not a number, it should return an error":                      {"me:x:many:0::/home/me:/bin/sh\n", "many"},
		"When the user database is missing, it should return an error that names the user": {"", `there is no "me" in /etc/passwd`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, m := newMachine(t)
			g.Expect(m.Remove("/etc/passwd")).To(Succeed())
			if tt.passwd != "" {
				m.Put("/etc/passwd", tt.passwd)
			}
			for _, plan := range []*nodeplan.Plan{
				{Files: []nodeplan.File{{Path: "/etc/f", Owner: nodeplan.Owner{User: "me"}, Content: []byte("x")}}},
				{Directories: []nodeplan.Directory{{Path: "/srv", Mode: 0o755, Owner: nodeplan.Owner{User: "me"}}}},
			} {
				g.Expect(apply.Plan(t.Context(), m.Host, plan)).To(MatchError(ContainSubstring(tt.says)))
			}
			g.Expect(m.Mode("/etc/f")).To(BeEquivalentTo(0o600), "nobody reads it before it is the owner's")
		})
	}
}
