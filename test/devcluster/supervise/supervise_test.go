// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

// TestMain makes the test program its own supervisor, as in the real program.
func TestMain(m *testing.M) {
	if !Requested() {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	if err := Run(ctx); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// process returns a process that runs a shell script with its folder in $1.
func process(t *testing.T, script string) Process {
	t.Helper()
	dir := t.TempDir()
	p := Process{Name: "test", Dir: dir, Command: []string{"/bin/sh", "-c", script, "sh", dir}}
	t.Cleanup(func() { NewWithT(t).Expect(p.Stop(context.WithoutCancel(t.Context()))).To(Succeed()) })
	return p
}

func childPID(p Process) func() (int, error) {
	return func() (int, error) {
		data, err := os.ReadFile(filepath.Join(p.Dir, "child"))
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(string(data)))
	}
}

// alive returns a function that reports whether a process runs; false for a zombie.
func alive(pid int) func() bool {
	return func() bool {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && !bytes.Contains(data, []byte(") Z "))
	}
}

const sleeper = `echo $$ > $1/child.new; mv $1/child.new $1/child; exec sleep 600`

func TestProcess(t *testing.T) {
	t.Run("When a process is started, it should run until it is stopped and leave nothing behind", func(t *testing.T) {
		g := NewWithT(t)
		p := process(t, sleeper)
		g.Expect(p.Running()).To(BeFalse())
		g.Expect(p.Start()).To(Succeed())
		g.Expect(p.Running()).To(BeTrue())
		g.Eventually(childPID(p), 2*time.Minute).Should(BeNumerically(">", 0))
		child, err := childPID(p)()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p.Stop(t.Context())).To(Succeed())
		g.Expect(p.Running()).To(BeFalse())
		g.Eventually(alive(child)).Should(BeFalse())
	})
	t.Run("When a process is started twice, only one should run", func(t *testing.T) {
		g := NewWithT(t)
		p := process(t, sleeper)
		g.Expect(p.Start()).To(Succeed())
		first := p.PID()
		g.Expect(p.Start()).To(Succeed())
		g.Expect(p.PID()).To(Equal(first))
	})
	t.Run("When the program dies, it should be restarted and the log should say so", func(t *testing.T) {
		g := NewWithT(t)
		p := process(t, `echo run >> $1/runs; exit 3`)
		g.Expect(p.Start()).To(Succeed())
		g.Eventually(func() (int, error) {
			data, err := os.ReadFile(filepath.Join(p.Dir, "runs"))
			return bytes.Count(data, []byte("run")), err
		}, time.Minute).Should(BeNumerically(">=", 2))
		g.Expect(os.ReadFile(p.Log())).To(ContainSubstring("test ended (exit status 3)"))
	})
	t.Run("When the supervisor is killed, its program should die too, and both should start again", func(t *testing.T) {
		g := NewWithT(t)
		p := process(t, sleeper)
		g.Expect(p.Start()).To(Succeed())
		g.Eventually(childPID(p), 2*time.Minute).Should(BeNumerically(">", 0))
		child, err := childPID(p)()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(unix.Kill(p.PID(), unix.SIGKILL)).To(Succeed())
		g.Eventually(p.Running, 2*time.Minute).Should(BeFalse())
		g.Eventually(alive(child), 2*time.Minute).Should(BeFalse())
		g.Expect(p.Start()).To(Succeed())
		g.Expect(p.Running()).To(BeTrue())
	})
	t.Run("When a process never ran, stopping it should succeed", func(t *testing.T) {
		NewWithT(t).Expect(process(t, sleeper).Stop(t.Context())).To(Succeed())
	})
	t.Run("When the folder cannot be created, the error should name the process", func(t *testing.T) {
		g := NewWithT(t)
		file := filepath.Join(t.TempDir(), "file")
		g.Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
		p := Process{Name: "test", Dir: filepath.Join(file, "x")}
		g.Expect(p.Start()).To(MatchError(ContainSubstring("starting test")))
	})
	t.Run("When the network namespace does not exist, the process should not be started", func(t *testing.T) {
		g := NewWithT(t)
		p := process(t, sleeper)
		p.Namespace = "no-such-namespace"
		g.Expect(p.Start()).To(MatchError(ContainSubstring("no-such-namespace")))
		g.Expect(p.Running()).To(BeFalse())
	})
}
