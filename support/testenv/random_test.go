// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// overheard is a test that records its log and stops at its first failure.
type overheard struct {
	testing.TB
	log []string
}

func (o *overheard) Helper() {}

func (o *overheard) Logf(format string, args ...any) {
	o.log = append(o.log, fmt.Sprintf(format, args...))
}

func (o *overheard) Fatalf(format string, args ...any) {
	o.Logf(format, args...)
	runtime.Goexit()
}

// draw returns random numbers and the log of the test that drew them.
func draw(t *testing.T) (numbers []uint64, log string) {
	o, done := &overheard{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		random := Random(o)
		numbers = []uint64{random.Uint64(), random.Uint64()}
	}()
	<-done
	return numbers, strings.Join(o.log, "\n")
}

func TestRandom(t *testing.T) {
	t.Run("When no seed is given, each test should draw different numbers and log how to reproduce them", func(t *testing.T) {
		g := NewWithT(t)
		t.Setenv(SeedEnv, "")
		first, log := draw(t)
		second, _ := draw(t)
		g.Expect(second).NotTo(Equal(first))
		name, seed, _ := strings.Cut(log, "=")
		g.Expect(name).To(Equal("HYPERSHIFT_TEST_SEED"))
		t.Setenv(name, seed)
		again, same := draw(t)
		g.Expect(again).To(Equal(first))
		g.Expect(same).To(Equal(log))
	})
	t.Run("When the seed is not a number, it should fail and name the variable", func(t *testing.T) {
		g := NewWithT(t)
		t.Setenv(SeedEnv, "yesterday's")
		numbers, log := draw(t)
		g.Expect(numbers).To(BeNil())
		g.Expect(log).To(And(HavePrefix("HYPERSHIFT_TEST_SEED: "), ContainSubstring("yesterday's")))
	})
}
