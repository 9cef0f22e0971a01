// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/apply"
	"github.com/openshift/hypershift/node-agent/host/hosttest"
	"github.com/openshift/hypershift/support/nodeplan"
)

const reload = "systemctl daemon-reload"

// ran applies a plan and returns the commands that ran before the units were read.
func ran(t *testing.T, m *hosttest.Machine, plan *nodeplan.Plan) []string {
	t.Helper()
	NewWithT(t).Expect(apply.Plan(t.Context(), m.Host, plan)).To(Succeed())
	before, _, found := strings.Cut(strings.Join(m.Commands, "\n"), reload)
	if !found {
		t.Error("the units are not read")
	}
	return strings.FieldsFunc(before, func(r rune) bool { return r == '\n' })
}

func TestUsers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		user nodeplan.User
		want []string
	}{
		"When a user is new, it should be created with a home directory and a shell": {nodeplan.User{Name: "joe"}, []string{"useradd --create-home --shell /bin/bash joe"}},
		"When a user is new, it should be created with all fields of the plan": {
			nodeplan.User{Name: "joe", UID: new(1200), Comment: "Joe", Home: "/srv/joe", NoHome: true, Shell: "/bin/sh", PrimaryGroup: "ops", NoUserGroup: true, System: true, Groups: []string{"a", "b"}},
			[]string{"useradd --groups a,b --no-create-home --no-user-group --system --home-dir /srv/joe --uid 1200 --comment Joe --shell /bin/sh --gid ops joe"},
		},
		"When a new user has UID 0, it should pass the UID to useradd":                   {nodeplan.User{Name: "toor", UID: new(int)}, []string{"useradd --create-home --uid 0 --shell /bin/bash toor"}},
		"When a user exists and the plan has no fields for it, it should not be changed": {nodeplan.User{Name: "me"}, nil},
		"When a user exists, it should keep the shell and append the groups": {
			nodeplan.User{Name: "me", Groups: []string{"a", "b"}}, []string{"usermod --groups a,b --append me"}},
		"When a user exists, it should change the fields of the plan but not the home directory": {
			nodeplan.User{Name: "me", UID: new(1200), Comment: "Me", Home: "/srv/me", Shell: "/bin/sh", PrimaryGroup: "ops", System: true, NoUserGroup: true},
			[]string{"usermod --uid 1200 --comment Me --shell /bin/sh --gid ops me"},
		},
		"When a user is marked absent, it should be deleted":                            {nodeplan.User{Name: "me", Absent: true, PasswordHash: "x"}, []string{"userdel me"}},
		"When an absent user does not exist, it should do nothing":                      {nodeplan.User{Name: "joe", Absent: true, PasswordHash: "x"}, nil},
		"When the name of a new user is a prefix of another user, it should be created": {nodeplan.User{Name: "m"}, []string{"useradd --create-home --shell /bin/bash m"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, m := newMachine(t)
			if diff := cmp.Diff(tt.want, ran(t, m, &nodeplan.Plan{Users: []nodeplan.User{tt.user}}), nothingIsNone); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// nothingIsNone makes an empty list equal to nil.
var nothingIsNone = cmp.Transformer("none", func(list []string) string { return strings.Join(list, "\n") })

func TestGroups(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		group nodeplan.Group
		want  []string
	}{
		"When a group is new, it should be created":                          {nodeplan.Group{Name: "ops"}, []string{"groupadd ops"}},
		"When a new group has a GID, it should be created with that GID":     {nodeplan.Group{Name: "ops", GID: new(900)}, []string{"groupadd --gid 900 ops"}},
		"When a new group is a system group, it should be created as one":    {nodeplan.Group{Name: "ops", System: true}, []string{"groupadd --system ops"}},
		"When a group exists, it should not be changed":                      {nodeplan.Group{Name: "me", GID: new(900)}, nil},
		"When a group is marked absent, it should be deleted":                {nodeplan.Group{Name: "me", Absent: true}, []string{"groupdel me"}},
		"When an absent group does not exist, it should do nothing":          {nodeplan.Group{Name: "ops", Absent: true}, nil},
		"When the group database is missing, it should still create a group": {nodeplan.Group{Name: "first"}, []string{"groupadd first"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, m := newMachine(t)
			if tt.group.Name == "first" {
				g.Expect(m.Remove("/etc/group")).To(Succeed())
			}
			if diff := cmp.Diff(tt.want, ran(t, m, &nodeplan.Plan{Groups: []nodeplan.Group{tt.group}}), nothingIsNone); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	t.Run("When deleting a group that is in use fails, it should return an error that names the group", func(t *testing.T) {
		g, m := newMachine(t)
		m.Program = func(string, io.Reader) ([]byte, error) { return nil, errors.New("it is a user's primary group") }
		err := apply.Plan(t.Context(), m.Host, &nodeplan.Plan{Groups: []nodeplan.Group{{Name: "me", Absent: true}}})
		g.Expect(err).To(MatchError("group me: it is a user's primary group"))
	})
}

// TestPassword checks that the password hash is passed on standard input: every user of the machine can read command
// lines.
func TestPassword(t *testing.T) {
	t.Parallel()
	g, m := newMachine(t)
	given := map[string]string{}
	m.Program = func(command string, stdin io.Reader) ([]byte, error) {
		if stdin != nil {
			text, err := io.ReadAll(stdin)
			given[command] = string(text)
			return nil, err
		}
		return nil, nil
	}
	plan := &nodeplan.Plan{Users: []nodeplan.User{{Name: "joe", PasswordHash: "$6$salt$hash"}, {Name: "me"}}}
	g.Expect(ran(t, m, plan)).To(Equal([]string{"useradd --create-home --shell /bin/bash joe", "chpasswd --encrypted"}), "the user is there first")
	g.Expect(given).To(Equal(map[string]string{"chpasswd --encrypted": "joe:$6$salt$hash\n"}))

	hostile := &nodeplan.Plan{Users: []nodeplan.User{{Name: "joe", PasswordHash: "$6$salt$hash\nroot:$6$known"}}}
	g.Expect(apply.Plan(t.Context(), m.Host, hostile)).To(MatchError(ContainSubstring("line break")))
}

func TestKeys(t *testing.T) {
	t.Parallel()
	const file, one, two = "/home/me/.ssh/authorized_keys", "ssh-ed25519 AAAA", "ssh-ed25519 AAAA me@home"
	for name, tt := range map[string]struct {
		present string
		keys    []string
		want    string
	}{
		"When there are no keys, it should write those of the plan in order":                       {"", []string{two, one}, two + "\n" + one + "\n"},
		"When there are other keys, it should keep them before those of the plan":                  {"ssh-rsa theirs\n", []string{one}, "ssh-rsa theirs\n" + one + "\n"},
		"When the last line has no newline, it should not join two keys":                           {"ssh-rsa theirs", []string{one}, "ssh-rsa theirs\n" + one + "\n"},
		"When a key already exists, it should not be added again":                                  {one + "\nssh-rsa theirs\n", []string{one}, one + "\nssh-rsa theirs\n"},
		"When a key exists with another comment, it should add the key":                            {two + "\n", []string{one}, two + "\n" + one + "\n"},
		"When a key exists only with a restriction, it should add the key without the restriction": {"no-pty " + one + "\n", []string{one}, "no-pty " + one + "\n" + one + "\n"},
		"When the file has only empty lines, it should start with the first key":                   {"\n\n", []string{one}, one + "\n"},
		"When the plan has no keys, it should keep the existing keys":                              {"ssh-rsa theirs\n", nil, "ssh-rsa theirs\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, m := newMachine(t)
			if tt.present != "" {
				m.PutMode(file, tt.present, 0o600)
			}
			g.Expect(apply.Plan(t.Context(), m.Host, &nodeplan.Plan{Users: []nodeplan.User{{Name: "me", SSHKeys: tt.keys}}})).To(Succeed())
			g.Expect(m.Text(file)).To(Equal(tt.want))
			g.Expect(m.Mode(file).Perm()).To(BeEquivalentTo(0o600), "sshd refuses keys that others can write")
		})
	}
	t.Run("When the .ssh directory is new, only the user should have access", func(t *testing.T) {
		g, m := newMachine(t)
		g.Expect(apply.Plan(t.Context(), m.Host, &nodeplan.Plan{Users: []nodeplan.User{{Name: "me", SSHKeys: []string{one}}}})).To(Succeed())
		g.Expect(m.Mode("/home/me/.ssh").Perm()).To(BeEquivalentTo(0o700))
	})
	t.Run("When the user's home is elsewhere on the machine, it should write the keys there", func(t *testing.T) {
		g, m := newMachine(t)
		m.Put("/etc/passwd", strings.Replace(m.Text("/etc/passwd"), "/home/me", "/srv/me", 1))
		user := nodeplan.User{Name: "me", Home: "/home/elsewhere", SSHKeys: []string{one}}
		g.Expect(apply.Plan(t.Context(), m.Host, &nodeplan.Plan{Users: []nodeplan.User{user}})).To(Succeed())
		g.Expect(m.Text("/srv/me/.ssh/authorized_keys")).To(Equal(one + "\n"))
		g.Expect(m.Exists("/home/elsewhere")).To(BeFalse())
		g.Expect(apply.KeysOf(m.Host, user)).To(Equal("/srv/me/.ssh/authorized_keys"))
	})
	t.Run("When a user is still missing after useradd, it should return an error", func(t *testing.T) {
		g, m := newMachine(t)
		err := apply.Plan(t.Context(), m.Host, &nodeplan.Plan{Users: []nodeplan.User{{Name: "joe", SSHKeys: []string{one}}}})
		g.Expect(err).To(MatchError("user joe: it is not in /etc/passwd, although it was just made"))
		g.Expect(m.Exists("/home/joe")).To(BeFalse())
	})
	t.Run("When a user's line has no shell, it should write the keys to the user's home", func(t *testing.T) {
		g, m := newMachine(t)
		m.Put("/etc/passwd", strings.Replace(m.Text("/etc/passwd"), ":/bin/bash", "", 1))
		g.Expect(apply.Plan(t.Context(), m.Host, &nodeplan.Plan{Users: []nodeplan.User{{Name: "me", SSHKeys: []string{one}}}})).To(Succeed())
		g.Expect(m.Text(file)).To(Equal(one + "\n"))
	})
	t.Run("When a user's UID is not a number, it should return an error", func(t *testing.T) {
		g, m := newMachine(t)
		m.Put("/etc/passwd", "me:x:many:0::/home/me:/bin/sh\n")
		g.Expect(apply.Plan(t.Context(), m.Host, &nodeplan.Plan{Users: []nodeplan.User{{Name: "me", SSHKeys: []string{one}}}})).To(MatchError(ContainSubstring(`"many"`)))
	})
	t.Run("When a user's line is truncated, it should write no keys", func(t *testing.T) {
		g, m := newMachine(t)
		m.Put("/etc/passwd", "me:x:0:0:\n")
		g.Expect(apply.Plan(t.Context(), m.Host, &nodeplan.Plan{Users: []nodeplan.User{{Name: "me", SSHKeys: []string{one}}}})).NotTo(Succeed())
		g.Expect(m.Exists("/.ssh")).To(BeFalse())
	})
}

// TestKeysOf covers users that may not exist on the machine yet.
func TestKeysOf(t *testing.T) {
	t.Parallel()
	for want, user := range map[string]nodeplan.User{
		"/home/me/.ssh/authorized_keys":  {Name: "me"},
		"/home/joe/.ssh/authorized_keys": {Name: "joe"},
		"/srv/joe/.ssh/authorized_keys":  {Name: "joe", Home: "/srv/joe"},
	} {
		g, m := newMachine(t)
		g.Expect(apply.KeysOf(m.Host, user)).To(Equal(want))
	}
	t.Run("When a user's line has no home, it should use the default home directory", func(t *testing.T) {
		g, m := newMachine(t)
		m.Put("/etc/passwd", "me:x:0:0:\n")
		g.Expect(apply.KeysOf(m.Host, nodeplan.User{Name: "me"})).To(Equal("/home/me/.ssh/authorized_keys"))
	})
}

// TestHostileHome covers a user who replaced the key file or its directory with a link to files of root.
func TestHostileHome(t *testing.T) {
	t.Parallel()
	users := &nodeplan.Plan{Users: []nodeplan.User{{Name: "me", SSHKeys: []string{"ssh-ed25519 AAAA"}}}}
	t.Run("When authorized_keys is a symlink to a file of root, it should return an error", func(t *testing.T) {
		g, m := newMachine(t)
		m.PutMode("/etc/shadow", "root:$6$hash\n", 0o600)
		m.PutLink("/home/me/.ssh/authorized_keys", "../../../etc/shadow")
		g.Expect(apply.Plan(t.Context(), m.Host, users)).To(MatchError(ContainSubstring("/home/me/.ssh/authorized_keys is a link")))
		g.Expect(m.Text("/etc/shadow")).To(Equal("root:$6$hash\n"))
		g.Expect(m.Files("/etc")).NotTo(ContainElement(ContainSubstring("$6$hash")))
	})
	t.Run("When the .ssh directory is a symlink to that of root, it should return an error", func(t *testing.T) {
		g, m := newMachine(t)
		m.PutMode("/root/.ssh/authorized_keys", "ssh-rsa root\n", 0o600)
		m.PutLink("/home/me/.ssh", "../../root/.ssh")
		g.Expect(apply.Plan(t.Context(), m.Host, users)).To(MatchError(ContainSubstring("/home/me/.ssh is a link")))
		g.Expect(m.Text("/root/.ssh/authorized_keys")).To(Equal("ssh-rsa root\n"))
	})
}
