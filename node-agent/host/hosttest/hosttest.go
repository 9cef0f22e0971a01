// SPDX-License-Identifier: Apache-2.0

// Package hosttest provides a machine for tests: a folder as its root, and programs that do what the test specifies.
package hosttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/openshift/hypershift/node-agent/host"
)

// Machine is a machine that exists as long as its test.
type Machine struct {
	*host.Host
	// Commands holds the programs that ran, with their arguments, in order. Paths below the root folder are shown relative
	// to the root.
	Commands []string
	// Program implements the programs; nil means success without output.
	Program func(command string, stdin io.Reader) ([]byte, error)

	t   testing.TB
	log bytes.Buffer
	// left is the number of changes and programs until the power loss; 0 means no power loss.
	left int
}

// New returns a machine without files.
func New(t testing.TB) *Machine {
	t.Helper()
	m := &Machine{t: t}
	m.Host = &host.Host{Root: t.TempDir(), Run: m.run, Log: &m.log, Changed: func(string) { m.pass() }}
	return m
}

// Copy returns a second machine with the same files and programs.
func (m *Machine) Copy(t testing.TB) *Machine {
	t.Helper()
	other := New(t)
	other.Program = m.Program
	for _, name := range m.names(nil) {
		mode := m.Mode(name)
		switch {
		case mode.IsDir():
			if err := os.MkdirAll(other.Path(name), 0o755); err != nil { //nolint:gosec // As on a real machine.
				t.Fatal(err)
			}
		case mode&fs.ModeSymlink != 0:
			other.PutLink(name, m.target(name))
		default:
			other.PutMode(name, m.Text(name), mode)
		}
	}
	return other
}

// names lists all paths of the machine, each folder before its content. It omits paths below the given folders.
func (m *Machine) names(without []string) []string {
	m.t.Helper()
	var all []string
	err := filepath.WalkDir(m.Root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, m.Root)
		if entry.IsDir() && slices.Contains(without, name) {
			return filepath.SkipDir
		}
		all = append(all, name)
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return all
}

// target returns the target of a link.
func (m *Machine) target(path string) string {
	m.t.Helper()
	target, err := os.Readlink(m.Path(path))
	if err != nil {
		m.t.Fatal(err)
	}
	return target
}

func (m *Machine) run(_ context.Context, stdin io.Reader, program string, args ...string) ([]byte, error) {
	m.pass()
	command := strings.ReplaceAll(strings.Join(append([]string{program}, args...), " "), m.Root, "")
	m.Commands = append(m.Commands, command)
	if m.Program == nil {
		return nil, nil
	}
	return m.Program(command, stdin)
}

// powerOff is the panic value that simulates a power loss.
type powerOff struct{}

func (m *Machine) pass() {
	if m.left == 0 {
		return
	}
	if m.left--; m.left == 0 {
		panic(powerOff{})
	}
}

// Cut simulates a power loss while do runs. The n-th file change or program start, counted together from 1, is the
// last: the power is lost after the change, or before the program runs. It reports whether do got that far.
func (m *Machine) Cut(n int, do func()) (cut bool) {
	m.left = n
	defer func() {
		m.left = 0
		if reason := recover(); reason != nil {
			if _, ok := reason.(powerOff); !ok {
				panic(reason)
			}
			cut = true
		}
	}()
	do()
	return false
}

// Log returns the log output.
func (m *Machine) Log() string { return m.log.String() }

// Put creates a file that every user may read.
func (m *Machine) Put(path, text string) {
	m.t.Helper()
	m.PutMode(path, text, 0o644)
}

// PutMode creates a file with a mode.
func (m *Machine) PutMode(path, text string, mode fs.FileMode) {
	m.t.Helper()
	target := m.Path(path)
	err := os.MkdirAll(filepath.Dir(target), 0o755) //nolint:gosec // As on a real machine.
	// Replace the file, since a link must not be followed.
	err = errors.Join(err, os.RemoveAll(target), os.WriteFile(target, []byte(text), 0o600))
	if err := errors.Join(err, os.Chmod(target, mode)); err != nil {
		m.t.Fatal(err)
	}
}

// PutLink creates a symbolic link.
func (m *Machine) PutLink(path, target string) {
	m.t.Helper()
	quiet := &host.Host{Root: m.Root}
	if err := quiet.Link(path, target); err != nil {
		m.t.Fatal(err)
	}
}

// Text returns the content of a file.
func (m *Machine) Text(path string) string {
	m.t.Helper()
	content, err := os.ReadFile(m.Path(path))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(content)
}

// Mode returns the mode of a file, a folder or a link.
func (m *Machine) Mode(path string) fs.FileMode {
	m.t.Helper()
	info, err := os.Lstat(m.Path(path))
	if err != nil {
		m.t.Fatal(err)
	}
	return info.Mode()
}

// Owner returns the owner of a file, a folder or a link, as uid:gid.
func (m *Machine) Owner(path string) string {
	m.t.Helper()
	stat := syscall.Stat_t{}
	if err := syscall.Lstat(m.Path(path), &stat); err != nil {
		m.t.Fatal(err)
	}
	return fmt.Sprintf("%d:%d", stat.Uid, stat.Gid)
}

// Files returns all files and links of the machine with their modes and contents. It omits paths below the given
// folders.
func (m *Machine) Files(without ...string) map[string]string {
	m.t.Helper()
	all := map[string]string{}
	for _, name := range m.names(without) {
		switch mode := m.Mode(name); {
		case mode.IsDir():
		case mode&fs.ModeSymlink != 0:
			all[name] = "-> " + m.target(name)
		default:
			all[name] = fmt.Sprintf("%s %s", mode, m.Text(name))
		}
	}
	return all
}
