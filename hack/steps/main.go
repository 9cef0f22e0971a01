// SPDX-License-Identifier: Apache-2.0

// Command steps runs make targets one after another. It shows one line for each, with its number, an estimate and its
// duration. The output of the targets goes to a log file. If a target fails, it shows the last lines of the log.
//
// Usage: go run ./hack/steps -log FILE 'NAME;TARGET;ESTIMATE'...
//
// An estimate is a text such as "about 6 min"; it is the duration of a first build on two cores, and may be empty.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	log := flag.String("log", "", "file that takes what the targets print")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *log, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// step is one or more make targets, separated by blanks.
type step struct{ name, target, estimate string }

func parse(args []string) ([]step, error) {
	var steps []step
	for _, arg := range args {
		parts := strings.Split(arg, ";")
		if len(parts) != 3 || parts[0] == "" || parts[1] == "" {
			return nil, fmt.Errorf("step %q: write NAME;TARGET;ESTIMATE", arg)
		}
		steps = append(steps, step{name: parts[0], target: parts[1], estimate: parts[2]})
	}
	return steps, nil
}

// run runs all steps, and stops at the first that fails.
func run(ctx context.Context, out io.Writer, logName string, args []string) error {
	steps, err := parse(args)
	if err != nil {
		return err
	}
	if logName == "" {
		return errors.New("name the log file with -log")
	}
	if err := os.MkdirAll(filepath.Dir(logName), 0o755); err != nil {
		return err
	}
	log, err := os.Create(logName)
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Fprintf(out, "Build output: %s\n", logName)
	screen := newScreen(out)
	for i, s := range steps {
		title := fmt.Sprintf("[%d/%d] %s", i+1, len(steps), s.name)
		if err := s.run(ctx, screen, log, title); err != nil {
			return fmt.Errorf("%s failed: %w; the last lines of %s:\n%s", title, err, logName, lastLines(logName))
		}
	}
	return nil
}

// run runs make for one step.
func (s step) run(ctx context.Context, screen *screen, log io.Writer, title string) error {
	line := title
	if s.estimate != "" {
		line += ", " + s.estimate + " the first time"
	}
	done := screen.begin(line)
	start := time.Now()
	cmd := exec.CommandContext(ctx, "make", append([]string{"--no-print-directory"}, strings.Fields(s.target)...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	done()
	if err == nil {
		screen.end(fmt.Sprintf("%s: %s", title, time.Since(start).Round(time.Second)))
	}
	return err
}

// tail is the number of log lines that are shown if a step fails.
const tail = 25

func lastLines(name string) string {
	content, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tail):], "\n")
}
