// SPDX-License-Identifier: Apache-2.0

// Package hosttest is a machine for tests: a folder that stands for its root, and programs that do what the test says.
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

// Machine is one that lives as long as its test.
type Machine struct {
	*host.Host
	// Commands are the programs that ran, with their arguments, in order. Those of the machine's own folders are named from its root.
	Commands []string
	// Program answers for programs; nil for a success that says nothing.
	Program func(command string, stdin io.Reader) ([]byte, error)

	t   testing.TB
	log bytes.Buffer
	// left is how many changes and programs there are until the power goes; 0 for no end.
	left int
}

// New is a machine without a file.
func New(t testing.TB) *Machine {
	t.Helper()
	m := &Machine{t: t}
	m.Host = &host.Host{Root: t.TempDir(), Run: m.run, Log: &m.log, Changed: func(string) { m.pass() }}
	return m
}

// Copy is another machine with the same files, and the same programs.
func (m *Machine) Copy(t testing.TB) *Machine {
	t.Helper()
	other := New(t)
	other.Program = m.Program
	for _, name := range m.names(nil) {
		mode := m.Mode(name)
		switch {
		case mode.IsDir():
			if err := os.MkdirAll(other.Path(name), 0o755); err != nil { //nolint:gosec // As the machine itself makes them.
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

// names are all that the machine has, from its root, a folder before what is in it; but for what is below the given folders.
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

// target is where a link leads.
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

// powerOff is what a machine's program dies of.
type powerOff struct{}

func (m *Machine) pass() {
	if m.left == 0 {
		return
	}
	if m.left--; m.left == 0 {
		panic(powerOff{})
	}
}

// Cut takes the power away after the n-th change of a file, or before the n-th program, whichever of both together is the n-th, counted
// from 1. It tells whether what is done came so far.
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

// Log is what was said.
func (m *Machine) Log() string { return m.log.String() }

// Put makes a file that everybody may read.
func (m *Machine) Put(path, text string) {
	m.t.Helper()
	m.PutMode(path, text, 0o644)
}

// PutMode makes a file.
func (m *Machine) PutMode(path, text string, mode fs.FileMode) {
	m.t.Helper()
	target := m.Path(path)
	err := os.MkdirAll(filepath.Dir(target), 0o755) //nolint:gosec // As the machine itself makes them.
	// Another file takes its place, as a link there must not be followed.
	err = errors.Join(err, os.RemoveAll(target), os.WriteFile(target, []byte(text), 0o600))
	if err := errors.Join(err, os.Chmod(target, mode)); err != nil {
		m.t.Fatal(err)
	}
}

// PutLink makes a symbolic link.
func (m *Machine) PutLink(path, target string) {
	m.t.Helper()
	quiet := &host.Host{Root: m.Root}
	if err := quiet.Link(path, target); err != nil {
		m.t.Fatal(err)
	}
}

// Text is a file's content.
func (m *Machine) Text(path string) string {
	m.t.Helper()
	content, err := os.ReadFile(m.Path(path))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(content)
}

// Mode is that of a file, a folder or a link.
func (m *Machine) Mode(path string) fs.FileMode {
	m.t.Helper()
	info, err := os.Lstat(m.Path(path))
	if err != nil {
		m.t.Fatal(err)
	}
	return info.Mode()
}

// Owner is who has a file, a folder or a link, as uid:gid.
func (m *Machine) Owner(path string) string {
	m.t.Helper()
	stat := syscall.Stat_t{}
	if err := syscall.Lstat(m.Path(path), &stat); err != nil {
		m.t.Fatal(err)
	}
	return fmt.Sprintf("%d:%d", stat.Uid, stat.Gid)
}

// Files are all files and links of the machine with their modes and contents, but for those below the given folders.
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
