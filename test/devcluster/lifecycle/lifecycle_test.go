// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/devcluster/env"
)

// sandbox returns an environment with its own owner file.
func sandbox(t *testing.T) *Environment {
	t.Helper()
	real := ownerFile
	ownerFile = filepath.Join(t.TempDir(), "owner")
	t.Cleanup(func() { ownerFile = real })
	return &Environment{Env: env.Env{Dir: filepath.Join(t.TempDir(), "env"), Bin: t.TempDir()}, Out: io.Discard}
}

func TestClaim(t *testing.T) {
	t.Run("When the folder does not exist, it should be created and recognized later", func(t *testing.T) {
		g := NewWithT(t)
		e := sandbox(t)
		g.Expect(e.claimed()).To(BeFalse())
		g.Expect(e.claim()).To(Succeed())
		g.Expect(e.claimed()).To(BeTrue())
		g.Expect(owner()).To(Equal(e.Dir))
		g.Expect(e.claim()).To(Succeed())
	})
	t.Run("When the folder is empty, it should be claimed", func(t *testing.T) {
		g := NewWithT(t)
		e := sandbox(t)
		g.Expect(os.Mkdir(e.Dir, 0o755)).To(Succeed())
		g.Expect(e.claim()).To(Succeed())
	})
	t.Run("When the folder has other files, it should be neither used nor removed", func(t *testing.T) {
		g := NewWithT(t)
		e := sandbox(t)
		precious := filepath.Join(e.Dir, "precious")
		g.Expect(os.MkdirAll(precious, 0o755)).To(Succeed())
		g.Expect(e.claim()).To(MatchError(ContainSubstring("--dir")))
		g.Expect(e.Down(t.Context())).To(MatchError(ContainSubstring("nothing was removed")))
		g.Expect(precious).To(BeADirectory())
	})
	t.Run("When the marker was deleted, the folder should still be recognized as the one in use", func(t *testing.T) {
		g := NewWithT(t)
		e := sandbox(t)
		g.Expect(e.claim()).To(Succeed())
		g.Expect(os.Remove(filepath.Join(e.Dir, marker))).To(Succeed())
		g.Expect(e.ours()).To(BeTrue())
	})
}

func TestCheckOwner(t *testing.T) {
	t.Run("When the environment in another folder no longer runs, it should not block this one", func(t *testing.T) {
		g := NewWithT(t)
		e := sandbox(t)
		g.Expect(os.WriteFile(ownerFile, []byte(t.TempDir()+"\n"), 0o600)).To(Succeed())
		g.Expect(e.checkOwner()).To(Succeed())
	})
	t.Run("When an environment runs in another folder, the error should name the folder and the remedy", func(t *testing.T) {
		g := NewWithT(t)
		e := sandbox(t)
		other := t.TempDir()
		g.Expect(os.WriteFile(ownerFile, []byte(other+"\n"), 0o600)).To(Succeed())
		writeRunningMachine(g, filepath.Join(other, "management"))
		want := MatchError(And(ContainSubstring(other), ContainSubstring("devcluster down --dir "+other)))
		g.Expect(e.checkOwner()).To(want)
		g.Expect(e.Up(t.Context())).To(want)
		g.Expect(e.Down(t.Context())).To(want)
	})
}

// writeRunningMachine creates the folder of a machine whose PID 1 is this test process.
func writeRunningMachine(g Gomega, dir string) {
	stat, err := os.ReadFile("/proc/self/stat")
	g.Expect(err).NotTo(HaveOccurred())
	afterName := string(stat[strings.LastIndexByte(string(stat), ')')+2:])
	started := strings.Fields(afterName)[19]
	pid := strings.Fields(string(stat))[0]
	g.Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	state := `{"config":{"name":"x","dir":"` + dir + `"},"pid":` + pid + `,"startTime":` + started + `,"ready":true}`
	g.Expect(os.WriteFile(filepath.Join(dir, "machine.json"), []byte(state), 0o600)).To(Succeed())
}

func TestLock(t *testing.T) {
	g := NewWithT(t)
	e := sandbox(t)
	g.Expect(e.claim()).To(Succeed())
	unlock, err := e.lock()
	g.Expect(err).NotTo(HaveOccurred())
	_, err = e.lock()
	g.Expect(err).To(MatchError(ContainSubstring("another devcluster command is working on " + e.Dir)))
	unlock()
	unlock, err = e.lock()
	g.Expect(err).NotTo(HaveOccurred())
	unlock()
}

func TestRemoveFiles(t *testing.T) {
	t.Run("When nothing is mounted, it should delete everything", func(t *testing.T) {
		g := NewWithT(t)
		e := sandbox(t)
		g.Expect(e.claim()).To(Succeed())
		g.Expect(os.MkdirAll(filepath.Join(e.Dir, "a", "b"), 0o755)).To(Succeed())
		g.Expect(e.removeFiles()).To(Succeed())
		g.Expect(e.Dir).NotTo(BeADirectory())
		g.Expect(e.removeFiles()).To(Succeed(), "a second time there is nothing to do")
	})
	t.Run("When something is mounted, it should be unmounted and its files should be kept", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("needs root to mount")
		}
		g := NewWithT(t)
		e := sandbox(t)
		g.Expect(e.claim()).To(Succeed())
		precious := t.TempDir()
		g.Expect(os.WriteFile(filepath.Join(precious, "file"), nil, 0o600)).To(Succeed())
		bindMount(t, precious, filepath.Join(e.Dir, "with blank", "mount"))
		g.Expect(mountsBelow(e.Dir)).To(Equal([]string{filepath.Join(e.Dir, "with blank", "mount")}))
		g.Expect(e.removeFiles()).To(Succeed())
		g.Expect(e.Dir).NotTo(BeADirectory())
		g.Expect(filepath.Join(precious, "file")).To(BeARegularFile())
	})
}

func TestBlame(t *testing.T) {
	write := func(g Gomega, e *Environment, content string) {
		g.Expect(os.MkdirAll(filepath.Dir(e.UnitLog("kubelet")), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(e.UnitLog("kubelet"), []byte(content), 0o600)).To(Succeed())
	}
	cause := errors.New("no node")

	t.Run("When the component has a log, the error should include its last lines", func(t *testing.T) {
		g := NewWithT(t)
		e := sandbox(t)
		write(g, e, strings.Repeat("old\n", 100)+"the reason\n")
		err := e.blame(cause, "kubelet", "no-such-unit")
		g.Expect(err).To(MatchError(cause))
		g.Expect(err.Error()).To(And(HaveSuffix("the reason"), ContainSubstring(e.UnitLog("kubelet"))))
		g.Expect(strings.Count(err.Error(), "old")).To(Equal(tailLines - 1))
	})
	t.Run("When the log is huge, it should read only the end", func(t *testing.T) {
		g := NewWithT(t)
		e := sandbox(t)
		write(g, e, strings.Repeat("x", 2*tailBytes))
		g.Expect(len(e.blame(cause, "kubelet").Error())).To(BeNumerically("<", tailBytes+1000))
	})
	t.Run("When there is no log, it should return the original error", func(t *testing.T) {
		NewWithT(t).Expect(sandbox(t).blame(cause, "kubelet")).To(Equal(cause))
	})
}

func TestUnescapeMount(t *testing.T) {
	NewWithT(t).Expect(unescapeMount(`/a\040b\134c`)).To(Equal(`/a b\c`))
}

func TestKubernetesVersion(t *testing.T) {
	for name, test := range map[string]struct{ says, want, err string }{
		"When the kubelet has a version, it should return that version":                      {says: "Kubernetes v1.36.3", want: "1.36.3"},
		"When the kubelet was built without a version, the error should say how to build it": {says: "nonsense", err: "make images"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := sandbox(t)
			kubelet := filepath.Join(e.Bin, "kube", "kubelet")
			g.Expect(os.Mkdir(filepath.Dir(kubelet), 0o755)).To(Succeed())
			g.Expect(os.WriteFile(kubelet, []byte("#!/bin/sh\necho '"+test.says+"'\n"), 0o700)).To(Succeed())
			version, err := e.KubernetesVersion(t.Context())
			if test.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(version).To(Equal(test.want))
		})
	}
}

func TestWhenNothingRuns(t *testing.T) {
	g := NewWithT(t)
	e := sandbox(t)
	g.Expect(e.Status(t.Context())).To(MatchError(ContainSubstring("start it with devcluster up")))
	g.Expect(e.StartMAAS(t.Context())).To(MatchError(ContainSubstring("start it with devcluster up")))
	g.Expect(e.StopMAAS(t.Context())).To(Succeed())
	g.Expect(e.Push(t.Context())).To(MatchError(ContainSubstring("start it with devcluster up")))
}
