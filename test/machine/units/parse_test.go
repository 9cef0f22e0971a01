// SPDX-License-Identifier: Apache-2.0

package units

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
)

func unit(t *testing.T, name, content string) *Unit {
	t.Helper()
	u := &Unit{Name: name}
	if err := u.parse(content); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestParse(t *testing.T) {
	tests := []struct {
		name, content string
		want          map[string][]string
		wantErr       string
	}{
		{
			name:    "When a setting is repeated, it should keep every value in order",
			content: "[Unit]\nAfter=a.service\nAfter=b.service c.service\n",
			want:    map[string][]string{"Unit.After": {"a.service", "b.service c.service"}},
		},
		{
			name:    "When a value is empty, it should clear the values before it",
			content: "[Service]\nExecStart=/bin/a\nExecStart=\nExecStart=/bin/b\n",
			want:    map[string][]string{"Service.ExecStart": {"/bin/b"}},
		},
		{
			name:    "When a line ends in a backslash, it should continue past comments",
			content: "[Service]\nExecStart=/bin/a \\\n  # not part of it\n  --flag \\\n  last\n",
			want:    map[string][]string{"Service.ExecStart": {"/bin/a  --flag  last"}},
		},
		{
			name:    "When there are comments and blank lines, it should skip them",
			content: "# a\n; b\n\n[Unit]\n Description = spaced out \n",
			want:    map[string][]string{"Unit.Description": {"spaced out"}},
		},
		{
			name:    "When a setting is before any section, the error should give the line",
			content: "\nAfter=a.service\n",
			wantErr: "line 2",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			u := &Unit{Name: "x.service"}
			err := u.parse(tt.content)
			if tt.wantErr != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.wantErr)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			if diff := cmp.Diff(tt.want, u.settings); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDuration(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 7 * time.Second, "90": 90 * time.Second, "1.5": 1500 * time.Millisecond, "5s": 5 * time.Second,
		"2min 30s": 150 * time.Second, "100ms": 100 * time.Millisecond, "infinity": 0,
	} {
		u := unit(t, "x.service", "[Service]\nRestartSec="+value+"\n")
		got, err := u.duration("Service.RestartSec", 7*time.Second)
		if err != nil || got != want {
			t.Errorf("%q is %s, %v; want %s", value, got, err, want)
		}
	}
	u := unit(t, "x.service", "[Service]\nRestartSec=soon\n")
	if _, err := u.duration("Service.RestartSec", 0); err == nil {
		t.Error("a word is not a time span, but there was no error")
	}
}

func TestParseCommand(t *testing.T) {
	env := map[string]string{"NAME": "world", "FLAGS": "--a --b", "EMPTY": ""}
	tests := []struct {
		name, line string
		want       command
		wantErr    bool
	}{
		{name: "When words are quoted, it should keep them together", line: `/bin/sh -c "echo 'a b' \"c\""`,
			want: command{argv: []string{"/bin/sh", "-c", `echo 'a b' "c"`}}},
		{name: "When a variable is in braces, it should expand to one word", line: `/bin/x --f=${FLAGS} ${NAME}s`,
			want: command{argv: []string{"/bin/x", "--f=--a --b", "worlds"}}},
		{name: "When a variable is a word, it should expand to several words", line: `/bin/x $FLAGS $EMPTY end`,
			want: command{argv: []string{"/bin/x", "--a", "--b", "end"}}},
		{name: "When a dollar sign is doubled, it should be left for the shell", line: `/bin/sh -c 'for i in 1; do echo $$i; done'`,
			want: command{argv: []string{"/bin/sh", "-c", "for i in 1; do echo $i; done"}}},
		{name: "When the prefix is a dash, failures should be ignored", line: `-/bin/false`,
			want: command{argv: []string{"/bin/false"}, ignoreFailure: true}},
		{name: "When there are other prefixes, they should be dropped", line: `+!/bin/true`,
			want: command{argv: []string{"/bin/true"}}},
		{name: "When a quote is not closed, it should return an error", line: `/bin/sh -c "oops`, wantErr: true},
		{name: "When the command is empty, it should return an error", line: `-`, wantErr: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseCommand(tt.line, env)
			if (err != nil) != tt.wantErr {
				t.Fatalf("error %v, want one: %t", err, tt.wantErr)
			}
			if tt.wantErr {
				return
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(command{})); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSpecifiers(t *testing.T) {
	got := specifiers("get-ty@tty1.service", "node-1", "%n %N %p %i %H %t %% %z")
	want := "get-ty@tty1.service get-ty@tty1 get-ty tty1 node-1 /run % %z"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEnvironment(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "env")
	g.Expect(os.WriteFile(file, []byte("# comment\nFROM_FILE='quoted value'\nBOTH=file\n"), 0o600)).To(Succeed())
	u := unit(t, "x.service", "[Service]\nEnvironment=\"A=a b\" BOTH=unit\nEnvironment=HOST=%H\nEnvironmentFile=-/does/not/exist\nEnvironmentFile="+file+"\n")
	got, err := environment(u, "node-1", []string{"PATH=/bin", "A=base"})
	g.Expect(err).NotTo(HaveOccurred())
	want := map[string]string{"PATH": "/bin", "A": "a b", "HOST": "node-1", "FROM_FILE": "quoted value", "BOTH": "file"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}

	missing := unit(t, "x.service", "[Service]\nEnvironmentFile=/does/not/exist\n")
	_, err = environment(missing, "", nil)
	g.Expect(err).To(MatchError(os.ErrNotExist))
}

// tree writes files; a content that starts with "-> " is a symbolic link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		write := func() error { return os.WriteFile(path, []byte(content), 0o644) }
		if target, link := strings.CutPrefix(content, "-> "); link {
			write = func() error { return os.Symlink(target, path) }
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestLoad(t *testing.T) {
	root := tree(t, map[string]string{
		"etc/a.service":                    "[Service]\nExecStart=/bin/a\nEnvironment=X=1\n",
		"etc/a.service.d/10-x.conf":        "[Service]\nEnvironment=X=etc\n",
		"run/a.service":                    "[Service]\nExecStart=/bin/other\n",
		"run/a.service.d/10-x.conf":        "[Service]\nEnvironment=X=run\n",
		"run/a.service.d/05-y.conf":        "[Service]\nExecStart=\nExecStart=/bin/b\n",
		"etc/masked.service":               "-> /dev/null",
		"run/masked.service":               "[Service]\nExecStart=/bin/a\n",
		"etc/getty@.service":               "[Service]\nExecStart=/bin/getty %i\n",
		"etc/broken.service":               "no section",
		"etc/broken-drop.service":          "[Service]\n",
		"etc/broken-drop.service.d/x.conf": "oops",
	})
	dirs := []string{filepath.Join(root, "etc"), filepath.Join(root, "run")}

	t.Run("When there are drop-ins, they should apply by name, and the first folder should win", func(t *testing.T) {
		g := NewWithT(t)
		u, err := Load("a.service", dirs)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(u.list("Service.ExecStart")).To(Equal([]string{"/bin/b"}))
		g.Expect(u.list("Service.Environment")).To(Equal([]string{"X=1", "X=etc"}))
	})
	t.Run("When an instance has no file of its own, it should load the template", func(t *testing.T) {
		g := NewWithT(t)
		u, err := Load("getty@tty1.service", dirs)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(u.Name).To(Equal("getty@tty1.service"))
		g.Expect(u.last("Service.ExecStart")).To(Equal("/bin/getty %i"))
	})
	for name, want := range map[string]error{"masked.service": ErrMasked, "none.service": ErrNotFound, "none@x.service": ErrNotFound} {
		_, err := Load(name, dirs)
		NewWithT(t).Expect(err).To(MatchError(want), name)
	}
	for name, where := range map[string]string{"broken.service": "broken.service: line 1", "broken-drop.service": "x.conf: line 1"} {
		_, err := Load(name, dirs)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(where)))
	}
}

func TestEnabled(t *testing.T) {
	installed := "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\n"
	root := tree(t, map[string]string{
		"units/linked.service":                            installed,
		"units/multi-user.target.wants/linked.service":    "-> ../linked.service",
		"units/needed.service":                            installed,
		"units/multi-user.target.requires/needed.service": "-> ../needed.service",
		"units/other.service.wants/dependent.service":     "-> ../dependent.service",
		"units/preset.service":                            installed,
		"units/disabled.service":                          installed,
		"units/unmentioned.service":                       installed,
		"units/not-installable.service":                   "[Service]\nExecStart=/bin/a\n",
		"units/masked.service":                            "-> /dev/null",
		"units/tty@.service":                              installed,
		"presets/20-a.preset":                             "enable preset.service\ndisable disabled.service\nenable not-installable.service\nenable tty@.service one two\n",
		"presets/90-z.preset":                             "disable preset.service\nenable dis*\nenable masked.service\n",
	})
	got, err := Enabled([]string{filepath.Join(root, "units"), filepath.Join(root, "missing")}, filepath.Join(root, "presets"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	want := []string{"linked.service", "needed.service", "preset.service", "tty@one.service", "tty@two.service"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("enabled units (-want +got):\n%s", diff)
	}
}
