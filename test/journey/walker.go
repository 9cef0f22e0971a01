// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Walker runs the scenario: it runs commands, waits for their results, and prints both.
type Walker struct {
	// Bin is the folder of our programs.
	Bin string
	// Hypershift is the path of the hypershift command; empty for the one in Bin.
	Hypershift string
	// Dir is the folder of the embedded environment.
	Dir string
	// Env are variables for commands, in addition to those of this process, as in os.Environ.
	Env []string
	// Out receives the output for users.
	Out io.Writer

	// AuditFrom is the time from which Asked reads the audit log; zero for its beginning.
	AuditFrom time.Time

	Timeline Timeline
	// Another is what a second cluster adds to Memory, in bytes; zero if there was none.
	Another int64
	// Stock and Ignition are the first boots of machines configured by cloud-init and by Ignition; zero if there were
	// none.
	Stock, Ignition Boot
	began           time.Time
}

// NewWalker starts the clock of a scenario in the environment of dir with the programs of bin.
func NewWalker(bin, dir string, out io.Writer) *Walker {
	return &Walker{Bin: bin, Dir: dir, Out: out, began: time.Now()}
}

// Path returns the path of a file in the environment's folder.
func (w *Walker) Path(elem ...string) string {
	return filepath.Join(append([]string{w.Dir}, elem...)...)
}

// Say prints one line.
func (w *Walker) Say(format string, args ...any) {
	fmt.Fprintf(w.Out, format+"\n", args...)
}

// Type prints a command as a user would type it, runs it, and shows its output.
func (w *Walker) Type(ctx context.Context, argv ...string) error {
	w.Say("$ %s", quote(argv))
	cmd := w.command(ctx, argv...)
	cmd.Stdout, cmd.Stderr = w.Out, w.Out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", quote(argv), err)
	}
	return nil
}

// Read runs a command without printing it and returns its output; its error contains the error output.
func (w *Walker) Read(ctx context.Context, argv ...string) (string, error) {
	cmd := w.command(ctx, argv...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %w: %s", quote(argv), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Guest returns a kubectl command line for the hosted cluster.
func (w *Walker) Guest(cluster string, args ...string) []string {
	return append([]string{"kubectl", "--kubeconfig", w.Path(cluster + ".kubeconfig")}, args...)
}

func (w *Walker) command(ctx context.Context, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, w.program(argv[0]), argv[1:]...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.Path("kubeconfig"), "HYPERSHIFT_DEV_DIR="+w.Dir)
	cmd.Env = append(cmd.Env, w.Env...)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// program returns the path of one of our programs, or of Kubernetes, in preference to one that is installed on the
// machine.
func (w *Walker) program(name string) string {
	if name == "hypershift" && w.Hypershift != "" {
		return w.Hypershift
	}
	for _, folder := range []string{w.Bin, filepath.Join(w.Bin, "kube")} {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return name
}

// Check checks once whether a stage is reached; progress describes in a few words what it waits for.
type Check func(ctx context.Context) (done bool, progress string, err error)

// Reach waits until check is done, prints each change of progress, and adds the stage to the timeline. An error of
// check counts as progress, since a restarting service does not respond for a moment.
func (w *Walker) Reach(ctx context.Context, name string, limit time.Duration, check Check) error {
	start := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not reached in %s", limit))
	defer cancel()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	last := ""
	for {
		done, progress, err := check(ctx)
		if done && err == nil {
			w.reached(name, start)
			return nil
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			progress = err.Error()
		}
		if progress != last && progress != "" {
			w.Say("  %7s  %s: %s", seconds(time.Since(w.began)), name, progress)
			last = progress
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w; last seen: %s", name, context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
}

func (w *Walker) reached(name string, start time.Time) {
	stage := Stage{Name: name, Took: time.Since(start), At: time.Since(w.began)}
	w.Timeline.Add(stage)
	w.Say("✔ %7s  %s (%s)", seconds(stage.At), name, seconds(stage.Took))
}

// quote quotes a command line for a shell.
func quote(argv []string) string {
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = word
		if strings.ContainsAny(word, " \t\n'\"$&|;<>(){}*?") || word == "" {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	words[0] = filepath.Base(words[0])
	return strings.Join(words, " ")
}

// All returns a Check that is done if all checks are done in one call.
func All(checks ...Check) Check {
	return func(ctx context.Context) (bool, string, error) {
		all, words := true, []string{}
		for _, check := range checks {
			done, progress, err := check(ctx)
			if err != nil {
				return false, progress, err
			}
			if all = all && done; progress != "" {
				words = append(words, progress)
			}
		}
		return all, strings.Join(words, "; "), nil
	}
}

// Quick returns a Check for a function that needs no context.
func Quick(check func() (bool, string, error)) Check {
	return func(context.Context) (bool, string, error) { return check() }
}
