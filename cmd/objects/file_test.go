// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
)

func TestWriteFile(t *testing.T) {
	writes := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, failed := io.WriteString(w, text)
			return errors.Join(failed, err)
		}
	}
	t.Run("When the file is new, only its owner should be able to read it", func(t *testing.T) {
		g, file := NewWithT(t), filepath.Join(t.TempDir(), "a")
		g.Expect(WriteFile(file, writes("sesame", nil))).To(Succeed())
		holds(t, file, "sesame")
	})
	t.Run("When the file exists and is readable by others, it should replace the content and restrict the mode", func(t *testing.T) {
		g, file := NewWithT(t), filepath.Join(t.TempDir(), "a")
		g.Expect(os.WriteFile(file, []byte("much longer than what comes"), 0o600)).To(Succeed())
		g.Expect(os.Chmod(file, 0o666)).To(Succeed())
		g.Expect(WriteFile(file, writes("sesame", nil))).To(Succeed())
		holds(t, file, "sesame")
	})
	t.Run("When writing fails midway, it should remove the incomplete file", func(t *testing.T) {
		g, file := NewWithT(t), filepath.Join(t.TempDir(), "a")
		g.Expect(WriteFile(file, writes("half", errors.New("disk full")))).To(MatchError("write " + file + ": disk full"))
		g.Expect(file).NotTo(BeAnExistingFile())
	})
	t.Run("When the file cannot be created, it should name the path", func(t *testing.T) {
		dir := t.TempDir()
		called := false
		err := WriteFile(dir, func(io.Writer) error { called = true; return nil })
		g := NewWithT(t)
		g.Expect(err).To(MatchError(ContainSubstring(dir)))
		g.Expect(called).To(BeFalse())
		g.Expect(dir).To(BeADirectory())
	})
	t.Run("When the file is a named pipe, it should write to the pipe and keep its mode", func(t *testing.T) {
		g, pipe := NewWithT(t), filepath.Join(t.TempDir(), "pipe")
		g.Expect(syscall.Mkfifo(pipe, 0o640)).To(Succeed())
		before, err := os.Stat(pipe)
		g.Expect(err).NotTo(HaveOccurred())
		reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
		g.Expect(err).NotTo(HaveOccurred())
		defer reader.Close()
		g.Expect(WriteFile(pipe, writes("sesame", nil))).To(Succeed())
		g.Expect(WriteFile(pipe, writes("", errors.New("no")))).NotTo(Succeed())
		got := make([]byte, 6)
		_, err = io.ReadFull(reader, got)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(got)).To(Equal("sesame"))
		after, err := os.Stat(pipe)
		g.Expect(err).NotTo(HaveOccurred(), "it is somebody else's to remove")
		g.Expect(after.Mode()).To(Equal(before.Mode()))
	})
}

func holds(t *testing.T, file, want string) {
	t.Helper()
	g := NewWithT(t)
	text, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(Equal(want))
	info, err := os.Stat(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600))
}
