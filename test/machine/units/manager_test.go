// SPDX-License-Identifier: Apache-2.0

package units

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const settleTimeout = time.Minute

// sessions is a fake Group: the processes of a unit are the ones in the sessions that it started.
type sessions struct {
	mu      sync.Mutex
	byUnit  map[string][]*exec.Cmd
	signals []string
}

func (s *sessions) Enter(unit string, cmd *exec.Cmd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byUnit == nil {
		s.byUnit = map[string][]*exec.Cmd{}
	}
	s.byUnit[unit] = append(s.byUnit[unit], cmd)
}

func (s *sessions) Signal(unit string, signal syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signals = append(s.signals, unit+" "+signal.String())
	for _, cmd := range s.byUnit[unit] {
		if cmd.Process == nil {
			continue
		}
		if err := syscall.Kill(-cmd.Process.Pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// world is a manager with unit files in a folder, and a folder OUT for the output of the units.
type world struct {
	*Manager
	out    string
	cancel context.CancelFunc
	ended  chan error
}

// start runs the units. In their files, OUT is replaced by the output folder.
func start(t *testing.T, files map[string]string, names ...string) *world {
	t.Helper()
	out := t.TempDir()
	for name, content := range files {
		files[name] = strings.ReplaceAll(content, "OUT", out)
	}
	dir := tree(t, files)
	ctx, cancel := context.WithCancel(t.Context())
	w := &world{
		Manager: &Manager{
			Dirs: []string{dir}, Hostname: "node-1", Env: []string{"PATH=/usr/bin:/bin"}, LogDir: filepath.Join(out, "log"), Group: &sessions{},
		},
		out: out, cancel: cancel, ended: make(chan error, 1),
	}
	go func() { w.ended <- w.Run(ctx, names) }()
	t.Cleanup(func() { w.stop(t) })
	return w
}

func (w *world) stop(t *testing.T) {
	t.Helper()
	w.cancel()
	NewWithT(t).Eventually(w.ended).WithTimeout(settleTimeout).Should(Receive(BeNil()))
	w.ended <- nil // This allows a second stop.
}

func (w *world) state(name string) func() State {
	return func() State { return w.Status()[name].State }
}

func (w *world) read(name string) string {
	data, _ := os.ReadFile(filepath.Join(w.out, name))
	return string(data)
}

func (w *world) eventually(t *testing.T, name string, state State) {
	t.Helper()
	NewWithT(t).Eventually(w.state(name)).WithTimeout(settleTimeout).Should(Equal(state), func() string {
		return w.Status()[name].Message + "\n" + w.read("log/"+name+".log")
	})
}

func TestOrder(t *testing.T) {
	w := start(t, map[string]string{
		"first.service":  "[Unit]\nBefore=second.service\n[Service]\nType=oneshot\nExecStart=/bin/sh -c 'until [ -e OUT/go ]; do read -t 1 x < /dev/zero || :; done; echo first >> OUT/order'\n",
		"second.service": "[Unit]\nWants=pulled.service missing.service\nAfter=first.service network.target missing.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'echo second >> OUT/order'\n",
		"pulled.service": "[Unit]\nAfter=second.service\n[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo pulled >> OUT/order'\n",
	}, "second.service", "first.service")
	g := NewWithT(t)
	g.Eventually(w.state("first.service")).WithTimeout(settleTimeout).Should(Equal(Activating))
	w.eventually(t, "second.service", Waiting)
	g.Expect(os.WriteFile(filepath.Join(w.out, "go"), nil, 0o600)).To(Succeed())
	w.eventually(t, "second.service", Active)
	w.eventually(t, "pulled.service", Inactive)
	w.eventually(t, "first.service", Inactive)
	g.Expect(w.read("order")).To(Equal("first\nsecond\npulled\n"))
	g.Expect(w.Status()).NotTo(HaveKey("missing.service"), "what is only wanted may be missing")
}

func TestLife(t *testing.T) {
	tests := []struct {
		name    string
		files   map[string]string
		state   State
		message string
		check   func(*WithT, *world)
	}{
		{
			name:  "When a simple service runs, it should be active and its pre and post commands should have run",
			files: map[string]string{"x.service": "[Service]\nExecStartPre=/bin/sh -c 'echo pre >> OUT/order'\nExecStart=sleep infinity\nExecStartPost=/bin/sh -c 'echo post >> OUT/order'\n"},
			state: Active,
			check: func(g *WithT, w *world) { g.Expect(w.read("order")).To(Equal("pre\npost\n")) },
		},
		{
			name:    "When a pre command fails, the service should fail and name the command",
			files:   map[string]string{"x.service": "[Service]\nExecStartPre=/bin/false\nExecStart=sleep infinity\n"},
			state:   Failed,
			message: "ExecStartPre: /bin/false: exit status 1",
		},
		{
			name:  "When a pre command may fail, the service should start all the same",
			files: map[string]string{"x.service": "[Service]\nExecStartPre=-/bin/false\nExecStartPre=-/does/not/exist\nExecStart=sleep infinity\n"},
			state: Active,
		},
		{
			name:    "When the program does not exist, the service should fail",
			files:   map[string]string{"x.service": "[Service]\nExecStart=no-such-program\n"},
			state:   Failed,
			message: "no-such-program",
		},
		{
			name:    "When a required unit fails, the service should fail too",
			files:   map[string]string{"x.service": "[Unit]\nRequires=y.service\nAfter=y.service\n[Service]\nExecStart=sleep infinity\n", "y.service": "[Service]\nType=oneshot\nExecStart=/bin/false\n"},
			state:   Failed,
			message: "y.service, which it requires, did not start",
		},
		{
			name:    "When a required unit is missing, the service should fail",
			files:   map[string]string{"x.service": "[Unit]\nRequires=y.service\n[Service]\nExecStart=sleep infinity\n"},
			state:   Failed,
			message: "y.service, which it requires, did not start",
		},
		{
			name:    "When a condition is not met, the service should not start",
			files:   map[string]string{"x.service": "[Unit]\nConditionPathExists=/does/not/exist\n[Service]\nExecStart=sleep infinity\n"},
			state:   Inactive,
			message: "ConditionPathExists=/does/not/exist does not hold",
		},
		{
			name:  "When a negated condition is met, the service should start",
			files: map[string]string{"x.service": "[Unit]\nConditionPathExists=!/does/not/exist\n[Service]\nExecStart=sleep infinity\n"},
			state: Active,
		},
		{
			name:    "When the type is not supported, the error should list the supported types",
			files:   map[string]string{"x.service": "[Service]\nType=forking\nExecStart=sleep infinity\n"},
			state:   Failed,
			message: "use simple",
		},
		{
			name:    "When units wait for each other, they should start all the same",
			files:   map[string]string{"x.service": "[Unit]\nWants=y.service\nAfter=y.service\n[Service]\nExecStart=sleep infinity\n", "y.service": "[Unit]\nAfter=x.service\n[Service]\nExecStart=sleep infinity\n"},
			state:   Active,
			message: "",
			check: func(g *WithT, w *world) {
				g.Eventually(w.state("y.service")).WithTimeout(settleTimeout).Should(Equal(Active))
			},
		},
		{
			name:    "When a notify service is silent, it should fail after its timeout",
			files:   map[string]string{"x.service": "[Service]\nType=notify\nTimeoutStartSec=100ms\nExecStart=sleep infinity\n"},
			state:   Failed,
			message: "did not start within 100ms",
		},
		{
			name:  "When a service leaves processes behind, they should be killed",
			files: map[string]string{"x.service": "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'sleep 1000 & echo $$$$ > OUT/session'\n"},
			state: Inactive,
			check: func(g *WithT, w *world) {
				g.Expect(w.Group.(*sessions).signals).To(ContainElement("x.service killed"))
			},
		},
		{
			name:  "When a service prints something, it should be in the log of the unit",
			files: map[string]string{"x.service": "[Service]\nType=oneshot\nEnvironment=WHO=%H\nExecStart=/bin/sh -c 'echo out $WHO; echo err >&2'\n"},
			state: Inactive,
			check: func(g *WithT, w *world) { g.Expect(w.read("log/x.service.log")).To(Equal("out node-1\nerr\n")) },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := start(t, tt.files, "x.service")
			w.eventually(t, "x.service", tt.state)
			g := NewWithT(t)
			g.Expect(w.Status()["x.service"].Message).To(ContainSubstring(tt.message))
			if tt.check != nil {
				tt.check(g, w)
			}
		})
	}
}

func TestUnsupportedKind(t *testing.T) {
	w := start(t, map[string]string{"x.timer": "[Timer]\nOnCalendar=daily\n"}, "x.timer")
	w.eventually(t, "x.timer", Failed)
	NewWithT(t).Expect(w.Status()["x.timer"].Message).To(ContainSubstring("only services"))
}

func TestNotify(t *testing.T) {
	// The test program itself is the service: a shell cannot send datagrams.
	self, err := os.Executable()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	w := start(t, map[string]string{
		"x.service":     "[Service]\nType=notify\nEnvironment=UNITS_TEST_NOTIFY=OUT/go\nExecStart=" + self + " -test.run=^TestNotifier$\n",
		"after.service": "[Unit]\nAfter=x.service\n[Service]\nExecStart=sleep infinity\n",
	}, "x.service", "after.service")
	g := NewWithT(t)
	g.Eventually(func() string { return w.read("go.waiting") }).WithTimeout(settleTimeout).ShouldNot(BeEmpty())
	g.Expect(w.state("x.service")()).To(Equal(Activating))
	w.eventually(t, "after.service", Waiting)
	g.Expect(os.WriteFile(filepath.Join(w.out, "go"), nil, 0o600)).To(Succeed())
	w.eventually(t, "x.service", Active)
	w.eventually(t, "after.service", Active)
}

// TestNotifier runs the service of TestNotify. It is not a test.
func TestNotifier(t *testing.T) {
	gate := os.Getenv("UNITS_TEST_NOTIFY")
	if gate == "" {
		t.Skip("it is the service of TestNotify")
	}
	g := NewWithT(t)
	g.Expect(os.WriteFile(gate+".waiting", []byte("x"), 0o600)).To(Succeed())
	g.Eventually(func() error { _, err := os.Stat(gate); return err }).WithTimeout(settleTimeout).Should(Succeed())
	for _, message := range []string{"STATUS=nearly", "STATUS=up\nREADY=1"} {
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(syscall.Sendto(fd, []byte(message), 0, &syscall.SockaddrUnix{Name: os.Getenv("NOTIFY_SOCKET")})).To(Succeed())
		g.Expect(syscall.Close(fd)).To(Succeed())
	}
	for { // Wait until it is killed. Go ends a program in which all goroutines wait for channels.
		_ = syscall.Pause()
	}
}

func TestRestart(t *testing.T) {
	t.Run("When a service fails, it should be restarted until it stays up", func(t *testing.T) {
		w := start(t, map[string]string{
			"x.service": "[Service]\nRestart=on-failure\nRestartSec=10ms\nExecStart=/bin/sh -c 'echo try >> OUT/tries; [ $(wc -l < OUT/tries) -ge 3 ] || exit 1; exec sleep infinity'\n",
		}, "x.service")
		NewWithT(t).Eventually(func() int { return w.Status()["x.service"].Restarts }).WithTimeout(settleTimeout).Should(Equal(2))
		w.eventually(t, "x.service", Active)
	})
	t.Run("When a oneshot service fails and is retried, other units should wait until it succeeds", func(t *testing.T) {
		w := start(t, map[string]string{
			"x.service": "[Service]\nType=oneshot\nRestart=on-failure\nRestartSec=10ms\nExecStart=/bin/sh -c 'echo try >> OUT/tries; [ $(wc -l < OUT/tries) -ge 3 ]'\n",
			"y.service": "[Unit]\nRequires=x.service\nAfter=x.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'cp OUT/tries OUT/seen'\n",
		}, "y.service")
		w.eventually(t, "y.service", Active)
		NewWithT(t).Expect(w.read("seen")).To(Equal("try\ntry\ntry\n"))
	})
	for _, tt := range []struct {
		policy  string
		err     error
		oneshot bool
		want    bool
	}{
		{policy: "", err: errors.New("x"), want: false},
		{policy: "no", err: errors.New("x"), want: false},
		{policy: "always", want: true},
		{policy: "always", oneshot: true, want: false},
		{policy: "always", oneshot: true, err: errors.New("x"), want: true},
		{policy: "on-success", want: true},
		{policy: "on-success", err: errors.New("x"), want: false},
		{policy: "on-failure", want: false},
		{policy: "on-failure", err: errors.New("x"), want: true},
	} {
		s := &service{restart: tt.policy, kind: "simple"}
		if tt.oneshot {
			s.kind = "oneshot"
		}
		if got := s.restarts(tt.err); got != tt.want {
			t.Errorf("Restart=%s, oneshot %t, error %v: restarts %t, want %t", tt.policy, tt.oneshot, tt.err, got, tt.want)
		}
	}
}

func TestStop(t *testing.T) {
	trap := func(name string) string {
		return "TimeoutStopSec=50s\nExecStart=/bin/sh -c 'trap \"echo " + name + " >> OUT/stopped; exit\" TERM; echo up >> OUT/" + name + "; while :; do sleep 0.02; done'\n"
	}
	t.Run("When the manager stops, it should stop units in reverse order", func(t *testing.T) {
		w := start(t, map[string]string{
			"first.service":  "[Service]\nExecStop=/bin/sh -c 'echo asked >> OUT/stopped'\n" + trap("first"),
			"second.service": "[Unit]\nAfter=first.service\n[Service]\n" + trap("second"),
		}, "first.service", "second.service")
		for _, name := range []string{"first", "second"} {
			NewWithT(t).Eventually(func() string { return w.read(name) }).WithTimeout(settleTimeout).Should(Equal("up\n"))
		}
		w.stop(t)
		NewWithT(t).Expect(w.read("stopped")).To(Equal("second\nasked\nfirst\n"))
	})
	t.Run("When a service ignores the stop signal, it should be killed", func(t *testing.T) {
		w := start(t, map[string]string{
			"x.service": "[Service]\nTimeoutStopSec=50ms\nExecStart=/bin/sh -c 'trap \"\" TERM; echo up > OUT/up; while :; do sleep 0.02; done'\n",
		}, "x.service")
		NewWithT(t).Eventually(func() string { return w.read("up") }).WithTimeout(settleTimeout).Should(Equal("up\n"))
		w.stop(t)
		NewWithT(t).Expect(w.Status()["x.service"].State).To(Equal(Inactive))
	})
	t.Run("When KillMode is process, the other processes of the unit should be left alone", func(t *testing.T) {
		w := start(t, map[string]string{"x.service": "[Service]\nKillMode=process\nExecStart=sleep infinity\n"}, "x.service")
		w.eventually(t, "x.service", Active)
		w.stop(t)
		NewWithT(t).Expect(w.Group.(*sessions).signals).To(BeEmpty())
	})
	t.Run("When units are still waiting, the manager should stop them too", func(t *testing.T) {
		w := start(t, map[string]string{
			"x.service": "[Service]\nType=oneshot\nExecStart=sleep infinity\n",
			"y.service": "[Unit]\nAfter=x.service\n[Service]\nExecStart=sleep infinity\n",
		}, "x.service", "y.service")
		w.eventually(t, "x.service", Activating)
		w.stop(t)
	})
}

func TestChanged(t *testing.T) {
	g := NewWithT(t)
	var mu sync.Mutex
	var seen []State
	manager := &Manager{
		Dirs:   []string{tree(t, map[string]string{"x.service": "[Service]\nType=oneshot\nExecStart=/bin/true\n"})},
		LogDir: t.TempDir(), Group: &sessions{},
		Changed: func(status map[string]Status) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, status["x.service"].State)
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx, []string{"x.service"}) }()
	g.Eventually(func() State { return manager.Status()["x.service"].State }).WithTimeout(settleTimeout).Should(Equal(Inactive))
	cancel()
	g.Eventually(ended).WithTimeout(settleTimeout).Should(Receive(BeNil()))
	mu.Lock()
	defer mu.Unlock()
	g.Expect(seen).To(Equal([]State{Waiting, Activating, Active, Inactive}))
}
