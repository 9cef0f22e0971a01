// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/store"
)

type row struct {
	Rank int
	Name string
	Text string
}

type db struct {
	store.Store
	rows *store.Table[string, row]
}

func newDB() *db {
	d := &db{}
	d.rows = store.NewTable(&d.Store, "rows", func(r *row) string { return r.Name },
		func(r *row) *row { c := *r; return &c }, func(a, b *row) int { return cmp.Compare(a.Rank, b.Rank) })
	return d
}

func (d *db) names() string {
	var names []string
	_ = d.View(func() error {
		for _, r := range d.rows.All() {
			names = append(names, r.Name+r.Text)
		}
		return nil
	})
	return strings.Join(names, " ")
}

func (d *db) put(t *testing.T, rows ...row) {
	t.Helper()
	err := d.Update(func() error {
		for _, r := range rows {
			d.rows.Put(&r)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestUpdate(t *testing.T) {
	t.Run("When rows are added out of order, it should list them in order", func(t *testing.T) {
		g := NewWithT(t)
		d := newDB()
		d.put(t, row{3, "c", ""}, row{1, "a", ""})
		d.put(t, row{2, "b", ""})
		g.Expect(d.names()).To(Equal("a b c"))
	})
	t.Run("When an update fails, it should be rolled back", func(t *testing.T) {
		g := NewWithT(t)
		d := newDB()
		d.put(t, row{1, "a", ""}, row{2, "b", ""})
		failure := errors.New("no")
		err := d.Update(func() error {
			d.rows.Edit("a").Text = "!"
			d.rows.Delete("b")
			d.rows.Put(&row{3, "c", ""})
			g.Expect(d.rows.All()).To(HaveLen(2), "the update sees its own changes")
			g.Expect(d.rows.Get("b")).To(BeNil())
			return failure
		})
		g.Expect(err).To(MatchError(failure))
		g.Expect(d.names()).To(Equal("a b"))
	})
	t.Run("When an update panics, it should be rolled back", func(t *testing.T) {
		g := NewWithT(t)
		d := newDB()
		d.put(t, row{1, "a", ""})
		g.Expect(func() {
			_ = d.Update(func() error { d.rows.Edit("a").Text = "!"; panic("oops") })
		}).To(Panic())
		g.Expect(d.names()).To(Equal("a"))
	})
	t.Run("When a row is edited, earlier readers should keep the old row", func(t *testing.T) {
		g := NewWithT(t)
		d := newDB()
		d.put(t, row{1, "a", "x"})
		held := d.rows.Get("a")
		g.Expect(d.Update(func() error { d.rows.Edit("a").Text = "y"; return nil })).To(Succeed())
		g.Expect(held.Text).To(Equal("x"))
		g.Expect(d.names()).To(Equal("ay"))
	})
	t.Run("When a row is deleted and added again, it should be listed once", func(t *testing.T) {
		g := NewWithT(t)
		d := newDB()
		d.put(t, row{1, "a", ""}, row{2, "b", ""})
		g.Expect(d.Update(func() error {
			d.rows.Delete("a")
			d.rows.Put(&row{1, "a", "2"})
			d.rows.Delete("nobody")
			return nil
		})).To(Succeed())
		g.Expect(d.names()).To(Equal("a2 b"))
		g.Expect(d.rows.Edit("nobody")).To(BeNil())
		g.Expect(d.rows.Find(func(r *row) bool { return r.Rank == 2 }).Name).To(Equal("b"))
		g.Expect(d.rows.Find(func(r *row) bool { return r.Rank == 9 })).To(BeNil())
	})
	t.Run("When many clients update at once, no update should be lost", func(t *testing.T) {
		g := NewWithT(t)
		d := newDB()
		d.put(t, row{0, "counter", ""})
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				_ = d.Update(func() error {
					d.rows.Edit("counter").Text += "x"
					d.rows.Put(&row{i + 1, fmt.Sprint(i), ""})
					return nil
				})
			})
		}
		all.Wait()
		g.Expect(d.rows.Get("counter").Text).To(HaveLen(50))
		g.Expect(d.rows.All()).To(HaveLen(51))
	})
}

func open(t *testing.T, path string) (*db, bool) {
	t.Helper()
	d := newDB()
	found, err := d.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return d, found
}

func TestOpen(t *testing.T) {
	t.Run("When a process is killed during a write, every complete update should be recovered", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "state")
		first, found := open(t, path)
		g.Expect(found).To(BeFalse())
		first.put(t, row{1, "a", ""}, row{2, "b", ""})
		g.Expect(first.Update(func() error { first.rows.Delete("b"); first.rows.Edit("a").Text = "!"; return nil })).To(Succeed())
		whole, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(path, append(whole, `[{"t":"rows","k":"c","v":{"Na`...), 0o600)).To(Succeed())

		second, found := open(t, path)
		g.Expect(found).To(BeTrue())
		g.Expect(second.names()).To(Equal("a!"))
		second.put(t, row{3, "c", ""})

		third, _ := open(t, path)
		g.Expect(third.names()).To(Equal("a! c"))
	})
	t.Run("When the journal grows, it should be compacted and keep everything", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "state")
		d, _ := open(t, path)
		big := strings.Repeat("x", 1<<20)
		for i := range 12 {
			d.put(t, row{1, "a", fmt.Sprint(i) + big})
		}
		info, err := os.Stat(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Size()).To(BeNumerically("<", 9<<20))
		again, _ := open(t, path)
		g.Expect(again.rows.Get("a").Text).To(HavePrefix("11x"))
	})
	t.Run("When the file has other content, the error should say so", func(t *testing.T) {
		g := NewWithT(t)
		for name, content := range map[string]string{
			"no JSON":       "hello\n",
			"unknown table": `[{"t":"planets","k":"x","v":{}}]` + "\n",
			"wrong row":     `[{"t":"rows","k":"x","v":[]}]` + "\n",
			"wrong key":     `[{"t":"rows","k":{}}]` + "\n",
		} {
			path := filepath.Join(t.TempDir(), "state")
			g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
			_, err := newDB().Open(path)
			g.Expect(err).To(MatchError(ContainSubstring(path)), name)
		}
		_, err := newDB().Open(t.TempDir())
		g.Expect(err).To(HaveOccurred(), "a folder is no state file")
	})
	t.Run("When the file cannot be written, it should reject the update", func(t *testing.T) {
		g := NewWithT(t)
		d, _ := open(t, filepath.Join(t.TempDir(), "state"))
		g.Expect(d.Close()).To(Succeed())
		g.Expect(d.Close()).To(Succeed(), "closing twice is no error")
		d.put(t, row{1, "a", ""})
		g.Expect(d.names()).To(Equal("a"), "a closed store goes on in memory")
	})
}
