// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// stage provides fake compiled tests: shell scripts that record their calls.
type stage struct {
	*GomegaWithT
	*suite
	t      *testing.T
	folder string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{GomegaWithT: NewWithT(t), t: t, folder: t.TempDir(), suite: &suite{temporary: t.TempDir(), reached: map[int][]*test{}}}
	return s
}

// program adds a compiled test: a script with its tests.
func (s *stage) program(name, script string, tests ...*test) {
	s.t.Helper()
	p := program{path: filepath.Join(s.folder, name), dir: s.folder}
	text := fmt.Sprintf("#!/bin/sh\necho \"%s $MUTANT $*\" >> calls\n%s\n", name, script)
	s.Expect(os.WriteFile(p.path, []byte(text), 0o700)).To(Succeed())
	s.programs = append(s.programs, p)
	for _, t := range tests {
		t.program = p
	}
	s.tests = append(s.tests, tests...)
}

func (s *stage) calls() []string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.folder, "calls"))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// tries reports whether the tests catch a change.
func (s *stage) tries(tests ...*test) (bool, error) {
	s.reached[7] = tests
	return s.catches(s.t.Context(), &mutant{id: 7, file: "shop.go", line: 3, change: "a -> not so"})
}

func TestCatches(t *testing.T) {
	t.Run("When no test fails, the mutant should survive, and each test should run once", func(t *testing.T) {
		s, a, b, c := newStage(t), &test{name: "TestA", took: time.Second / 2}, &test{name: "TestB", took: time.Second / 2}, &test{name: "TestC", took: time.Minute}
		s.program("one", "exit 0", a, b, c)
		s.Expect(s.tries(a, b, c)).To(BeFalse())
		calls := s.calls()
		s.Expect(calls).To(HaveLen(2))
		s.Expect(calls[0]).To(And(HavePrefix("one 7 "), HaveSuffix("-test.run ^(TestA|TestB)$"), ContainSubstring("-test.failfast"), ContainSubstring("-test.timeout 2m6s")))
		s.Expect(calls[1]).To(And(HaveSuffix("-test.run ^(TestC)$"), ContainSubstring("-test.timeout 8m0s")), "leeway, and six times as long as before")
	})

	t.Run("When no test reaches the mutant, no program should run", func(t *testing.T) {
		s := newStage(t)
		s.program("one", "exit 1")
		s.Expect(s.tries()).To(BeFalse())
		s.Expect(s.calls()).To(BeEmpty())
	})

	t.Run("When a test fails, it should count the catch for that test and not wait for the others", func(t *testing.T) {
		s, a, b, c := newStage(t), &test{name: "TestA"}, &test{name: "TestB"}, &test{name: "TestC", took: time.Minute}
		s.program("one", "echo '--- FAIL: TestB (0.10s)'\nexec sleep 600", a, b, c)
		s.Expect(s.tries(a, b, c)).To(BeTrue())
		s.Expect(s.calls()).To(HaveLen(1))
		s.Expect([]int{a.caught, b.caught, c.caught}).To(Equal([]int{0, 1, 0}))
	})

	t.Run("When the mutant crashes the program, it should count as caught, but by no test", func(t *testing.T) {
		s, a := newStage(t), &test{name: "TestA"}
		s.program("one", "echo 'panic: something'\nkill -SEGV $$", a)
		s.Expect(s.tries(a)).To(BeTrue())
		s.Expect(a.caught).To(BeZero())
	})

	t.Run("When tests are in several programs, it should run each program's own tests until one fails", func(t *testing.T) {
		s, a, b, c := newStage(t), &test{name: "TestA"}, &test{name: "TestB"}, &test{name: "TestC"}
		s.program("one", "exit 0", a)
		s.program("two", "exit 1", b)
		s.program("three", "exit 0", c)
		s.Expect(s.tries(c, b, a)).To(BeTrue())
		s.Expect(s.calls()).To(HaveExactElements(And(HavePrefix("one "), HaveSuffix("^(TestA)$")), And(HavePrefix("two "), HaveSuffix("^(TestB)$"))))
	})

	t.Run("When kube-apiserver does not start, it should retry once and not count the mutant as caught", func(t *testing.T) {
		s, a := newStage(t), &test{name: "TestA"}
		s.program("one", "test -e started && exit 0\ntouch started\necho 'testenv.go:70: starting a kube-apiserver: no'\nexit 1", a)
		s.Expect(s.tries(a)).To(BeFalse())
		s.Expect(s.calls()).To(HaveLen(2))
	})
}

// TestCatchesNothing checks that an error before the tests run does not count as a failed test. Otherwise a package
// would look better than it is.
func TestCatchesNothing(t *testing.T) {
	t.Run("When the temporary folder cannot be created, it should return an error and not count a catch", func(t *testing.T) {
		s, a := newStage(t), &test{name: "TestA"}
		s.program("one", "exit 0", a)
		s.temporary = filepath.Join(s.folder, "gone")
		caught, err := s.tries(a)
		s.Expect(caught).To(BeFalse())
		s.Expect(err).To(MatchError(And(ContainSubstring("shop.go:3: a -> not so"), ContainSubstring("making a temporary folder"))))
	})

	t.Run("When the test program is missing, it should return an error and not count a catch", func(t *testing.T) {
		s, a := newStage(t), &test{name: "TestA"}
		s.program("one", "exit 0", a)
		s.Expect(os.Remove(a.path)).To(Succeed())
		caught, err := s.tries(a)
		s.Expect(caught).To(BeFalse())
		s.Expect(err).To(MatchError(os.ErrNotExist))
	})

	t.Run("When the context is cancelled, it should return an error and not count a catch", func(t *testing.T) {
		s, a := newStage(t), &test{name: "TestA"}
		s.program("one", "exit 1", a)
		ctx, end := context.WithCancel(t.Context())
		end()
		s.reached[7] = []*test{a}
		caught, err := s.catches(ctx, &mutant{id: 7})
		s.Expect(caught).To(BeFalse())
		s.Expect(err).To(MatchError(context.Canceled))
	})
}

// TestRun checks that files and processes that tests leave behind are removed.
func TestRun(t *testing.T) {
	s, a := newStage(t), &test{name: "TestA"}
	s.program("one", `echo "$TMPDIR $GIVEN"; echo data > "$TMPDIR/data"; tail -f "$TMPDIR/data" > /dev/null 2>&1 &
echo "$! said"`, a)
	log, err := s.run(t.Context(), s.tests, time.Minute, "GIVEN=word")
	s.Expect(err).NotTo(HaveOccurred())
	words := strings.Fields(string(log))
	s.Expect(words).To(HaveLen(4))
	s.Expect(words[1]).To(Equal("word"))
	s.Expect(filepath.Dir(words[0])).To(Equal(s.temporary))
	s.Expect(words[0]).NotTo(BeADirectory())
}

func TestKillUsersOf(t *testing.T) {
	g, folder := NewWithT(t), t.TempDir()
	follow := func(path string) *exec.Cmd {
		t.Helper()
		g.Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
		cmd := exec.CommandContext(t.Context(), "tail", "-f", path)
		g.Expect(cmd.Start()).To(Succeed())
		return cmd
	}
	user, neighbour := follow(filepath.Join(folder, "data")), follow(folder+"2.data")
	defer os.Remove(folder + "2.data")
	defer neighbour.Wait()
	defer neighbour.Process.Kill()
	killUsersOf(folder)
	_ = user.Wait()
	g.Expect(user.ProcessState.Sys().(syscall.WaitStatus).Signal()).To(Equal(syscall.SIGKILL))
	g.Expect(neighbour.Process.Signal(syscall.Signal(0))).To(Succeed(), "it works in a folder whose name begins so")
}

func TestTrace(t *testing.T) {
	const reports = "for name in $(echo \"$*\" | sed 's/.*(\\(.*\\)).*/\\1/' | tr '|' ' '); do echo \"$name 1\" >> $MUTANT_TRACE; echo \"--- PASS: $name (1.50s)\"; done"
	names := func(tests []*test) (all []string) {
		for _, t := range tests {
			all = append(all, t.name)
		}
		return all
	}

	t.Run("When tests pass, it should record their duration and the mutants they reach, and run parallel tests separately", func(t *testing.T) {
		s := newStage(t)
		s.program("one", reports, &test{name: "TestA"}, &test{name: "TestB", parallel: true}, &test{name: "TestC"}, &test{name: "TestDrop"})
		s.program("two", reports, &test{name: "TestE"})
		s.Expect(s.trace(t.Context(), "Test[A-D]", "Drop$")).To(Succeed())
		s.Expect(s.calls()).To(ConsistOf(HaveSuffix("^(TestA|TestC)$"), HaveSuffix("^(TestB)$")), "none that is not wanted, and none of a program that has no other")
		s.Expect(names(s.reached[1])).To(ConsistOf("TestA", "TestB", "TestC"))
		s.Expect(s.tests[0].took).To(Equal(1500 * time.Millisecond))
	})

	t.Run("When a test fails once, it should run that test and the later ones again", func(t *testing.T) {
		s := newStage(t)
		s.program("one", `if test -e again; then echo 'TestB 2' > $MUTANT_TRACE; echo '--- PASS: TestB (0.20s)'; exit 0; fi
touch again; printf 'TestA 1\nTestB 1\n' > $MUTANT_TRACE; echo '--- PASS: TestA (0.10s)'; echo '--- FAIL: TestB (0.10s)'; exit 1`, &test{name: "TestA"}, &test{name: "TestB"})
		s.Expect(s.trace(t.Context(), "", "")).To(Succeed())
		s.Expect(s.calls()[1]).To(HaveSuffix("^(TestB)$"))
		s.Expect(names(s.reached[1])).To(Equal([]string{"TestA"}), "what a failed run reached does not count")
		s.Expect(names(s.reached[2])).To(Equal([]string{"TestB"}))
	})

	t.Run("When a test fails twice, it should return an error with the name and output of the test", func(t *testing.T) {
		s := newStage(t)
		s.program("one", "echo '--- PASS: TestA (0.10s)'; echo 'why so'; exit 1", &test{name: "TestA"}, &test{name: "TestB"})
		s.Expect(s.trace(t.Context(), "", "")).To(MatchError(And(HavePrefix("TestB fails with nothing changed"), ContainSubstring("why so"))))
		s.Expect(s.calls()).To(HaveLen(2))
	})

	t.Run("When all tests pass but the program fails, it should return an error with the output", func(t *testing.T) {
		s := newStage(t)
		s.program("one", reports+"; echo 'goroutines are left'; exit 1", &test{name: "TestA"})
		s.Expect(s.trace(t.Context(), "", "")).To(MatchError(And(ContainSubstring("fail with nothing changed"), ContainSubstring("goroutines are left"))))
	})

	for _, tc := range []struct{ flag, run, skip string }{{"--run", "(", ""}, {"--skip", "", "["}} {
		t.Run("When "+tc.flag+" is not a pattern, it should return an error before anything runs", func(t *testing.T) {
			s := newStage(t)
			s.program("one", reports, &test{name: "TestA"})
			s.Expect(s.trace(t.Context(), tc.run, tc.skip)).To(MatchError(HavePrefix(tc.flag + ": ")))
			s.Expect(s.calls()).To(BeEmpty())
		})
	}
}
