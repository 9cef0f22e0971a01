// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/objectstore/storetest"
)

// fullDisk makes writes to a file fail as on a full disk.
func fullDisk(t *testing.T, path string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink("/dev/full", path)); err != nil {
		t.Fatal(err)
	}
}

func stored(t *testing.T, s Storage) string {
	t.Helper()
	file, err := s.Get(t.Context(), object)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestVolume(t *testing.T) {
	volume := func(t *testing.T) (folder, string) {
		t.Helper()
		f := folder{claim: "backups", root: t.TempDir()}
		return f, filepath.Join(f.root, object)
	}
	t.Run("When a backup is stored again, it should replace the previous one and be readable only by its owner", func(t *testing.T) {
		g := NewWithT(t)
		f, path := volume(t)
		for _, content := range []string{"a long attempt of before", "new"} {
			g.Expect(f.Put(t.Context(), object, strings.NewReader(content))).To(Succeed())
			g.Expect(stored(t, f)).To(Equal(content))
		}
		info, err := os.Stat(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()&0o077).To(BeZero(), "the volume may be mounted by others")
		entries, err := os.ReadDir(filepath.Dir(path))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entries).To(HaveLen(1))
	})
	t.Run("When the volume is full, it should say so, remove the partial file, and keep the existing backup", func(t *testing.T) {
		g := NewWithT(t)
		f, path := volume(t)
		g.Expect(f.Put(t.Context(), object, strings.NewReader("before"))).To(Succeed())
		fullDisk(t, path+partial)
		g.Expect(f.Put(t.Context(), object, strings.NewReader("new"))).To(MatchError(
			"the volume of PersistentVolumeClaim backups is full: make room on it, or a larger one"))
		g.Expect(stored(t, f)).To(Equal("before"))
		_, err := os.Lstat(path + partial)
		g.Expect(err).To(MatchError(fs.ErrNotExist))
	})
	t.Run("When a file exists in place of the folder, it should name the claim", func(t *testing.T) {
		g := NewWithT(t)
		f, path := volume(t)
		g.Expect(os.WriteFile(filepath.Dir(path), nil, 0o600)).To(Succeed())
		g.Expect(f.Put(t.Context(), object, strings.NewReader("x"))).To(MatchError(HavePrefix("PersistentVolumeClaim backups: ")))
	})
	t.Run("When a folder exists in place of the file, it should neither store nor delete anything", func(t *testing.T) {
		g := NewWithT(t)
		f, path := volume(t)
		g.Expect(os.MkdirAll(filepath.Join(path, "kept"), 0o700)).To(Succeed())
		g.Expect(f.Put(t.Context(), object, strings.NewReader("x"))).To(MatchError(HavePrefix("PersistentVolumeClaim backups: ")))
		g.Expect(f.Delete(t.Context(), object)).To(MatchError(HavePrefix("PersistentVolumeClaim backups: ")))
		g.Expect(filepath.Join(path, "kept")).To(BeADirectory())
	})
	t.Run("When a backup is deleted, its partial files should be deleted too", func(t *testing.T) {
		g := NewWithT(t)
		f, path := volume(t)
		g.Expect(f.Put(t.Context(), object, strings.NewReader("x"))).To(Succeed())
		g.Expect(os.WriteFile(path+partial, nil, 0o600)).To(Succeed())
		g.Expect(os.WriteFile(path+".other", nil, 0o600)).To(Succeed())
		g.Expect(f.Delete(t.Context(), object)).To(Succeed())
		left, err := os.ReadDir(filepath.Dir(path))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(left).To(HaveLen(1))
		g.Expect(left[0].Name()).To(HaveSuffix(".other"))
	})
	t.Run("When nothing is stored yet, a sweep should succeed and a read should report a missing file", func(t *testing.T) {
		g := NewWithT(t)
		f, _ := volume(t)
		g.Expect(f.Sweep(t.Context(), object)).To(Succeed())
		_, err := f.Get(t.Context(), object)
		g.Expect(err).To(MatchError(fs.ErrNotExist))
		g.Expect(err).To(MatchError(HavePrefix("PersistentVolumeClaim backups: ")))
	})
	t.Run("When another cluster uses the same volume, a sweep should keep its partial files", func(t *testing.T) {
		g := NewWithT(t)
		f, path := volume(t)
		other := filepath.Join(f.root, "clusters-other", "running"+partial)
		g.Expect(errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.MkdirAll(filepath.Dir(other), 0o700), os.WriteFile(other, nil, 0o600))).To(Succeed())
		g.Expect(f.Sweep(t.Context(), object)).To(Succeed())
		g.Expect(other).To(BeARegularFile())
	})
	for _, fault := range []error{syscall.EACCES, syscall.EROFS} {
		t.Run(fmt.Sprintf("When the volume says %v, it should be said that it cannot be written", fault), func(t *testing.T) {
			g, err := NewWithT(t), folder{claim: "backups"}.explain(&fs.PathError{Op: "open", Path: "x", Err: fault})
			g.Expect(err).To(MatchError(fault))
			g.Expect(err).To(MatchError(HavePrefix("the volume of PersistentVolumeClaim backups cannot be written: ")))
		})
	}
}

func TestOpen(t *testing.T) {
	g := NewWithT(t)
	volume, err := Open(hyperv1.HCPEtcdBackupStorage{StorageType: hyperv1.PVCBackupStorage, PVC: hyperv1.HCPEtcdBackupPVC{ClaimName: "backups"}}, t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(volume.URL("a/b")).To(Equal("pvc://backups/a/b"))
	for _, wrong := range []hyperv1.HCPEtcdBackupStorageType{hyperv1.AzureBlobBackupStorage, ""} {
		_, err := Open(hyperv1.HCPEtcdBackupStorage{StorageType: wrong}, t.TempDir())
		g.Expect(err).To(MatchError(ContainSubstring("is not supported: use S3 or PVC")))
	}
}

func TestNamesInABucket(t *testing.T) {
	for prefix, want := range map[string]string{"": object, "demo": "demo/" + object, "/demo/": "demo/" + object, "a/b/": "a/b/" + object, "/": object} {
		t.Run("When the prefix is "+prefix+" it should be separated from the name by one slash", func(t *testing.T) {
			g, s := NewWithT(t), storetest.New(t)
			b := open(t, s).(*bucket)
			b.spec.KeyPrefix = prefix
			g.Expect(b.Put(t.Context(), object, strings.NewReader("x"))).To(Succeed())
			g.Expect(s.Names()).To(Equal([]string{want}))
			g.Expect(b.URL(object)).To(Equal("s3://backups/" + want))
			g.Expect(stored(t, b)).To(Equal("x"))
		})
	}
}

func TestTheKeyOfABucket(t *testing.T) {
	const header = "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"
	for _, key := range []string{"", "arn:aws:kms:eu-central-1:1:key/2"} {
		t.Run("When the key for the bucket is "+key+" it should request this key and no other", func(t *testing.T) {
			s := storetest.New(t)
			asked := map[string]bool{}
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut || r.Method == http.MethodPost && r.URL.Query().Has("uploads") {
					asked[r.Header.Get(header)] = true
				}
				s.ServeHTTP(w, r)
			})
			b := open(t, s).(*bucket)
			b.spec.KMSKeyARN = key
			g := NewWithT(t)
			g.Expect(b.Put(t.Context(), object, strings.NewReader("x"))).To(Succeed())
			g.Expect(asked).To(HaveKey(key))
			if key == "" {
				g.Expect(asked).To(HaveLen(1))
			}
		})
	}
}

func TestABucketThatRefuses(t *testing.T) {
	gone := func(s *storetest.Store) { delete(s.Buckets, storetest.Bucket) }
	locked := func(s *storetest.Store) { s.Key = "ANOTHER" }
	asks := map[string]func(*testing.T, Storage) error{
		"store":  func(t *testing.T, s Storage) error { return s.Put(t.Context(), object, strings.NewReader("x")) },
		"delete": func(t *testing.T, s Storage) error { return s.Delete(t.Context(), object) },
		"sweep":  func(t *testing.T, s Storage) error { return s.Sweep(t.Context(), object) },
		"read": func(t *testing.T, s Storage) error {
			_, err := s.Get(t.Context(), object)
			return err
		},
	}
	for _, tc := range []struct {
		name, ask string
		wrong     func(*storetest.Store)
		want      string
	}{
		{"the bucket denies access", "store", locked, "refuses the credentials of Secret s3"},
		{"the bucket denies access", "read", locked, "refuses the credentials of Secret s3"},
		{"the bucket denies access", "delete", locked, "refuses the credentials of Secret s3"},
		{"the bucket denies access", "sweep", locked, "refuses the credentials of Secret s3"},
		{"the bucket does not exist", "sweep", gone, "does not exist: make it, or name another one"},
		{"the bucket does not exist", "delete", gone, ""},
		{"the object does not exist", "read", func(*storetest.Store) {}, "no longer has this object"},
		{"its quota is used up", "store", func(s *storetest.Store) { s.Answer = "QuotaExceeded" }, "is full (QuotaExceeded): make room in it, or raise its quota"},
	} {
		t.Run("When "+tc.name+" on an attempt to "+tc.ask+", it should name the bucket and the remedy", func(t *testing.T) {
			s := storetest.New(t)
			storage := open(t, s)
			tc.wrong(s)
			g, err := NewWithT(t), asks[tc.ask](t, storage)
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(And(HavePrefix("bucket backups of "+s.URL), ContainSubstring(tc.want), Not(ContainSubstring("hunter2")))))
		})
	}
	t.Run("When no endpoint is set, the error should name no endpoint", func(t *testing.T) {
		b := &bucket{spec: hyperv1.HCPEtcdBackupS3{Bucket: "mine"}}
		g := NewWithT(t)
		g.Expect(b.explain(io.ErrClosedPipe)).To(MatchError("bucket mine: " + io.ErrClosedPipe.Error()))
		g.Expect(b.explain(nil)).To(Succeed())
	})
}
