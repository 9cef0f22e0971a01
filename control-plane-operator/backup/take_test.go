// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/testenv"
)

var errBroken = errors.New("the connection broke")

// canned is an etcd that sends fixed content and ends with a fixed error.
type canned struct {
	content []byte
	end     error
	refuses error
	closed  bool
}

func (c *canned) SnapshotWithVersion(context.Context) (*clientv3.SnapshotResponse, error) {
	if c.refuses != nil {
		return nil, c.refuses
	}
	return &clientv3.SnapshotResponse{Version: "3.6.10", Snapshot: io.NopCloser(io.MultiReader(bytes.NewReader(c.content), endsWith{c.end}))}, nil
}

func (c *canned) Close() error {
	c.closed = true
	return nil
}

type endsWith struct{ err error }

func (e endsWith) Read([]byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	return 0, io.EOF
}

// shelf is a storage that may fail, and records its calls.
type shelf struct {
	folder
	sweeps, puts, gets, deletes error
	// instead replaces the content that Get returns.
	instead func([]byte) []byte
	asked   []string
}

func (s *shelf) Sweep(ctx context.Context, name string) error {
	s.asked = append(s.asked, "sweep")
	return errors.Join(s.sweeps, s.folder.Sweep(ctx, name))
}

func (s *shelf) Put(ctx context.Context, name string, content io.Reader) error {
	s.asked = append(s.asked, "put")
	if s.puts != nil {
		_, _ = content.Read(make([]byte, 10))
		return s.puts
	}
	return s.folder.Put(ctx, name, content)
}

func (s *shelf) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	s.asked = append(s.asked, "get")
	if s.gets != nil {
		return nil, s.gets
	}
	file, err := s.folder.Get(ctx, name)
	if err != nil || s.instead == nil {
		return file, err
	}
	content, err := io.ReadAll(file)
	return io.NopCloser(bytes.NewReader(s.instead(content))), errors.Join(err, file.Close())
}

func (s *shelf) Delete(ctx context.Context, name string) error {
	s.asked = append(s.asked, "delete")
	return errors.Join(s.deletes, s.folder.Delete(ctx, name))
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	return &shelf{folder: folder{claim: "backups", root: t.TempDir()}}
}

// takes takes a backup of an etcd.
func takes(t *testing.T, etcd Etcd, storage Storage, edit ...func(*Taker)) (Result, error) {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	var reports []string
	taker := taker(t, nil, storage, key.Recipient(), &reports)
	taker.Dial = func(context.Context) (Etcd, error) { return etcd, nil }
	for _, change := range edit {
		change(taker)
	}
	result, err := taker.Take(t.Context())
	if left, _ := os.ReadDir(taker.Scratch); len(left) > 0 {
		t.Errorf("the snapshot is left in clear: %v", left)
	}
	return result, err
}

// checked appends its checksum to the content, as etcd does.
func checked(content string) []byte {
	sum := sha256.Sum256([]byte(content))
	return append([]byte(content), sum[:]...)
}

// TestSnapshotsThatAreNone checks that an incomplete snapshot is never stored.
func TestSnapshotsThatAreNone(t *testing.T) {
	for name, tc := range map[string]struct {
		etcd *canned
		want string
	}{
		"refuses":                    {&canned{refuses: errBroken}, "asking etcd for a snapshot: the connection broke"},
		"fails during the snapshot":  {&canned{content: []byte("half"), end: errBroken}, "reading the snapshot from etcd: the connection broke"},
		"sends nothing":              {&canned{}, "the snapshot is cut off"},
		"sends less than a checksum": {&canned{content: []byte("short")}, "the snapshot is cut off"},
		"ends early":                 {&canned{content: checked(strings.Repeat("x", 100))[:120]}, "the snapshot is cut off: it does not end with its checksum"},
		"sends data of another kind": {&canned{content: checked(strings.Repeat("x", 10000))}, "the snapshot is damaged"},
	} {
		t.Run("When etcd "+name+" it should return an error and store nothing", func(t *testing.T) {
			g, s := NewWithT(t), newShelf(t)
			_, err := takes(t, tc.etcd, s)
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			g.Expect(s.asked).To(Equal([]string{"sweep"}))
			g.Expect(tc.etcd.closed).To(BeTrue(), "each attempt would keep a connection")
		})
	}
	t.Run("When etcd is unreachable, it should return the error", func(t *testing.T) {
		g, s := NewWithT(t), newShelf(t)
		_, err := takes(t, nil, s, func(taker *Taker) { taker.Dial = func(context.Context) (Etcd, error) { return nil, errBroken } })
		g.Expect(err).To(MatchError(errBroken))
		g.Expect(s.asked).To(Equal([]string{"sweep"}))
	})
	t.Run("When the storage is unreachable, it should not request a snapshot", func(t *testing.T) {
		g, s := NewWithT(t), newShelf(t)
		s.sweeps = errBroken
		_, err := takes(t, nil, s, func(taker *Taker) {
			taker.Dial = func(context.Context) (Etcd, error) {
				t.Error("it is asked")
				return nil, errBroken
			}
		})
		g.Expect(err).To(MatchError(errBroken))
	})
	t.Run("When the node has no space left, it should name the node and the space that the snapshot needs", func(t *testing.T) {
		_, err := takes(t, &canned{content: checked("x")}, newShelf(t), func(taker *Taker) { fullDisk(t, filepath.Join(taker.Scratch, "snapshot.db")) })
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("the management cluster's node has no room for the snapshot")))
	})
}

// failedBackups runs backups of a healthy etcd that fail.
func failedBackups(t *testing.T, c *clientv3.Client) {
	t.Helper()
	good := &canned{content: snapshot(t, c)}
	if _, err := c.Put(t.Context(), "later", "1"); err != nil {
		t.Fatal(err)
	}
	t.Run("When the storage fails, it should return the error at once and read nothing back", func(t *testing.T) {
		g, s := NewWithT(t), newShelf(t)
		s.puts = errBroken
		_, err := takes(t, good, s)
		g.Expect(err).To(MatchError("storing the backup: the connection broke"))
		g.Expect(s.asked).To(Equal([]string{"sweep", "put"}))
	})
	other := newShelf(t)
	if _, err := takes(t, &canned{content: snapshot(t, c)}, other); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		edit func(*shelf)
		want string
	}{
		"cannot be read":     {func(s *shelf) { s.gets = errBroken }, "reading the backup back: the connection broke"},
		"is truncated":       {func(s *shelf) { s.instead = func(b []byte) []byte { return b[:len(b)/2] } }, "reading the backup back: "},
		"is of another etcd": {func(s *shelf) { s.instead = func([]byte) []byte { return []byte(stored(t, other)) } }, "reading the backup back: "},
		"is empty":           {func(s *shelf) { s.instead = func([]byte) []byte { return nil } }, "reading the backup back: "},
		"has one wrong byte": {func(s *shelf) { s.instead = func(b []byte) []byte { b[len(b)-20] ^= 1; return b } }, "reading the backup back: "},
	} {
		t.Run("When the stored backup "+name+", it should return an error and delete the backup", func(t *testing.T) {
			g, s := NewWithT(t), newShelf(t)
			tc.edit(s)
			_, err := takes(t, good, s)
			g.Expect(err).To(MatchError(HavePrefix(tc.want)))
			g.Expect(s.asked).To(Equal([]string{"sweep", "put", "get", "delete"}))
			g.Expect(filepath.Join(s.root, object)).NotTo(BeAnExistingFile())
		})
	}
	t.Run("When the bad backup cannot be deleted either, it should return both errors", func(t *testing.T) {
		s := newShelf(t)
		s.gets, s.deletes = errBroken, fs.ErrPermission
		_, err := takes(t, good, s)
		g := NewWithT(t)
		g.Expect(err).To(MatchError(errBroken))
		g.Expect(err).To(MatchError(fs.ErrPermission))
	})
	t.Run("When a task is done, it should record the stored backup in the status", func(t *testing.T) { doneTasks(t, good) })
}

func snapshot(t *testing.T, c *clientv3.Client) []byte {
	t.Helper()
	reader, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	content, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// asked returns a management cluster with a requested backup. refuses is called for each status write.
func asked(refuses func(*hyperv1.HCPEtcdBackup) error) (client.Client, *hyperv1.HCPEtcdBackup) {
	scheme := runtime.NewScheme()
	utilruntime.Must(hyperv1.AddToScheme(scheme))
	b := &hyperv1.HCPEtcdBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "mine"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(b).WithStatusSubresource(b).Build()
	return testenv.Intercept(c, func(r testenv.Request) error {
		if r.Verb == "patch status" {
			if err := refuses(r.Of.(*hyperv1.HCPEtcdBackup)); err != nil {
				return err
			}
		}
		return r.Do()
	}), b
}

func task(t *testing.T) Task {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return Task{Namespace: "clusters-demo", Backup: "mine", Object: object, Recipients: []string{key.Recipient().String()}}
}

func doneTasks(t *testing.T, good *canned) {
	t.Helper()
	dial := func(ctx context.Context) (Etcd, error) { return good, ctx.Err() }
	t.Run("with the progress while it runs", func(t *testing.T) {
		g, s := NewWithT(t), newShelf(t)
		var said []string
		c, b := asked(func(b *hyperv1.HCPEtcdBackup) error {
			said = append(said, b.Status.Progress)
			return nil
		})
		g.Expect(Do(t.Context(), c, task(t), s, dial, t.TempDir())).To(Succeed())
		g.Expect(said[0]).To(HavePrefix("Snapshot: "))
		g.Expect(said[len(said)-1]).To(BeEmpty(), "it is over")
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(b), b)).To(Succeed())
		content := stored(t, s)
		g.Expect(b.Status.SnapshotURL).To(Equal("pvc://backups/" + object))
		g.Expect(b.Status.Size).To(Equal(int64(len(content))))
		g.Expect(b.Status.SHA256).To(HaveLen(64))
		g.Expect(b.Status.EtcdVersion).To(Equal("3.6.10"))
		g.Expect(b.Status.Revision).To(BeNumerically(">", 0))
		g.Expect(b.Status.CompletionTime).NotTo(BeNil())
	})
	t.Run("also if the progress cannot be written", func(t *testing.T) {
		g := NewWithT(t)
		c, b := asked(func(b *hyperv1.HCPEtcdBackup) error {
			if b.Status.Progress != "" {
				return errBroken
			}
			return nil
		})
		g.Expect(Do(t.Context(), c, task(t), newShelf(t), dial, t.TempDir())).To(Succeed())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(b), b)).To(Succeed())
		g.Expect(b.Status.SHA256).NotTo(BeEmpty())
	})
	t.Run("or return an error if the status cannot be written", func(t *testing.T) {
		c, _ := asked(func(*hyperv1.HCPEtcdBackup) error { return errBroken })
		NewWithT(t).Expect(Do(t.Context(), c, task(t), newShelf(t), dial, t.TempDir())).To(MatchError(errBroken))
	})
}

func TestTasks(t *testing.T) {
	never := func(context.Context) (Etcd, error) { return nil, errBroken }
	t.Run("When a task deletes a backup, it should need only the storage", func(t *testing.T) {
		g, s := NewWithT(t), newShelf(t)
		g.Expect(s.Put(t.Context(), object, strings.NewReader("x"))).To(Succeed())
		g.Expect(Do(t.Context(), nil, Task{Object: object, Delete: true}, s, never, "")).To(Succeed())
		g.Expect(s.asked).To(Equal([]string{"put", "delete"}))
		s.deletes = errBroken
		g.Expect(Do(t.Context(), nil, Task{Object: object, Delete: true}, s, never, "")).To(MatchError(errBroken), "or its Job would count as done")
	})
	t.Run("When a task has no public key, it should store nothing", func(t *testing.T) {
		g, s := NewWithT(t), newShelf(t)
		c, _ := asked(func(*hyperv1.HCPEtcdBackup) error { return nil })
		for _, recipients := range [][]string{nil, {""}, {"AGE-SECRET-KEY-1"}} {
			wrong := task(t)
			wrong.Recipients = recipients
			g.Expect(Do(t.Context(), c, wrong, s, never, t.TempDir())).To(MatchError("the task has no public keys"))
		}
		g.Expect(s.asked).To(BeEmpty())
	})
	t.Run("When the HCPEtcdBackup is deleted, it should take no backup", func(t *testing.T) {
		g, s := NewWithT(t), newShelf(t)
		c, b := asked(func(*hyperv1.HCPEtcdBackup) error { return nil })
		g.Expect(c.Delete(t.Context(), b)).To(Succeed())
		g.Expect(Do(t.Context(), c, task(t), s, never, t.TempDir())).To(MatchError(ContainSubstring("reading HCPEtcdBackup clusters-demo/mine")))
		g.Expect(s.asked).To(BeEmpty())
	})
	t.Run("When a backup fails, it should not set the status", func(t *testing.T) {
		g := NewWithT(t)
		c, b := asked(func(*hyperv1.HCPEtcdBackup) error { return nil })
		g.Expect(Do(t.Context(), c, task(t), newShelf(t), never, t.TempDir())).To(MatchError(errBroken))
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(b), b)).To(Succeed())
		g.Expect(b.Status).To(BeZero())
	})
	t.Run("When the Pod has no task or an invalid one, it should return an error", func(t *testing.T) {
		g, dir := NewWithT(t), t.TempDir()
		g.Expect(run(t.Context(), dir)).To(MatchError(fs.ErrNotExist))
		g.Expect(os.Mkdir(filepath.Join(dir, TaskDir), 0o700)).To(Succeed())
		write := func(content []byte) {
			g.Expect(os.WriteFile(filepath.Join(dir, TaskDir, TaskFile), content, 0o600)).To(Succeed())
		}
		write([]byte("rubbish"))
		g.Expect(run(t.Context(), dir)).To(MatchError(ContainSubstring("reading the task")))
		var file bytes.Buffer
		compressed := gzip.NewWriter(&file)
		_, err := compressed.Write([]byte("[]"))
		g.Expect(errors.Join(err, compressed.Close())).To(Succeed())
		write(file.Bytes())
		g.Expect(run(t.Context(), dir)).To(MatchError(ContainSubstring("cannot unmarshal")))
	})
	t.Run("When the etcd client certificate is missing, it should name each file", func(t *testing.T) {
		g, dir := NewWithT(t), t.TempDir()
		_, err := dial(dir, "https://etcd-client:2379")
		g.Expect(err).To(MatchError(And(ContainSubstring("etcd-client.crt"), ContainSubstring("etcd-client.key"), ContainSubstring("ca.crt"))))
		for _, file := range []string{"etcd/etcd-client.crt", "etcd/etcd-client.key", "etcd-ca/ca.crt"} {
			g.Expect(os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o700)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(dir, file), []byte("none"), 0o600)).To(Succeed())
		}
		_, err = dial(dir, "https://etcd-client:2379")
		g.Expect(err).To(MatchError(ContainSubstring("reading what to call etcd with")))
	})
}

func TestPace(t *testing.T) {
	now := time.Unix(1000, 0)
	var said []string
	taker := &Taker{Now: func() time.Time { return now }, Report: func(_ context.Context, progress string) { said = append(said, progress) }}
	read := func(n int) {
		copied := &counted{r: strings.NewReader(strings.Repeat("x", n)), tell: func(n int64) { taker.tell(t.Context(), "%d read", n) }}
		if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{copied}, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	g := NewWithT(t)
	read(100)
	g.Expect(said).To(Equal([]string{"1 read"}), "each report is a write of the management cluster's API")
	now = now.Add(4999 * time.Millisecond)
	read(3)
	g.Expect(said).To(HaveLen(1))
	now = now.Add(time.Millisecond)
	read(3)
	g.Expect(said).To(Equal([]string{"1 read", "1 read"}))
}
