// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestStateFile(t *testing.T) {
	t.Run("When a crash leaves half of the next state, the previous state should be used", func(t *testing.T) {
		g, dir := NewWithT(t), t.TempDir()
		g.Expect((&state{Config: Config{Name: "hs-a", Dir: dir}, PID: 7}).write()).To(Succeed())
		g.Expect(os.WriteFile(statePath(dir)+".new", []byte(`{"config":`), 0o600)).To(Succeed())
		s, err := readState(dir)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.PID).To(Equal(7))
	})
	t.Run("When there is no machine, the error should differ from that of an unreadable one", func(t *testing.T) {
		g, dir := NewWithT(t), t.TempDir()
		_, err := Lookup(dir)
		g.Expect(err).To(MatchError(fs.ErrNotExist))
		g.Expect(os.WriteFile(statePath(dir), []byte(`{"config":`), 0o600)).To(Succeed())
		_, err = Lookup(dir)
		g.Expect(err).To(MatchError(ContainSubstring("reading " + statePath(dir))))
		g.Expect(err).NotTo(MatchError(fs.ErrNotExist))
	})
	t.Run("When the folder is gone, writing the state should fail and name the machine", func(t *testing.T) {
		s := &state{Config: Config{Name: "hs-a", Dir: filepath.Join(t.TempDir(), "gone")}}
		NewWithT(t).Expect(s.write()).To(MatchError(ContainSubstring("writing the state of machine hs-a")))
	})
}

// TestProcessStart checks a process that has not been waited for, which still has its ID, and a program with an unusual
// name.
func TestProcessStart(t *testing.T) {
	t.Run("When the process of a machine is a zombie, the machine should not count as running", func(t *testing.T) {
		g := NewWithT(t)
		cmd := exec.CommandContext(t.Context(), "true")
		g.Expect(cmd.Start()).To(Succeed())
		t.Cleanup(func() { _ = cmd.Wait() })
		g.Eventually(func(g Gomega) {
			_, zombie, err := processStart(cmd.Process.Pid)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(zombie).To(BeTrue())
		}).WithTimeout(time.Minute).Should(Succeed())
		ticks, _, err := processStart(cmd.Process.Pid)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect((&state{PID: cmd.Process.Pid, StartTime: ticks}).alive()).To(BeFalse(), "its namespaces are gone")
	})
	t.Run("When a program has parentheses and spaces in its name, its start time should be found", func(t *testing.T) {
		g, program := NewWithT(t), filepath.Join(t.TempDir(), "a) S 1 (b")
		sleep, err := exec.LookPath("sleep")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.Symlink(sleep, program)).To(Succeed())
		cmd := exec.CommandContext(t.Context(), program, "600")
		g.Expect(cmd.Start()).To(Succeed())
		defer cmd.Wait()
		defer cmd.Process.Kill()
		ticks, zombie, err := processStart(cmd.Process.Pid)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(zombie).To(BeFalse())
		own, _, err := processStart(os.Getpid())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(ticks).To(BeNumerically(">=", own))
	})
}
