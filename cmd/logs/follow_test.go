// SPDX-License-Identifier: Apache-2.0

package logs_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/cmd/root"
)

// buffer is a bytes.Buffer that can be read during a write.
type buffer struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.text.String()
}

// TestFollow follows over pods that are replaced: one by a pod of another name, as a Deployment does, one by a pod of
// the same name, as a StatefulSet does. A component may have no pods for a while.
func TestFollow(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	labels := map[string]string{"app": "controller"}
	started := func(name, id string) *corev1.Pod {
		p := pod(name, labels, "main")
		p.Status.ContainerStatuses[0].ContainerID = id
		return p
	}
	first, second := started("web-a", "containerd://1"), started("db-0", "containerd://2")
	s := kubetest.Start(t, append(kubetest.Fleet(), first, second)...)
	s.SetLog("clusters-demo/web-a/main", "first line\nlast of the first pod\n")
	s.SetLog("clusters-demo/db-0/main", "before\n")

	var out, said buffer
	following, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan int, 1)
	go func() {
		cmd := root.HCP()
		cmd.SetOut(&out)
		cmd.SetErr(&said)
		cmd.SetArgs([]string{"logs", "demo", "controller", "-f", "--tail", "1", "--kubeconfig", s.Kubeconfig})
		ended <- root.Run(following, cmd, &said)
	}()
	const patience = 2 * time.Minute
	g.Eventually(out.String, patience).Should(And(ContainSubstring("[web-a/main] last of the first pod\n"),
		ContainSubstring("[db-0/main] before\n")))

	g.Expect(s.Client.Delete(ctx, first)).To(Succeed())
	g.Expect(s.Client.Delete(ctx, second)).To(Succeed())
	g.Eventually(said.String, patience).Should(ContainSubstring("Warning: namespace clusters-demo has no pods"))
	s.SetLog("clusters-demo/web-b/main", "first of the next pod\nlast line\n")
	s.SetLog("clusters-demo/db-0/main", "after\n")
	g.Expect(s.Client.Create(ctx, started("web-b", "containerd://3"))).To(Succeed())
	g.Expect(s.Client.Create(ctx, started("db-0", "containerd://4"))).To(Succeed())
	g.Eventually(out.String, patience).Should(And(
		ContainSubstring("[web-b/main] first of the next pod\n[web-b/main] last line\n"),
		ContainSubstring("[db-0/main] after\n")))

	stop()
	g.Eventually(ended, patience).Should(Receive(Equal(0)), "an interruption is the usual end")
	g.Expect(bytes.Count([]byte(out.String()), []byte("\n"))).To(Equal(5), "no line is printed twice: %s", out.String())
}
