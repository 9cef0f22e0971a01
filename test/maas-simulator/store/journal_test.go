// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/store"
)

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestFullDisk verifies that an update without enough disk space fails completely, and that no incomplete line hides
// later updates.
func TestFullDisk(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "state")
	d, _ := open(t, path)
	d.put(t, row{1, "a", ""})
	before := sizeOf(t, path)

	// The file size limit simulates a full disk.
	var room syscall.Rlimit
	g.Expect(syscall.Getrlimit(syscall.RLIMIT_FSIZE, &room)).To(Succeed())
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	g.Expect(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(before) + 20, Max: room.Max})).To(Succeed())
	err := d.Update(func() error {
		d.rows.Put(&row{2, "b", strings.Repeat("x", 1000)})
		return nil
	})
	g.Expect(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &room)).To(Succeed())

	g.Expect(err).To(MatchError(And(ContainSubstring("writing the state file "+path), ContainSubstring("file too large"))))
	g.Expect(d.names()).To(Equal("a"), "the update did not happen")
	g.Expect(sizeOf(t, path)).To(Equal(before), "half a line is taken back")
	d.put(t, row{3, "c", ""})
	again, _ := open(t, path)
	g.Expect(again.names()).To(Equal("a c"))
}

// TestCompactionThatFails verifies that an update succeeds even if the compaction fails, because the journal contains
// it.
func TestCompactionThatFails(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "state")
	d, _ := open(t, path)
	g.Expect(os.Mkdir(path+".new", 0o700)).To(Succeed())
	big := strings.Repeat("x", 5<<20)
	for i := range 2 {
		d.put(t, row{1, "a", fmt.Sprint(i) + big})
	}
	g.Expect(d.rows.Get("a").Text).To(HavePrefix("1x"))
	g.Expect(sizeOf(t, path)).To(BeNumerically(">", 10<<20), "nothing was compacted")

	g.Expect(os.Remove(path + ".new")).To(Succeed())
	d.put(t, row{1, "a", "small"})
	g.Expect(sizeOf(t, path)).To(BeNumerically("<", 1<<10), "it is tried again")
	g.Expect(d.Close()).To(Succeed(), "and what failed before is over")
	again, _ := open(t, path)
	g.Expect(again.names()).To(Equal("asmall"))
}

func TestCloseTellsOfACompactionThatFailed(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "state")
	d, _ := open(t, path)
	g.Expect(os.Mkdir(path+".new", 0o700)).To(Succeed())
	d.put(t, row{1, "a", strings.Repeat("x", 9<<20)})
	g.Expect(d.Close()).To(MatchError(ContainSubstring("compacting the state file")))
	g.Expect(d.Close()).To(Succeed(), "once is enough")
}

// TestWhatIsWritten verifies that the journal has one line for each update with changes, and no others.
func TestWhatIsWritten(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "state")
	d, _ := open(t, path)
	lines := func() int {
		text, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		return strings.Count(string(text), "\n")
	}
	d.put(t, row{1, "a", ""}, row{2, "b", ""})
	g.Expect(lines()).To(Equal(1), "an update is one line, and so happens as a whole")
	commits := d.rows.Commits()
	g.Expect(d.Update(func() error { _ = d.rows.All(); return nil })).To(Succeed())
	g.Expect(d.Update(func() error { d.rows.Edit("a").Text = "!"; return fmt.Errorf("no") })).NotTo(Succeed())
	g.Expect(func() { _ = d.Update(func() error { d.rows.Delete("a"); panic("oops") }) }).To(Panic())
	g.Expect(lines()).To(Equal(1))
	g.Expect(d.rows.Commits()).To(Equal(commits), "nothing was changed")
	d.put(t, row{1, "a", "?"})
	g.Expect(lines()).To(Equal(2))
	g.Expect(d.rows.Commits()).To(Equal(commits + 1))

	info, err := os.Stat(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)), "it holds API keys")
	g.Expect(d.Update(func() error { d.rows.Delete("b"); return nil })).To(Succeed())
	again, found := open(t, path)
	g.Expect(found).To(BeTrue())
	g.Expect(again.names()).To(Equal("a?"))
	g.Expect(lines()).To(Equal(1), "opening compacts")
	info, err = os.Stat(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
}

func TestNothingWholeInTheFile(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "state")
	g.Expect(os.WriteFile(path, []byte(`[{"t":"rows","k":"a","v":{"Na`), 0o600)).To(Succeed())
	d, found := open(t, path)
	g.Expect(found).To(BeFalse(), "the seed is read as for a new site")
	d.put(t, row{1, "a", ""})
	again, found := open(t, path)
	g.Expect(found).To(BeTrue())
	g.Expect(again.names()).To(Equal("a"))
}

// anything is a row with a value that may be impossible to encode as JSON.
type anything struct {
	Name  string
	Value any
}

func TestRowsThatCannotBeWritten(t *testing.T) {
	g := NewWithT(t)
	var s store.Store
	rows := store.NewTable(&s, "things", func(a *anything) string { return a.Name },
		func(a *anything) *anything { c := *a; return &c }, func(a, b *anything) int { return cmp.Compare(a.Name, b.Name) })
	_, err := s.Open(filepath.Join(t.TempDir(), "state"))
	g.Expect(err).NotTo(HaveOccurred())
	defer s.Close()
	put := func(value any) error {
		return s.Update(func() error { rows.Put(&anything{"a", value}); return nil })
	}
	g.Expect(put(1)).To(Succeed())
	g.Expect(put(func() {})).To(MatchError(ContainSubstring("encoding row a of table things")))
	g.Expect(rows.Get("a").Value).To(Equal(1), "the row is as it was")
	g.Expect(put(2)).To(Succeed(), "and can be changed again")
}
