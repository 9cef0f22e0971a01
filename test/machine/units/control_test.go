// SPDX-License-Identifier: Apache-2.0

package units

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// napping returns a service that records its starts in the file of its name.
func napping(name, more string) string {
	return more + "[Service]\nExecStart=/bin/sh -c 'echo x >> OUT/" + name + "; exec sleep infinity'\n"
}

func (w *world) starts(name string) func() int {
	return func() int { return strings.Count(w.read(name), "x") }
}

func TestStart(t *testing.T) {
	w := start(t, map[string]string{
		"boot.service":    napping("boot", ""),
		"late.service":    napping("late", "[Unit]\nRequires=needed.service\nAfter=needed.service boot.service\n"),
		"needed.service":  napping("needed", ""),
		"bad.service":     "[Service]\nType=oneshot\nExecStart=/bin/false\n",
		"patient.service": "[Service]\nType=oneshot\nRestart=on-failure\nRestartSec=1h\nExecStart=/bin/false\n",
		"later.service":   "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'until [ -e OUT/go ]; do read -t 1 x < /dev/zero || :; done'\n",
	}, "boot.service")
	w.eventually(t, "boot.service", Active)
	ctx := t.Context()

	t.Run("When a unit is started, it should start once, with the units that it requires", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.Start(ctx, true, "late.service")).To(Succeed())
		g.Expect(w.state("late.service")()).To(Equal(Active))
		g.Expect(w.state("needed.service")()).To(Equal(Active))
		g.Expect(w.Start(ctx, true, "late.service", "boot.service")).To(Succeed())
		g.Eventually(w.starts("late")).WithTimeout(settleTimeout).Should(Equal(1))
		g.Eventually(w.starts("boot")).WithTimeout(settleTimeout).Should(Equal(1))
	})
	t.Run("When a unit fails to start, it should return the error, even if the unit is retried", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.Start(ctx, true, "bad.service")).To(MatchError(ContainSubstring("starting bad.service: ExecStart: /bin/false: exit status 1")))
		g.Expect(w.Start(ctx, true, "patient.service")).To(MatchError(ContainSubstring("exit status 1")))
		g.Expect(w.state("patient.service")()).To(Equal(Activating))
		g.Expect(w.Start(ctx, true, "missing.service")).To(MatchError(ErrNotFound))
	})
	t.Run("When the caller does not wait, the unit should start all the same", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.Start(ctx, false, "later.service")).To(Succeed())
		g.Eventually(w.state("later.service")).WithTimeout(settleTimeout).Should(Equal(Activating))
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		g.Expect(w.Start(short, true, "later.service")).To(MatchError(context.DeadlineExceeded))
		g.Expect(os.WriteFile(filepath.Join(w.out, "go"), nil, 0o600)).To(Succeed())
		g.Expect(w.Start(ctx, true, "later.service")).To(Succeed())
	})
	t.Run("When the manager does not run, it should return an error", func(t *testing.T) {
		NewWithT(t).Expect((&Manager{}).Start(ctx, true, "x.service")).To(MatchError(errOff))
		w.stop(t)
		NewWithT(t).Expect(w.Start(ctx, true, "boot.service")).To(MatchError(errOff))
	})
}

func TestStopAndRestart(t *testing.T) {
	w := start(t, map[string]string{
		"base.service":  napping("base", ""),
		"user.service":  napping("user", "[Unit]\nRequires=base.service\nAfter=base.service\n"),
		"part.service":  napping("part", "[Unit]\nPartOf=base.service\n"),
		"apart.service": napping("apart", "[Unit]\nWants=base.service\n"),
	}, "user.service", "part.service", "apart.service")
	for _, name := range []string{"base", "user", "part", "apart"} {
		w.eventually(t, name+".service", Active)
		NewWithT(t).Eventually(w.starts(name)).WithTimeout(settleTimeout).Should(Equal(1), "it is active before its shell has written")
	}
	ctx := t.Context()

	t.Run("When a unit is restarted, only units that require it or are part of it should restart too", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.Restart(ctx, true, "base.service")).To(Succeed())
		for name, want := range map[string]int{"base": 2, "user": 2, "part": 2, "apart": 1} {
			g.Eventually(w.starts(name)).WithTimeout(settleTimeout).Should(Equal(want), name)
		}
	})
	t.Run("When a unit file changes, it should take effect after a reload", func(t *testing.T) {
		g := NewWithT(t)
		file := filepath.Join(w.Dirs[0], "apart.service")
		g.Expect(os.WriteFile(file, []byte("[Service]\nExecStart=/bin/sh -c 'echo x >> "+w.out+"/changed; exec sleep infinity'\n"), 0o600)).To(Succeed())
		g.Expect(w.Restart(ctx, true, "apart.service")).To(Succeed())
		g.Eventually(w.starts("apart")).WithTimeout(settleTimeout).Should(Equal(2))
		w.Reload()
		g.Expect(w.Restart(ctx, true, "apart.service")).To(Succeed())
		g.Eventually(w.starts("changed")).WithTimeout(settleTimeout).Should(Equal(1))
		g.Expect(w.starts("apart")()).To(Equal(2))
	})
	t.Run("When a unit is stopped, units that require it should stop too, and all can be started again", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.Stop(ctx, "base.service", "missing.service")).To(Succeed())
		for _, name := range []string{"base.service", "user.service", "part.service"} {
			g.Expect(w.state(name)()).To(Equal(Inactive), name)
		}
		g.Expect(w.state("apart.service")()).To(Equal(Active))
		g.Expect(w.Start(ctx, true, "user.service")).To(Succeed())
		g.Eventually(w.starts("base")).WithTimeout(settleTimeout).Should(Equal(3))
	})
	t.Run("When a signal is sent, it should reach the processes of the unit", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.Kill(syscall.SIGKILL, "apart.service")).To(Succeed())
		w.eventually(t, "apart.service", Failed)
	})
}

func TestInstall(t *testing.T) {
	g := NewWithT(t)
	root := tree(t, map[string]string{
		"lib/a.service":     "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\nRequiredBy=b.service\nAlias=c.service\n",
		"lib/n@.service":    "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\n",
		"lib/plain.service": "[Service]\nExecStart=/bin/a\n",
	})
	etc, lib := filepath.Join(root, "etc"), filepath.Join(root, "lib")
	dirs := []string{etc, lib}
	state := func(name string) string {
		s, err := FileState(name, etc, dirs)
		g.Expect(err).NotTo(HaveOccurred())
		return s
	}
	for range 2 { // The second call changes nothing.
		g.Expect(Enable("a.service", etc, dirs)).To(BeTrue())
	}
	g.Expect(os.Readlink(filepath.Join(etc, "multi-user.target.wants/a.service"))).To(Equal(filepath.Join(lib, "a.service")))
	g.Expect(os.Readlink(filepath.Join(etc, "b.service.requires/a.service"))).To(Equal(filepath.Join(lib, "a.service")))
	g.Expect(filepath.Join(etc, "c.service")).To(BeAnExistingFile())
	g.Expect(Enable("n@1.service", etc, dirs)).To(BeTrue())
	g.Expect(os.Readlink(filepath.Join(etc, "multi-user.target.wants/n@1.service"))).To(Equal(filepath.Join(lib, "n@.service")))
	g.Expect(Enable("plain.service", etc, dirs)).To(BeFalse(), "it has no [Install] section")
	g.Expect(Enabled(dirs, "none")).To(Equal([]string{"a.service", "n@1.service"}))
	g.Expect([]string{state("a.service"), state("plain.service")}).To(Equal([]string{"enabled", "static"}))

	g.Expect(Disable("a.service", etc)).To(Succeed())
	g.Expect(Disable("a.service", etc)).To(Succeed())
	g.Expect(state("a.service")).To(Equal("disabled"))
	g.Expect(Mask("a.service", etc)).To(Succeed())
	g.Expect(state("a.service")).To(Equal("masked"))
	_, err := Enable("a.service", etc, dirs)
	g.Expect(err).To(MatchError(ErrMasked))
	g.Expect(Unmask("a.service", etc)).To(Succeed())
	g.Expect(Unmask("a.service", etc)).To(Succeed())
	g.Expect(state("a.service")).To(Equal("disabled"))
	g.Expect(os.WriteFile(filepath.Join(etc, "own.service"), nil, 0o600)).To(Succeed())
	g.Expect(Mask("own.service", etc)).To(MatchError(ContainSubstring("is a file")))
	_, err = Enable("missing.service", etc, dirs)
	g.Expect(err).To(MatchError(ErrNotFound))
	_, err = FileState("missing.service", etc, dirs)
	g.Expect(err).To(MatchError(ErrNotFound))
}

func TestFullName(t *testing.T) {
	for name, want := range map[string]string{
		"kubelet": "kubelet.service", "kubelet.service": "kubelet.service", "multi-user.target": "multi-user.target", "a.b": "a.b.service",
	} {
		NewWithT(t).Expect(FullName(name)).To(Equal(want))
	}
}
