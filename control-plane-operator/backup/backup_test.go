// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	etcdsnapshot "go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/bundle"
	"github.com/openshift/hypershift/support/objectstore"
	"github.com/openshift/hypershift/support/objectstore/storetest"
	"github.com/openshift/hypershift/support/testenv"
)

const object = "clusters-demo/20261120T100000Z-mine.tar.gz.age"

// startEtcd runs an etcd on a data directory, and returns a client for it.
func startEtcd(t *testing.T, dir string) *clientv3.Client {
	t.Helper()
	clientURL, peerURL := "http://"+testenv.FreeAddress(t), "http://"+testenv.FreeAddress(t)
	cmd := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "etcd"), "--name=m", "--data-dir="+dir, "--log-level=error",
		"--listen-client-urls="+clientURL, "--advertise-client-urls="+clientURL, "--listen-peer-urls="+peerURL,
		"--initial-advertise-peer-urls="+peerURL, "--initial-cluster=m="+peerURL,
		"--unsafe-no-fsync") // On a busy disk, etcd rejects requests that take longer than a few seconds.
	if err := cmd.Start(); err != nil {
		t.Fatalf("this test needs etcd: run `make kube-binaries`: %v", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{clientURL}, DialTimeout: time.Minute, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	NewWithT(t).Eventually(func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := c.Get(ctx, "any")
		return err
	}, 2*time.Minute, 100*time.Millisecond).Should(Succeed(), "etcd has a leader in a moment")
	return c
}

// shared is an Etcd that ignores Close, so that several backups can use one client.
type shared struct{ Etcd }

func (shared) Close() error { return nil }

func taker(t *testing.T, c *clientv3.Client, storage Storage, recipient age.Recipient, reports *[]string) *Taker {
	t.Helper()
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	return &Taker{
		Dial: func(context.Context) (Etcd, error) { return shared{c}, nil }, Storage: storage, Name: object, Scratch: t.TempDir(),
		Contents: bundle.Contents{Header: bundle.Header{Name: "demo", InfraID: "demo-x"}, Secrets: []corev1.Secret{{
			ObjectMeta: metav1.ObjectMeta{Name: "root-ca"}, Data: map[string][]byte{"tls.Key": []byte("KEY")}}}},
		Recipients: []age.Recipient{recipient},
		Report:     func(_ context.Context, progress string) { *reports = append(*reports, progress) },
		Now:        func() time.Time { now = now.Add(time.Minute); return now },
	}
}

func TestABackupBringsTheClusterBack(t *testing.T) {
	c := startEtcd(t, t.TempDir())
	for i := range 200 {
		if _, err := c.Put(t.Context(), fmt.Sprintf("/registry/%d", i), strings.Repeat("x", 10<<10)); err != nil {
			t.Fatal(err)
		}
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	s3 := storetest.New(t)
	dir, authority := mountedSigner(t, "/demo")
	signs, err := signer(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, storage := range map[string]Storage{"a volume": folder{claim: "backups", root: t.TempDir()}, "S3": open(t, s3)} {
		t.Run(name, func(t *testing.T) {
			var reports []string
			scratch := taker(t, c, storage, key.Recipient(), &reports)
			scratch.Signer = signs
			result, err := scratch.Take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			file, err := storage.Get(t.Context(), object)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := io.ReadAll(file)
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(stored)
			if got := hex.EncodeToString(sum[:]); result.SHA256 != got || result.Size != int64(len(stored)) || !strings.HasSuffix(result.URL, object) {
				t.Errorf("the result is %+v of a file of %d bytes with checksum %s", result, len(stored), got)
			}
			contents, snapshot, err := bundle.Open(strings.NewReader(string(stored)), key)
			if err != nil {
				t.Fatal(err)
			}
			if contents.Header.Snapshot.Revision != 201 || contents.Header.Snapshot.Keys != 200 || contents.Header.Snapshot.EtcdVersion == "" || contents.Secret("root-ca") == nil {
				t.Errorf("the bundle says %+v", contents)
			}
			if err := contents.Verify(authority); err != nil {
				t.Errorf("the bundle does not show who made it: %v", err)
			}
			restored := restore(t, snapshot)
			got, err := restored.Get(t.Context(), "/registry/199")
			if err != nil || len(got.Kvs) != 1 {
				t.Errorf("the restored etcd has %v, %v", got, err)
			}
			if len(reports) == 0 || !strings.Contains(strings.Join(reports, "\n"), "Verification") {
				t.Errorf("nobody was told how far it is: %q", reports)
			}
			if left, _ := os.ReadDir(scratch.Scratch); len(left) > 0 {
				t.Errorf("the snapshot is left in clear: %v", left)
			}
		})
	}
	t.Run("When a stored backup cannot be read back, it should be deleted", func(t *testing.T) {
		s3.Rots = true
		defer func() { s3.Rots = false }()
		var reports []string
		_, err := taker(t, c, open(t, s3), key.Recipient(), &reports).Take(t.Context())
		if err == nil || !strings.Contains(err.Error(), "reading the backup back") || len(s3.Names()) > 0 {
			t.Errorf("got %v, and the store has %v", err, s3.Names())
		}
	})
	t.Run("When a backup fails, it should report the cause", func(t *testing.T) { failedBackups(t, c) })
}

func restore(t *testing.T, snapshot io.Reader) *clientv3.Client {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "snapshot.db")
	if err := save(path, snapshot, func(int64) {}); err != nil {
		t.Fatal(err)
	}
	err := etcdsnapshot.NewV3(zap.NewNop()).Restore(etcdsnapshot.RestoreConfig{
		SnapshotPath: path, Name: "m", OutputDataDir: filepath.Join(dir, "data"), PeerURLs: []string{"http://127.0.0.1:1"},
		InitialCluster: "m=http://127.0.0.1:1", InitialClusterToken: "t",
	})
	if err != nil {
		t.Fatal(err)
	}
	return startEtcd(t, filepath.Join(dir, "data"))
}

// open opens the storage as a pod does: with the files of a Secret.
func open(t *testing.T, s *storetest.Store) Storage {
	t.Helper()
	t.Setenv(objectstore.EnvAllowCIDRs, "127.0.0.0/8")
	storage, err := Open(hyperv1.HCPEtcdBackupStorage{StorageType: hyperv1.S3BackupStorage, S3: hyperv1.HCPEtcdBackupS3{
		Bucket: storetest.Bucket, Region: "eu-central-1", KeyPrefix: "demo/", Endpoint: s.URL, Credentials: hyperv1.SecretReference{Name: "s3"},
	}}, s.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	return storage
}

// TestWhatStorageRefusesIsSaid checks that a storage error is one sentence that tells the user what to do.
func TestWhatStorageRefusesIsSaid(t *testing.T) {
	for _, tc := range []struct {
		name  string
		wrong func(*storetest.Store)
		want  string
	}{
		{"the bucket does not exist", func(s *storetest.Store) { delete(s.Buckets, "backups") }, "does not exist: make it"},
		{"the credentials were rotated", func(s *storetest.Store) { s.Key = "ANOTHER" }, "refuses the credentials of Secret s3 (InvalidAccessKeyId)"},
		{"the bucket is full", func(s *storetest.Store) { s.Answer = "XMinioStorageFull" }, "is full (XMinioStorageFull)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := storetest.New(t)
			storage := open(t, s)
			tc.wrong(s)
			err := storage.Put(t.Context(), object, strings.NewReader("content"))
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	t.Run("invalid credentials", func(t *testing.T) {
		if _, err := newBucket(open(t, storetest.New(t)).(*bucket).spec, t.TempDir()); err == nil || !strings.Contains(err.Error(), "not an AWS credentials file") {
			t.Errorf("got %v", err)
		}
	})
}

func TestLeftoversAreSwept(t *testing.T) {
	s := storetest.New(t)
	storage := open(t, s)
	put := func(id, key string, age time.Duration) {
		s.Uploads[id] = &storetest.Upload{Key: key, Began: time.Now().Add(-age)}
	}
	put("own", "demo/"+object, 0)
	put("abandoned", "demo/clusters-demo/older", 3*Deadline)
	put("another's", "demo/clusters-demo/running", 0)
	put("of another cluster", "demo/clusters-other/x", 3*Deadline)
	if err := storage.Sweep(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for id := range s.Uploads {
		got[id] = true
	}
	if diff := cmp.Diff(map[string]bool{"another's": true, "of another cluster": true}, got); diff != "" {
		t.Error(diff)
	}

	volume := folder{claim: "c", root: t.TempDir()}
	dir := filepath.Join(volume.root, filepath.Dir(object))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.tar.gz.age", "b.tar.gz.age.partial"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := volume.Sweep(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 || left[0].Name() != "a.tar.gz.age" {
		t.Errorf("left is %v", left)
	}
}

// TestAStoreWithoutAListOfUploads checks that backups work with a store that cannot list multipart uploads.
func TestAStoreWithoutAListOfUploads(t *testing.T) {
	for name, status := range map[string]int{"there are no multipart uploads": http.StatusNotFound, "it does not keep them": http.StatusNotImplemented} {
		t.Run(name, func(t *testing.T) {
			s := storetest.New(t)
			s.Unlisted = status
			storage := open(t, s)
			if err := storage.Sweep(t.Context(), object); err != nil {
				t.Errorf("sweeping: %v", err)
			}
			if err := storage.Put(t.Context(), object, strings.NewReader("backup")); err != nil {
				t.Errorf("storing: %v", err)
			}
			if err := storage.Delete(t.Context(), object); err != nil || len(s.Names()) > 0 {
				t.Errorf("deleting: %v; left is %v", err, s.Names())
			}
		})
	}
}

// TestNoHalfObject checks that an upload that either side interrupts never becomes a stored backup.
func TestNoHalfObject(t *testing.T) {
	s := storetest.New(t)
	root := t.TempDir()
	for name, storage := range map[string]Storage{"S3": open(t, s), "a volume": folder{claim: "c", root: root}} {
		t.Run(name, func(t *testing.T) {
			r, w := io.Pipe()
			go func() {
				_, _ = w.Write(make([]byte, 1<<20))
				_ = w.CloseWithError(io.ErrUnexpectedEOF)
			}()
			if err := storage.Put(t.Context(), object, r); err == nil {
				t.Error("it was stored")
			}
			if _, err := storage.Get(t.Context(), object); err == nil {
				t.Error("there is something under its name")
			}
			if err := storage.Delete(t.Context(), object); err != nil {
				t.Errorf("what is not there cannot be deleted: %v", err)
			}
		})
	}
	if len(s.Uploads) > 0 {
		t.Errorf("uploads are left: %v", s.Uploads)
	}
}

func TestTasksAreReadAsTheyWereWritten(t *testing.T) {
	task := Task{Namespace: "n", Backup: "b", Object: object, Recipients: []string{"age1"}}
	file, err := task.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadTask(file)
	if diff := cmp.Diff(task, got, cmpopts.IgnoreUnexported(bundle.Contents{})); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if _, err := ReadTask([]byte("x")); err == nil {
		t.Error("rubbish is a task")
	}
}
