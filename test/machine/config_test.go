// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
)

func TestValidate(t *testing.T) {
	for name, valid := range map[string]bool{
		"hs-mgmt": true, "a": true, "0": true, strings.Repeat("a", 40): true,
		"": false, "-a": false, "a-": false, "A": false, "a/b": false, "..": false, "a b": false, strings.Repeat("a", 41): false,
	} {
		if err := (Config{Name: name, Dir: "/x"}).validate(); (err == nil) != valid {
			t.Errorf("name %q: error %v, want it valid: %t", name, err, valid)
		}
	}
}

func TestPath(t *testing.T) {
	config := Config{Dir: "/machines/a"}
	for inMachine, want := range map[string]string{
		"/etc/hostname":  "/machines/a/root/etc/hostname",
		"etc":            "/machines/a/root/etc",
		"":               "/machines/a/root",
		"/../../secrets": "/machines/a/root/secrets",
	} {
		if got := config.Path(inMachine); got != want {
			t.Errorf("%q is at %q, want %q", inMachine, got, want)
		}
	}
}

func TestWithDefaults(t *testing.T) {
	tests := []struct {
		name     string
		in, want Config
	}{
		{
			name: "When only the name is set, it should fill in the defaults",
			in:   Config{Name: "x"},
			want: Config{Name: "x", Hostname: "x", CgroupParent: DefaultCgroupParent, Env: []string{"PATH=" + DefaultPath}},
		},
		{
			name: "When every field is set, it should change nothing",
			in:   Config{Name: "x", Hostname: "h", CgroupParent: "c", Env: []string{"A=1", "PATH=/bin"}},
			want: Config{Name: "x", Hostname: "h", CgroupParent: "c", Env: []string{"A=1", "PATH=/bin"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.in.withDefaults()); diff != "" {
				t.Errorf("defaults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestState(t *testing.T) {
	t.Run("When a state is written, it should be read back", func(t *testing.T) {
		g := NewWithT(t)
		want := &state{Config: Config{Name: "x", Dir: t.TempDir(), BootData: []byte("{}")}, PID: 7, StartTime: 8, Ready: true}
		g.Expect(want.write()).To(Succeed())
		got, err := readState(want.Config.Dir)
		g.Expect(err).NotTo(HaveOccurred())
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("state (-want +got):\n%s", diff)
		}
		info, err := os.Stat(statePath(want.Config.Dir))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600), "boot data may hold keys")
	})
	t.Run("When a process is alive, it should be identified by its start time", func(t *testing.T) {
		g := NewWithT(t)
		started, zombie, err := processStart(os.Getpid())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(zombie).To(BeFalse())
		s := &state{PID: os.Getpid(), StartTime: started}
		g.Expect(s.alive()).To(BeTrue())
		g.Expect((&Machine{state: *s}).Running()).To(BeFalse(), "until it stands on its own")
		s.StartTime++
		g.Expect(s.alive()).To(BeFalse())
	})
	t.Run("When there never was a process, it should not be alive", func(t *testing.T) {
		NewWithT(t).Expect((&state{}).alive()).To(BeFalse())
	})
	t.Run("When the folder is gone, the error should name the machine", func(t *testing.T) {
		s := &state{Config: Config{Name: "x", Dir: "/does/not/exist"}}
		NewWithT(t).Expect(s.write()).To(MatchError(ContainSubstring("machine x")))
	})
}

func TestUnits(t *testing.T) {
	needRoot(t)
	g := NewWithT(t)
	m := &Machine{state: state{PID: os.Getpid()}}
	g.Expect(m.Units()).To(BeEmpty(), "a machine that is booting has no units yet")
	g.Expect((&Machine{}).Units()).To(BeEmpty(), "nor has one that is off")
}

func TestApplySysctls(t *testing.T) {
	g := NewWithT(t)
	sys := t.TempDir()
	for _, key := range []string{"net/ipv4/ip_forward", "net/a", "net/b"} {
		path := filepath.Join(sys, key)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte("0"), 0o600)).To(Succeed())
	}
	refused := applySysctls(sys, "# net.a = 9\n; net.b=9\n\nnet.ipv4.ip_forward = 1\n-net.a=two words \nnonsense\nnot.there=1\nnet/b=3\n")
	g.Expect(read(t, filepath.Join(sys, "net/ipv4/ip_forward"))).To(Equal("1"))
	g.Expect(read(t, filepath.Join(sys, "net/a"))).To(Equal("two words"))
	g.Expect(read(t, filepath.Join(sys, "net/b"))).To(Equal("3"))
	g.Expect(errors.Is(refused, os.ErrNotExist)).To(BeTrue())
	g.Expect(refused).To(MatchError(ContainSubstring("not.there stays as it is")))
}

// TestInit checks that Init returns for an unknown role: the program must continue with its main.
func TestInit(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	os.Args = []string{"some-program"}
	Init(nil)
}
