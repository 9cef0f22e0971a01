// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// result is the result of a stage.
type result struct {
	report
	name string
	wall time.Duration
	// processor is the CPU time of the stage's processes, without daemons of the embedded environment.
	processor time.Duration
}

// runPhases runs phases until one has a failure.
func runPhases(phases []phase) []result {
	var all []result
	for _, p := range phases {
		results := sideBySide(p)
		all = append(all, results...)
		if slices.ContainsFunc(results, func(r result) bool { return len(r.failures) > 0 }) {
			break
		}
	}
	return all
}

// sideBySide runs the chains of a phase at the same time.
func sideBySide(chains phase) []result {
	results := make(chan []result, len(chains))
	for _, names := range chains {
		go func() {
			var chain []result
			for _, name := range names {
				chain = append(chain, stages[name].run(name))
			}
			results <- chain
		}()
	}
	var all []result
	for range chains {
		all = append(all, <-results...)
	}
	return all
}

// run runs one stage.
func (s stage) run(name string) result {
	start := time.Now()
	fmt.Printf("=== %s\n", name)
	r, processor := s.report(name)
	wall := time.Since(start).Round(time.Second)
	fmt.Printf("=== %s: %d passed, %d failed, %d skipped in %s\n", name, r.passed, len(r.failures), len(r.skips), wall)
	return result{report: *r, name: name, wall: wall, processor: processor}
}

func (s stage) report(name string) (*report, time.Duration) {
	argv, err := s.argv()
	if err != nil {
		return failed("FAIL %s: listing packages: %v", name, err), 0
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = s.dir, slices.Concat(os.Environ(), []string{eventually}, s.env)
	if s.environment && !keeps() {
		release, err := takeEnvironment(testDir())
		if err != nil {
			return failed("FAIL %s: %v", name, err), 0
		}
		defer release()
		cmd.Env = append(cmd.Env, dirVariable+"="+testDir())
	}
	if s.nice {
		background(cmd)
	}
	if s.load {
		stop := make(chan struct{})
		burn(stop)
		defer close(stop)
	}
	var r *report
	if s.command != nil && !s.events {
		r = s.logged(cmd, name)
	} else {
		r = s.goTest(cmd, name)
	}
	if cmd.ProcessState == nil {
		return r, 0
	}
	return r, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func failed(format string, args ...any) *report {
	return &report{failures: []string{fmt.Sprintf(format, args...)}}
}

// goTest runs a command that prints the events of go test.
func (s stage) goTest(cmd *exec.Cmd, name string) *report {
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return failed("FAIL %s: starting %s: %v", name, cmd.Path, err)
	}
	if s.nice {
		defer lower(cmd.Process)()
	}
	r := newReport(slices.Contains(s.args, "-v"))
	r.read(out)
	if err := cmd.Wait(); err != nil && len(r.failures) == 0 {
		r.failures = append(r.failures, fmt.Sprintf("FAIL %s: %v", name, err))
	}
	return r
}

// logFolder takes the output of commands that print no events.
var logFolder = filepath.Join("bin", "logs")

// tail is the number of last lines that are shown of a failed command.
const tail = 60

// logged runs a command whose output goes to a log file. It shows the last lines if the command fails.
func (s stage) logged(cmd *exec.Cmd, name string) *report {
	if err := os.MkdirAll(logFolder, 0o755); err != nil {
		return failed("FAIL %s: %v", name, err)
	}
	file, err := os.Create(filepath.Join(logFolder, name+".log"))
	if err != nil {
		return failed("FAIL %s: %v", name, err)
	}
	defer file.Close()
	fmt.Printf("    output of %s: %s\n", name, file.Name())
	cmd.Stdout, cmd.Stderr = file, file
	err = cmd.Start()
	if err == nil {
		if s.nice {
			defer lower(cmd.Process)()
		}
		err = cmd.Wait()
	}
	if err != nil {
		fmt.Println(lastLines(file))
		return failed("FAIL %s: %v; see %s", name, err, file.Name())
	}
	return &report{passed: 1}
}

func lastLines(file io.ReadSeeker) string {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err.Error()
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tail):], "\n")
}

// argv returns the stage's command.
func (s stage) argv() ([]string, error) {
	argv := s.command
	if argv == nil {
		packages, err := s.packages()
		if err != nil {
			return nil, err
		}
		argv = slices.Concat([]string{"go", "test", "-json"}, s.args, packages)
	}
	if s.nice {
		argv = append([]string{"nice", "-n", strconv.Itoa(lowest)}, argv...)
	}
	return argv, nil
}
