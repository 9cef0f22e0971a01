// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// process is a pod of etcd: its container runs or has ended.
type process struct {
	client, peer, metrics string
	cmd                   *exec.Cmd
	ended                 chan struct{}
	// log is the log file of the container.
	log      string
	uid      string
	restarts int32
	// off keeps the pod from running, as on a node that is off.
	off bool
}

func (p *process) start(w *world, pod, dir string) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), pod+".yaml")
	w.must(os.WriteFile(file, []byte(w.config(pod, dir)), 0o600))
	p.log = file + ".log"
	out, err := os.Create(p.log)
	w.must(err)
	defer func() { w.must(out.Close()) }()
	p.cmd = exec.Command(filepath.Join(binaries(w.t), "etcd"), "--config-file="+file)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	w.must(p.cmd.Start())
	p.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
	}(p.cmd, p.ended)
}

// said returns the log of the container.
func (p *process) said() string {
	text, _ := os.ReadFile(p.log)
	return string(text)
}

// readiness returns the result of the component's readiness probe.
func (p *process) readiness() corev1.ConditionStatus {
	answer, err := (&http.Client{Timeout: time.Second}).Get("http://127.0.0.1:" + p.metrics + "/readyz")
	if err != nil {
		return corev1.ConditionFalse
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return corev1.ConditionFalse
	}
	return corev1.ConditionTrue
}

func (p *process) stop() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		<-p.ended
		p.cmd = nil
	}
}

func binaries(t *testing.T) string {
	t.Helper()
	if folder := os.Getenv("KUBEBUILDER_ASSETS"); folder != "" {
		return folder
	}
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "bin", "kube", "etcd")); err == nil {
			return filepath.Join(dir, "bin", "kube")
		}
	}
	t.Fatal("this test needs etcd: run `make kube-binaries`")
	return ""
}
