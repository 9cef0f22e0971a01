// SPDX-License-Identifier: Apache-2.0

package etcdrestore

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/openshift/hypershift/support/testenv"
)

// member runs a real etcd on a data directory, as a cluster of one, and returns a client for it.
func member(t *testing.T, dataDir string) *clientv3.Client {
	t.Helper()
	client, peer := "http://"+testenv.FreeAddress(t), "http://"+testenv.FreeAddress(t)
	output := &bytes.Buffer{}
	cmd := exec.CommandContext(t.Context(), filepath.Join(binaries(t), "etcd"), "--name", "etcd-0", "--data-dir", dataDir, "--listen-client-urls", client,
		"--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "etcd-0="+peer,
		"--unsafe-no-fsync") // On a busy disk, etcd rejects requests that take longer than a few seconds.
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(output)
		}
	})
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{client}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	NewWithT(t).Eventually(func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := c.Get(ctx, "any")
		return err
	}, "2m", "100ms").Should(Succeed())
	return c
}

func binaries(t *testing.T) string {
	t.Helper()
	if folder := os.Getenv("KUBEBUILDER_ASSETS"); folder != "" {
		return folder
	}
	folder, err := filepath.Abs("../../bin/kube")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// taken returns a snapshot of an etcd in which the key hello has the value world, and its revision.
func taken(t *testing.T) ([]byte, int64) {
	t.Helper()
	g, c := NewWithT(t), member(t, t.TempDir())
	put, err := c.Put(t.Context(), "hello", "world")
	g.Expect(err).NotTo(HaveOccurred())
	stream, err := c.Snapshot(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	text, err := io.ReadAll(stream)
	g.Expect(err).NotTo(HaveOccurred())
	return text, put.Header.Revision
}

// bump is the current value of `hypershift restore cluster`.
const bump = 17_000_000_000_000

func only(dir string) Member {
	return Member{Namespace: "clusters-demo", Name: "etcd-0", Members: []string{"etcd-0"}, DataDir: dir, RevisionBump: bump}
}

func TestRestore(t *testing.T) {
	snapshot, revision := taken(t)
	t.Run("When a member is restored, etcd should start with the data at a higher, compacted revision", func(t *testing.T) {
		g, dir := NewWithT(t), t.TempDir()
		g.Expect(only(dir).Restore(bytes.NewReader(snapshot))).To(Succeed())
		g.Expect(filepath.Join(dir, workFolder)).NotTo(BeADirectory())
		c := member(t, dir)
		got, err := c.Get(t.Context(), "hello")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(got.Kvs[0].Value)).To(Equal("world"))
		g.Expect(got.Header.Revision).To(BeNumerically(">=", revision+bump))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for response := range c.Watch(ctx, "hello", clientv3.WithRev(revision)) {
			g.Expect(response.Err()).To(MatchError(ContainSubstring("compacted")), "a watch from before starts anew")
			break
		}
		list, err := c.MemberList(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list.Members[0].PeerURLs).To(Equal([]string{"https://etcd-0.etcd-discovery.clusters-demo.svc:2380"}))
	})
	t.Run("When three members are restored, each should know the same members", func(t *testing.T) {
		g := NewWithT(t)
		members := []string{"etcd-0", "etcd-1", "etcd-2"}
		var urls []string
		for _, name := range members {
			m := Member{Namespace: "clusters-demo", Name: name, Members: members, DataDir: t.TempDir(), RevisionBump: bump}
			urls = append(urls, m.config("a", "b").InitialCluster)
			g.Expect(m.Restore(bytes.NewReader(snapshot))).To(Succeed())
			g.Expect(filepath.Join(m.DataDir, memberFolder, "snap", "db")).To(BeARegularFile())
		}
		g.Expect(urls[0]).To(Equal("etcd-0=https://etcd-0.etcd-discovery.clusters-demo.svc:2380,etcd-1=https://etcd-1.etcd-discovery.clusters-demo.svc:2380," +
			"etcd-2=https://etcd-2.etcd-discovery.clusters-demo.svc:2380"))
		g.Expect(urls[1:]).To(Equal([]string{urls[0], urls[0]}))
	})
	t.Run("When the volume already has data, it should leave the data and return an error", func(t *testing.T) {
		g, dir := NewWithT(t), t.TempDir()
		g.Expect(only(dir).Restore(bytes.NewReader(snapshot))).To(Succeed())
		g.Expect(only(dir).Restore(bytes.NewReader(snapshot))).To(MatchError(ContainSubstring("has data already")))
	})
	t.Run("When the snapshot is truncated, it should leave the volume empty so that a retry succeeds", func(t *testing.T) {
		g, dir := NewWithT(t), t.TempDir()
		g.Expect(only(dir).Restore(bytes.NewReader(snapshot[:len(snapshot)/2]))).NotTo(Succeed())
		g.Expect(filepath.Join(dir, memberFolder)).NotTo(BeADirectory())
		g.Expect(only(dir).Restore(strings.NewReader(""))).NotTo(Succeed())
		g.Expect(only(dir).Restore(bytes.NewReader(snapshot))).To(Succeed())
	})
}
