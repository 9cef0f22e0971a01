// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/apply"
	"github.com/openshift/hypershift/node-agent/host/hosttest"
	"github.com/openshift/hypershift/support/nodeplan"
)

// newMachine returns a machine with the users root and "me", where "me" is the user that runs the test.
func newMachine(t *testing.T) (*GomegaWithT, *hosttest.Machine) {
	t.Helper()
	m := hosttest.New(t)
	m.Put("/etc/passwd", "root:x:0:0::/root:/bin/sh\nme:x:"+strconv.Itoa(os.Getuid())+":"+strconv.Itoa(os.Getgid())+"::/home/me:/bin/bash\n")
	m.Put("/etc/group", "root:x:0:\nme:x:"+strconv.Itoa(os.Getgid())+":\n")
	return NewWithT(t), m
}

// whole returns a plan with at least one item of each kind.
func whole() *nodeplan.Plan {
	return &nodeplan.Plan{
		Version:     nodeplan.Version,
		Groups:      []nodeplan.Group{{Name: "ops"}},
		Users:       []nodeplan.User{{Name: "me", PasswordHash: "$6$hash", SSHKeys: []string{"ssh-ed25519 AAAA", "ssh-ed25519 BBBB"}}},
		Directories: []nodeplan.Directory{{Path: "/srv/data", Mode: 0o1770, Owner: nodeplan.Owner{User: "me", Group: "me"}}},
		Files: []nodeplan.File{
			{Path: "/etc/secret", Mode: 0o640, Owner: nodeplan.Owner{User: "me", Group: "me"}, Content: []byte("secret\n")},
			{Path: "/etc/motd", Mode: 0o644, Append: [][]byte{[]byte("one\n"), []byte("two\n")}},
		},
		Links: []nodeplan.Link{{Path: "/etc/soft", Target: "secret"}, {Path: "/etc/hard", Target: "/etc/motd", Hard: true}},
		Units: []nodeplan.Unit{
			{Name: "own.service", Content: "[Service]\n", Enabled: new(true), DropIns: []nodeplan.DropIn{{Name: "1.conf", Content: "x"}}},
			{Name: "noise.timer", Masked: true}, {Name: "snapd.service", Enabled: new(bool)}, {Name: "quiet.service", Content: "[Service]\n"},
		},
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	g, m := newMachine(t)
	m.Put("/etc/motd", "Welcome\n")
	g.Expect(apply.Plan(t.Context(), m.Host, whole())).To(Succeed())
	t.Run("When a plan is applied, it should create users before their files and start units last", func(t *testing.T) {
		want := []string{
			"groupadd ops", "chpasswd --encrypted", "systemctl daemon-reload", "systemctl enable own.service", "systemctl start --no-block own.service",
			"systemctl mask --now noise.timer", "systemctl disable --now snapd.service",
		}
		if diff := cmp.Diff(want, m.Commands); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("When a plan is applied, files should have their contents, modes and appended parts in order", func(t *testing.T) {
		got := m.Files("/var/lib/hypershift")
		delete(got, "/etc/passwd")
		delete(got, "/etc/group")
		want := map[string]string{
			"/etc/secret": "-rw-r----- secret\n", "/etc/motd": "-rw-r--r-- Welcome\none\ntwo\n", "/etc/hard": "-rw-r--r-- Welcome\none\ntwo\n", "/etc/soft": "-> secret",
			"/home/me/.ssh/authorized_keys":           "-rw------- ssh-ed25519 AAAA\nssh-ed25519 BBBB\n",
			nodeplan.UnitDir + "own.service":          "-rw-r--r-- [Service]\n",
			nodeplan.UnitDir + "own.service.d/1.conf": "-rw-r--r-- x", nodeplan.UnitDir + "quiet.service": "-rw-r--r-- [Service]\n",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("When the same plan is applied again, it should keep manual changes and run nothing", func(t *testing.T) {
		g, m := newMachine(t)
		g.Expect(apply.Plan(t.Context(), m.Host, whole())).To(Succeed())
		m.Put("/etc/secret", "mine\n")
		g.Expect(m.Remove("/etc/soft")).To(Succeed())
		before := m.Files()
		m.Commands = nil
		g.Expect(apply.Plan(t.Context(), m.Host, whole())).To(Succeed())
		g.Expect(m.Commands).To(BeEmpty())
		g.Expect(m.Files()).To(Equal(before))
	})
	t.Run("When another plan is applied, it should apply all of it", func(t *testing.T) {
		g, m := newMachine(t)
		g.Expect(apply.Plan(t.Context(), m.Host, whole())).To(Succeed())
		m.Put("/etc/secret", "mine\n")
		other := whole()
		other.ConfigHash = "other"
		g.Expect(apply.Plan(t.Context(), m.Host, other)).To(Succeed())
		g.Expect(m.Text("/etc/secret")).To(Equal("secret\n"))
	})
	t.Run("When a plan is applied, its secrets should not be in the log or in command lines", func(t *testing.T) {
		g.Expect(m.Log() + strings.Join(m.Commands, "\n")).NotTo(Or(ContainSubstring("hash"), ContainSubstring("secret\n"), ContainSubstring("AAAA")))
		g.Expect(m.Log()).To(ContainSubstring("2 files, 4 units, 1 users"))
	})
}

// TestPlanLostPower simulates a power loss at each step, then starts the machine again.
func TestPlanLostPower(t *testing.T) {
	t.Parallel()
	// programs simulates systemd, useradd and similar programs. A second run encounters the effects of the first.
	programs := func(m *hosttest.Machine) func(string, io.Reader) ([]byte, error) {
		return func(command string, _ io.Reader) ([]byte, error) {
			switch {
			case command == "groupadd ops":
				m.Put("/etc/group", m.Text("/etc/group")+"ops:x:900:\n")
			case strings.HasPrefix(command, "systemctl mask"):
				if m.Exists(nodeplan.UnitDir+"noise.timer") && m.Mode(nodeplan.UnitDir+"noise.timer").IsRegular() {
					return nil, errors.New("Failed to mask unit, file already exists")
				}
				m.PutLink(nodeplan.UnitDir+"noise.timer", os.DevNull)
			}
			return nil, nil
		}
	}
	start := func(t *testing.T) *hosttest.Machine {
		_, m := newMachine(t)
		m.Program = programs(m)
		m.Put("/etc/motd", "Welcome\n")
		m.Put(nodeplan.UnitDir+"noise.timer", "[Timer]\n")
		m.Put("/home/me/.ssh/authorized_keys", "ssh-rsa theirs") // The last line has no newline.
		return m
	}
	g, m := NewWithT(t), start(t)
	g.Expect(apply.Plan(t.Context(), m.Host, whole())).To(Succeed())
	want := m.Files()
	g.Expect(want).To(HaveKeyWithValue(nodeplan.UnitDir+"noise.timer", "-> /dev/null"))
	g.Expect(want).To(HaveKeyWithValue("/home/me/.ssh/authorized_keys", "-rw------- ssh-rsa theirs\nssh-ed25519 AAAA\nssh-ed25519 BBBB\n"))
	cuts := 0
	for ; ; cuts++ {
		m := start(t)
		if !m.Cut(cuts+1, func() { _ = apply.Plan(t.Context(), m.Host, whole()) }) {
			break
		}
		applied := m.Exists(apply.Mark)
		m.Commands = nil
		g.Expect(apply.Plan(t.Context(), m.Host, whole())).To(Succeed())
		if diff := cmp.Diff(want, m.Files()); diff != "" {
			t.Errorf("cut off at step %d: -want +got:\n%s", cuts+1, diff)
		}
		if !applied {
			g.Expect(m.Commands).To(ContainElement("systemctl start --no-block own.service"), "cut off at step %d", cuts+1)
		}
	}
	g.Expect(cuts).To(BeNumerically(">", 15), "each change and each program is a step")
}

// TestPlanFails lets one item of each kind fail. Later items must not be applied, and the plan must not count as
// applied.
func TestPlanFails(t *testing.T) {
	t.Parallel()
	const unit = nodeplan.UnitDir + "own.service"
	fails := func(command string) func(*hosttest.Machine) {
		return func(m *hosttest.Machine) {
			m.Program = func(c string, _ io.Reader) ([]byte, error) {
				if c == command {
					return nil, errors.New("no space left on device")
				}
				return nil, nil
			}
		}
	}
	inTheWay := func(paths ...string) func(*hosttest.Machine) {
		return func(m *hosttest.Machine) {
			for _, path := range paths {
				m.Put(path, "in the way")
			}
		}
	}
	for name, tt := range map[string]struct {
		harm func(*hosttest.Machine)
		says string
		// not is a command that must not run.
		not string
	}{
		"a group cannot be created":                           {fails("groupadd ops"), "group ops: no space left", "chpasswd --encrypted"},
		"a password cannot be set":                            {fails("chpasswd --encrypted"), "user me: no space left", "systemctl daemon-reload"},
		"a file is at the path of the .ssh directory":         {inTheWay("/home/me/.ssh"), "user me: ", "systemctl daemon-reload"},
		"a directory is at the path of authorized_keys":       {inTheWay("/home/me/.ssh/authorized_keys/x"), "user me: ", "systemctl daemon-reload"},
		"a file is at the path of a directory":                {inTheWay("/srv/data"), "folder /srv/data: ", "systemctl daemon-reload"},
		"a directory is at the path of a file":                {inTheWay("/etc/secret/x"), "file /etc/secret: ", "systemctl daemon-reload"},
		"a directory is at the path of a symlink":             {inTheWay("/etc/soft/x"), "link /etc/soft: ", "systemctl daemon-reload"},
		"a non-empty directory is at the path of a hard link": {inTheWay("/etc/hard/x"), "link /etc/hard: ", "systemctl daemon-reload"},
		"a directory is at the path of a unit":                {inTheWay(unit + "/x"), "unit own.service: ", "systemctl daemon-reload"},
		"a file is at the path of a drop-in directory":        {inTheWay(unit + ".d"), "drop-in 1.conf of unit own.service: ", "systemctl daemon-reload"},
		"systemd does not read the units":                     {fails("systemctl daemon-reload"), "no space left", "systemctl enable own.service"},
		"a unit cannot be enabled":                            {fails("systemctl enable own.service"), "no space left", "systemctl start --no-block own.service"},
		"a unit cannot be started":                            {fails("systemctl start --no-block own.service"), "no space left", "systemctl mask --now noise.timer"},
		"a unit cannot be masked":                             {fails("systemctl mask --now noise.timer"), "no space left", "systemctl disable --now snapd.service"},
		"a directory is at the path of a masked unit":         {inTheWay(nodeplan.UnitDir + "noise.timer/x"), "unit noise.timer: ", "systemctl mask --now noise.timer"},
		"a unit cannot be disabled":                           {fails("systemctl disable --now snapd.service"), "no space left", ""},
		"users cannot be read":                                {func(m *hosttest.Machine) { _ = m.Remove("/etc/passwd"); m.Put("/etc/passwd/x", "") }, "user me: ", "chpasswd --encrypted"},
		"groups cannot be read":                               {func(m *hosttest.Machine) { _ = m.Remove("/etc/group"); m.Put("/etc/group/x", "") }, "is a directory", "groupadd ops"},
	} {
		t.Run("When "+name+", it should return an error, stop there, and be retried", func(t *testing.T) {
			t.Parallel()
			g, m := newMachine(t)
			tt.harm(m)
			err := apply.Plan(t.Context(), m.Host, whole())
			g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			g.Expect(err.Error()).NotTo(Or(ContainSubstring("$6$"), ContainSubstring("AAAA")), "the plan has secrets")
			if tt.not != "" {
				g.Expect(m.Commands).NotTo(ContainElement(tt.not))
			}
			g.Expect(m.Exists(apply.Mark)).To(BeFalse())
		})
	}
	t.Run("When recording that the plan was applied fails, it should return an error", func(t *testing.T) {
		g, m := newMachine(t)
		m.Put("/var/lib/hypershift", "in the way")
		g.Expect(apply.Plan(t.Context(), m.Host, whole())).NotTo(Succeed())
	})
}

func TestLinks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(*hosttest.Machine)
		link    nodeplan.Link
		want    map[string]string
		says    string
	}{
		"When a symlink has another target, it should be updated": {func(m *hosttest.Machine) { m.PutLink("/etc/l", "old") }, nodeplan.Link{Path: "/etc/l", Target: "new"},
			map[string]string{"/etc/l": "-> new"}, ""},
		"When a file is at the path of a symlink, it should be replaced": {func(m *hosttest.Machine) { m.Put("/etc/l", "old") }, nodeplan.Link{Path: "/etc/l", Target: "new"},
			map[string]string{"/etc/l": "-> new"}, ""},
		"When the directory of a symlink is missing, it should be created": {func(*hosttest.Machine) {}, nodeplan.Link{Path: "/srv/a/l", Target: "new"},
			map[string]string{"/srv/a/l": "-> new"}, ""},
		"When a power loss left a partial symlink, it should still create the symlink": {func(m *hosttest.Machine) { m.PutLink("/etc/l.hypershift-partial", "half") }, nodeplan.Link{Path: "/etc/l", Target: "new"},
			map[string]string{"/etc/l": "-> new"}, ""},
		"When another file is at the path of a hard link, it should be replaced": {func(m *hosttest.Machine) { m.Put("/etc/f", "file"); m.Put("/srv/a/h", "old") },
			nodeplan.Link{Path: "/srv/a/h", Target: "/etc/f", Hard: true}, map[string]string{"/etc/f": "-rw-r--r-- file", "/srv/a/h": "-rw-r--r-- file"}, ""},
		"When the directory of a hard link is missing, it should be created": {func(m *hosttest.Machine) { m.Put("/etc/f", "file") },
			nodeplan.Link{Path: "/srv/b/h", Target: "/etc/f", Hard: true}, map[string]string{"/etc/f": "-rw-r--r-- file", "/srv/b/h": "-rw-r--r-- file"}, ""},
		"When the target of a hard link is missing, it should return an error that names the link": {func(*hosttest.Machine) {}, nodeplan.Link{Path: "/etc/h", Target: "/etc/f", Hard: true}, nil, "link /etc/h: "},
		"When the group of a link does not exist, it should return an error that names the group": {func(*hosttest.Machine) {}, nodeplan.Link{Path: "/etc/l", Target: "new", Owner: nodeplan.Owner{Group: "ghosts"}}, nil,
			`link /etc/l: there is no "ghosts" in /etc/group`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, m := newMachine(t)
			tt.prepare(m)
			err := apply.Plan(t.Context(), m.Host, &nodeplan.Plan{Links: []nodeplan.Link{tt.link}})
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.Mode(path.Dir(tt.link.Path)).Perm()).To(BeEquivalentTo(0o755), "others look into the folder too")
			got := m.Files("/var")
			maps.DeleteFunc(got, func(path, _ string) bool { return path == "/etc/passwd" || path == "/etc/group" })
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	const unit = nodeplan.UnitDir + "own.service"
	for name, tt := range map[string]struct {
		prepare func(*hosttest.Machine)
		unit    nodeplan.Unit
		// want is the content at the unit's path. ran holds the commands that ran after the units were read.
		want string
		ran  []string
	}{
		"When a unit with a file is masked, it should remove the file": {func(m *hosttest.Machine) { m.Put(unit, "[Service]\n") }, nodeplan.Unit{Name: "own.service", Masked: true},
			"", []string{"systemctl mask --now own.service"}},
		"When a unit with a symlink is masked, it should remove the symlink": {func(m *hosttest.Machine) { m.PutLink(unit, "/srv/own.service") }, nodeplan.Unit{Name: "own.service", Masked: true},
			"", []string{"systemctl mask --now own.service"}},
		"When a unit is already masked, it should keep the mask": {func(m *hosttest.Machine) { m.PutLink(unit, os.DevNull) }, nodeplan.Unit{Name: "own.service", Masked: true},
			"-> /dev/null", []string{"systemctl mask --now own.service"}},
		"When a masked unit has content, it should only mask the unit": {func(*hosttest.Machine) {}, nodeplan.Unit{Name: "own.service", Masked: true, Enabled: new(true), Content: "[Service]\n"},
			"", []string{"systemctl mask --now own.service"}},
		"When a masked unit is enabled, it should replace the mask with the unit file": {func(m *hosttest.Machine) { m.PutLink(unit, os.DevNull) },
			nodeplan.Unit{Name: "own.service", Content: "[Service]\n", Enabled: new(true)}, "-rw-r--r-- [Service]\n", []string{"systemctl enable own.service", "systemctl start --no-block own.service"}},
		"When a unit of the image is enabled, it should not write a file": {func(*hosttest.Machine) {}, nodeplan.Unit{Name: "own.service", Enabled: new(true)},
			"", []string{"systemctl enable own.service", "systemctl start --no-block own.service"}},
		"When a unit has no enabled field, it should start nothing": {func(*hosttest.Machine) {}, nodeplan.Unit{Name: "own.service", Content: "[Service]\n"}, "-rw-r--r-- [Service]\n", nil},
		"When a unit is disabled, it should be stopped": {func(*hosttest.Machine) {}, nodeplan.Unit{Name: "own.service", Content: "[Service]\n", Enabled: new(bool)},
			"-rw-r--r-- [Service]\n", []string{"systemctl disable --now own.service"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, m := newMachine(t)
			tt.prepare(m)
			g.Expect(apply.Plan(t.Context(), m.Host, &nodeplan.Plan{Units: []nodeplan.Unit{tt.unit}})).To(Succeed())
			g.Expect(m.Files()[unit]).To(Equal(tt.want))
			g.Expect(m.Commands[0]).To(Equal("systemctl daemon-reload"))
			g.Expect(m.Commands[1:]).To(HaveExactElements(tt.ran))
		})
	}
}
