// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// suite is the compiled tests of a package with all changes built in.
type suite struct {
	temporary string
	programs  []program
	tests     []*test
	reached   map[int][]*test
}

// program is a compiled package of tests.
type program struct {
	path, dir string
}

// test is a test function, its duration without changes, and the number of changes it has caught in this run.
type test struct {
	program
	name   string
	took   time.Duration
	caught int
	// parallel tests overlap with others, so it is unknown which of them reaches a place.
	parallel bool
}

// slowest is the factor by which a test may become slower before it counts as hanging. leeway is added for the start
// of a kube-apiserver.
const (
	slowest = 6
	leeway  = 2 * time.Minute
	// notStarted is the message of support/testenv if a busy machine does not start a kube-apiserver in time. It proves
	// nothing about a change.
	notStarted = "starting a kube-apiserver"
)

// newSuite compiles the tests once, with an overlay: it writes nothing into the tree.
func newSuite(ctx context.Context, p *sourcePackage, folders []string) (*suite, error) {
	temporary, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return nil, fmt.Errorf("making a working folder: %w", err)
	}
	s := &suite{temporary: temporary, reached: map[int][]*test{}}
	if err := s.compile(ctx, p, folders); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *suite) close() { _ = os.RemoveAll(s.temporary) }

func (s *suite) compile(ctx context.Context, p *sourcePackage, folders []string) error {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, text := range p.instrument() {
		path := filepath.Join(s.temporary, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return fmt.Errorf("writing a changed file: %w", err)
		}
		overlay.Replace[filepath.Join(p.Dir, name)] = path
	}
	var sources []testSources
	for _, folder := range folders {
		tests, err := readTests(ctx, folder)
		if err != nil {
			return err
		}
		for path, text := range tests.announced {
			overlay.Replace[path] = filepath.Join(s.temporary, fmt.Sprintf("%d_test.go", len(overlay.Replace)))
			if err := os.WriteFile(overlay.Replace[path], text, 0o600); err != nil {
				return fmt.Errorf("writing a test file: %w", err)
			}
		}
		sources = append(sources, tests)
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return fmt.Errorf("writing the overlay: %w", err)
	}
	file := filepath.Join(s.temporary, "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("writing the overlay: %w", err)
	}
	for i, folder := range folders {
		compiled := program{path: filepath.Join(s.temporary, fmt.Sprintf("%d.test", i)), dir: sources[i].Dir}
		if _, err := output(exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", file, "-o", compiled.path, folder)); err != nil {
			return fmt.Errorf("compiling the tests of %s: %w", folder, err)
		}
		if _, err := os.Stat(compiled.path); err == nil { // A package without tests produces no binary.
			s.programs = append(s.programs, compiled)
			s.tests = append(s.tests, testsOf(compiled, sources[i])...)
		}
	}
	return nil
}

// catches reports whether a test fails with this change.
func (s *suite) catches(ctx context.Context, m *mutant) (bool, error) {
	for _, batch := range batches(s.reached[m.id]) {
		for _, program := range s.programs {
			mine := slices.DeleteFunc(slices.Clone(batch), func(t *test) bool { return t.program != program })
			if len(mine) == 0 {
				continue
			}
			together := total(mine)
			log, err := s.run(ctx, mine, leeway+slowest*together, fmt.Sprintf("MUTANT=%d", m.id), patience(together))
			if bytes.Contains(log, []byte(notStarted)) {
				log, err = s.run(ctx, mine, leeway+slowest*together, fmt.Sprintf("MUTANT=%d", m.id), patience(together))
			}
			if ctx.Err() != nil {
				return false, fmt.Errorf("trying %s: %w", m, ctx.Err())
			}
			if failed(err) {
				credit(mine, log)
				return true, nil
			}
			if err != nil {
				return false, fmt.Errorf("trying %s: %w", m, err)
			}
		}
	}
	return false, nil
}

// failed reports whether tests ran and failed, or were ended because one had failed. An error that kept the tests from
// running proves nothing.
func failed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) || errors.Is(err, context.Canceled)
}

// run runs tests of one program in a separate temporary folder until the first fails, and ends the processes that they
// leave.
func (s *suite) run(ctx context.Context, tests []*test, limit time.Duration, env ...string) ([]byte, error) {
	folder, err := os.MkdirTemp(s.temporary, "run")
	if err != nil {
		return nil, fmt.Errorf("making a temporary folder for tests: %w", err)
	}
	var names []string
	for _, t := range tests {
		names = append(names, t.name)
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	cmd := exec.CommandContext(ctx, tests[0].path, "-test.v", "-test.failfast", "-test.timeout", limit.String(), "-test.run", "^("+strings.Join(names, "|")+")$")
	cmd.Dir = tests[0].dir
	cmd.Env = append(append(os.Environ(), "TMPDIR="+folder), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	log := &untilFailure{end: end}
	cmd.Stdout, cmd.Stderr = log, log
	err = cmd.Run()
	// The tests passed, and a server that they left running still has their output open.
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	killUsersOf(folder)
	_ = os.RemoveAll(folder)
	return log.Bytes(), err
}

// killUsersOf ends processes that have the folder in their arguments: the kube-apiserver and etcd of an interrupted
// test.
func killUsersOf(folder string) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		arguments, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(arguments, []byte(folder+"/")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// sample selects some changes, the same ones for the same seed, in their original order.
func sample(mutants []*mutant, seed uint64, most int) []*mutant {
	if most <= 0 || most >= len(mutants) {
		return mutants
	}
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(mutants))[:most]
	slices.Sort(order)
	picked := make([]*mutant, most)
	for i, j := range order {
		picked[i] = mutants[j]
	}
	return picked
}
