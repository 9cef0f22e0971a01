// SPDX-License-Identifier: Apache-2.0

// Package host accesses the machine of node-agent: its files, below a root folder that tests set, and its programs.
package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Run runs a program and returns its standard output.
type Run func(ctx context.Context, stdin io.Reader, program string, args ...string) ([]byte, error)

// Host is a machine.
type Host struct {
	// Root is the root folder of the machine; empty means /.
	Root string
	// Run runs programs.
	Run Run
	// Log receives one line for each step.
	Log io.Writer
	// Changed is called after each file change; it may be nil. Tests simulate a power loss there.
	Changed func(path string)
}

func (h *Host) changed(path string) {
	if h.Changed != nil {
		h.Changed(path)
	}
}

// Path returns the path of a file of the machine below Root.
func (h *Host) Path(path string) string { return filepath.Join("/", h.Root, path) }

// Say writes a line to the journal. It must not contain secrets.
func (h *Host) Say(format string, args ...any) {
	fmt.Fprintf(h.Log, "node-agent: "+format+"\n", args...)
}

// Do runs a program and discards its output.
func (h *Host) Do(ctx context.Context, program string, args ...string) error {
	_, err := h.Run(ctx, nil, program, args...)
	return err
}

// Exec implements Run for a real machine. Its errors include the end of the program's standard error.
func Exec(ctx context.Context, stdin io.Reader, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // The programs are constants; no shell reads the arguments.
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if said := strings.TrimSpace(stderr.String()); said != "" {
			err = fmt.Errorf("%w: %s", err, said[max(0, len(said)-500):])
		}
		return nil, fmt.Errorf("%s: %w", strings.Join(append([]string{program}, args...), " "), err)
	}
	return stdout.Bytes(), nil
}

// Read returns the content of a file; nil if it does not exist.
func (h *Host) Read(path string) ([]byte, error) {
	content, err := os.ReadFile(h.Path(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// Exists reports whether a path exists.
func (h *Host) Exists(path string) bool {
	_, err := os.Lstat(h.Path(path))
	return err == nil
}

// Write sets the content and the mode of a file atomically: it flushes the content to disk before the rename. It
// reports whether the file changed.
func (h *Host) Write(path string, content []byte, mode fs.FileMode) (changed bool, err error) {
	target := h.Path(path)
	if same(target, content, mode) {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // All users may list folders in /etc.
		return false, err
	}
	partial, err := os.CreateTemp(filepath.Dir(target), ".hypershift-*")
	if err != nil {
		return false, err
	}
	defer os.Remove(partial.Name()) //nolint:errcheck // Not there any more when all went well.
	_, err = partial.Write(content)
	if err := errors.Join(err, partial.Chmod(mode), partial.Sync(), partial.Close()); err != nil {
		return false, fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(partial.Name(), target); err != nil {
		return false, err
	}
	h.changed(path)
	return true, nil
}

// Remove removes a file or a link. A missing file is not an error.
func (h *Host) Remove(path string) error {
	err := os.Remove(h.Path(path))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err == nil {
		h.changed(path)
	}
	return err
}

func same(target string, content []byte, mode fs.FileMode) bool {
	info, err := os.Lstat(target)
	if err != nil || info.Mode() != mode || info.Size() != int64(len(content)) {
		return false
	}
	present, err := os.ReadFile(target)
	return err == nil && bytes.Equal(present, content)
}

// Link sets the target of a symbolic link atomically.
func (h *Host) Link(path, target string) error {
	link := h.Path(path)
	if present, err := os.Readlink(link); err == nil && present == target {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil { //nolint:gosec // As above.
		return err
	}
	partial := link + ".hypershift-partial"
	if err := os.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, partial); err != nil {
		return err
	}
	if err := os.Rename(partial, link); err != nil {
		return err
	}
	h.changed(path)
	return nil
}

// HasSystemd reports whether the first process of the machine is systemd, which then manages the cgroups.
func (h *Host) HasSystemd() bool {
	name, err := h.Read("/proc/1/comm")
	return err == nil && strings.TrimSpace(string(name)) == "systemd"
}
