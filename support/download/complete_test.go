// SPDX-License-Identifier: Apache-2.0

package download

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

func writes(text string, err error) func(io.Writer) error {
	return func(w io.Writer) error {
		_, failed := io.WriteString(w, text)
		return errors.Join(failed, err)
	}
}

func textOf(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestComplete checks that a file exists only if it is complete, also after a power failure or when the disk was full.
func TestComplete(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "file", Err: syscall.ENOSPC}
	t.Run("When the disk is full, it should keep the previous file and leave no partial one", func(t *testing.T) {
		g, target := NewWithT(t), filepath.Join(t.TempDir(), "file")
		g.Expect(Complete(target, private, writes("old", nil))).To(Succeed())
		g.Expect(Complete(target, private, writes("half of the n", full))).To(MatchError(syscall.ENOSPC))
		g.Expect(textOf(t, target)).To(Equal("old"))
		g.Expect(os.ReadDir(filepath.Dir(target))).To(HaveLen(1))
	})
	t.Run("When writing to a full device, it should return an error", func(t *testing.T) {
		if _, err := os.Stat("/dev/full"); err != nil {
			t.Skip("this machine has no /dev/full")
		}
		target := filepath.Join(t.TempDir(), "file")
		if err := os.Symlink("/dev/full", target+partial); err != nil {
			t.Fatal(err)
		}
		g := NewWithT(t)
		g.Expect(Complete(target, private, writes(content, nil))).To(MatchError(syscall.ENOSPC))
		g.Expect(target).NotTo(BeAnExistingFile())
	})
	t.Run("When a partial file was left behind, it should overwrite it", func(t *testing.T) {
		g, target := NewWithT(t), filepath.Join(t.TempDir(), "file")
		g.Expect(os.WriteFile(target+partial, []byte("a longer part that was left"), 0o600)).To(Succeed())
		g.Expect(Complete(target, private, writes(content, nil))).To(Succeed())
		g.Expect(textOf(t, target)).To(Equal(content))
		g.Expect(os.ReadDir(filepath.Dir(target))).To(HaveLen(1))
	})
	t.Run("When the file is being written, it should not exist under its final name", func(t *testing.T) {
		g, target := NewWithT(t), filepath.Join(t.TempDir(), "file")
		g.Expect(Complete(target, private, func(w io.Writer) error {
			g.Expect(target).NotTo(BeAnExistingFile())
			return writes(content, nil)(w)
		})).To(Succeed())
		g.Expect(textOf(t, target)).To(Equal(content))
	})
	t.Run("When the directory is missing, it should return an error and not call the writer", func(t *testing.T) {
		err := Complete(filepath.Join(t.TempDir(), "none", "file"), private, func(io.Writer) error { t.Error("it was called"); return nil })
		NewWithT(t).Expect(err).To(MatchError(fs.ErrNotExist))
	})
	t.Run("When the target is a directory, it should return an error and leave no partial file", func(t *testing.T) {
		g, target := NewWithT(t), filepath.Join(t.TempDir(), "file")
		g.Expect(os.MkdirAll(filepath.Join(target, "in it"), 0o700)).To(Succeed())
		g.Expect(Complete(target, private, writes(content, nil))).NotTo(Succeed())
		g.Expect(os.ReadDir(filepath.Dir(target))).To(HaveLen(1))
	})
}

func TestVerify(t *testing.T) {
	g, file := NewWithT(t), filepath.Join(t.TempDir(), "file")
	g.Expect(Verify(file, sum(""))).To(MatchError(fs.ErrNotExist))
	g.Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
	g.Expect(Verify(file, sum(""))).To(Succeed())
	var mismatch *MismatchError
	g.Expect(errors.As(Verify(file, sum(content)), &mismatch)).To(BeTrue())
	g.Expect(*mismatch).To(Equal(MismatchError{Got: sum(""), Wanted: sum(content)}))
	g.Expect(Verify(filepath.Dir(file), sum(""))).NotTo(Succeed(), "a folder is no file")
}

// TestBrokenConnection checks that the second try starts again, and that the file has nothing of the first try.
func TestBrokenConnection(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "half of another content")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, content)
	}))
	t.Cleanup(server.Close)
	g, target := NewWithT(t), filepath.Join(t.TempDir(), "file")
	getter := &Getter{Client: server.Client()}
	g.Expect(getter.File(t.Context(), server.URL, target, sum(content))).To(MatchError(io.ErrUnexpectedEOF))
	g.Expect(target).NotTo(BeAnExistingFile())
	asked.Store(0)
	getter.Retries = 1
	g.Expect(getter.File(t.Context(), server.URL, target, sum(content))).To(Succeed())
	g.Expect(textOf(t, target)).To(Equal(content))
}

func TestWhatNobodyNeedAskAgain(t *testing.T) {
	for name, address := range map[string]string{"no URL": "http://[", "of another scheme": "file:///etc/passwd"} {
		t.Run("When the address is "+name+", it should fail", func(t *testing.T) {
			NewWithT(t).Expect((&Getter{Client: http.DefaultClient}).Get(t.Context(), address, func(io.Reader) error { return nil })).NotTo(Succeed())
		})
	}
	for _, address := range []string{"http://mirror.example/file", "HTTPS://mirror.example/file", "httpsx://mirror.example", " https://mirror.example"} {
		t.Run("When HTTPS is required, it should not fetch "+address, func(t *testing.T) {
			err := (&Getter{Client: http.DefaultClient, Secure: true}).Get(t.Context(), address, func(io.Reader) error { return nil })
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("use https")))
		})
	}
}

// down refuses each connection, and records the times of the requests.
type down struct{ at []time.Time }

// RoundTrip implements http.RoundTripper.
func (d *down) RoundTrip(*http.Request) (*http.Response, error) {
	d.at = append(d.at, time.Now())
	return nil, syscall.ECONNREFUSED
}

func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, server := NewWithT(t), &down{}
		begin := time.Now()
		getter := &Getter{Client: &http.Client{Transport: server}, Retries: 3, Pause: time.Second}
		g.Expect(getter.Get(t.Context(), "http://mirror.example", func(io.Reader) error { return nil })).To(MatchError(syscall.ECONNREFUSED))
		var after []time.Duration
		for _, at := range server.at {
			after = append(after, at.Sub(begin))
		}
		g.Expect(after).To(Equal([]time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}), "each pause is twice the one before, and none comes after the last")
		g.Expect(time.Since(begin)).To(Equal(7 * time.Second))
	})
	synctest.Test(t, func(t *testing.T) {
		g, server := NewWithT(t), &down{}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		getter := &Getter{Client: &http.Client{Transport: server}, Retries: 9, Pause: time.Second}
		g.Expect(getter.Get(ctx, "http://mirror.example", func(io.Reader) error { return nil })).To(MatchError(context.DeadlineExceeded))
		g.Expect(server.at).To(HaveLen(3), "its caller's time is over in the third pause")
	})
}
