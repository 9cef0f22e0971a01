package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/machine"
)

// kill sends SIGKILL to every process of the management machine that runs one of the programs. A like-named process of the
// host, or of a kind or Docker beside the environment, is none of them.
func (s *suite) kill(programs ...string) error {
	management, err := machine.Lookup(env.Env{Dir: s.Dir}.Management())
	if err != nil {
		return err
	}
	processes, err := management.Processes()
	if err != nil {
		return err
	}
	for _, pid := range processes {
		if !slices.Contains(programs, program(pid)) {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("killing process %d: %w", pid, err)
		}
	}
	return nil
}

// program is the name that a process was started by; empty if it is gone.
func program(pid int) string {
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(string(cmdline), "\x00")
	return filepath.Base(name)
}

// bystander is a process with the name of one of ours, in a network namespace of its own, as another cluster on this host
// would run it.
func bystander(t *testing.T, name string) *os.Process {
	t.Helper()
	g := NewWithT(t)
	sleep, err := exec.LookPath("sleep")
	g.Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command(sleep, "infinity")
	cmd.Args[0] = "/usr/bin/" + name
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	g.Expect(cmd.Start()).To(Succeed())
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-exited
	})
	return cmd.Process
}
