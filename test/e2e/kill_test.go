// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/machine"
)

// kill sends SIGKILL to every process of the program in a namespace's pods. It does not affect processes with that name
// elsewhere: in another namespace, on the host, or in a cluster outside the environment.
func (s *suite) kill(ctx context.Context, namespace, name string) error {
	list := &corev1.PodList{}
	if err := s.c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	_, err := s.killIf(func(pid int) bool { return program(pid) == name && isOf(pid, list.Items) })
	return err
}

// killIf sends SIGKILL to the processes of the management machine for which meant returns true, and returns their
// number.
func (s *suite) killIf(meant func(pid int) bool) (killed int, err error) {
	management, err := machine.Lookup(env.Env{Dir: s.Dir}.Management())
	if err != nil {
		return 0, err
	}
	processes, err := management.Processes()
	if err != nil {
		return 0, err
	}
	for _, pid := range processes {
		if !meant(pid) {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return killed, fmt.Errorf("killing process %d: %w", pid, err)
		}
		killed++
	}
	return killed, nil
}

// isOf reports whether a process is in a container of one of the pods.
func isOf(pid int, pods []corev1.Pod) bool {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return err == nil && slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return bytes.Contains(groups, []byte("pod"+string(pod.UID))) })
}

// program returns the file name of a process's executable, independently of its argv[0]: several images start a
// /manager. It returns "" if the process has ended.
func program(pid int) string {
	file, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return ""
	}
	return filepath.Base(file)
}

// bystander starts a process with the name of one of our programs in its own network namespace, as another cluster on
// this host would do.
func bystander(t *testing.T, name string) *os.Process {
	t.Helper()
	g := NewWithT(t)
	sleep, err := exec.LookPath("sleep")
	g.Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(sleep)
	g.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(t.TempDir(), name)
	g.Expect(os.WriteFile(file, content, 0o700)).To(Succeed())
	cmd := exec.Command(file, "infinity")
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
