// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// TestPlaces verifies that a new row takes the position of a deleted row with the same order. A change of a row's key
// deletes the row and adds a new one.
func TestPlaces(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "state")
	d, _ := open(t, path)
	d.put(t, row{1, "a", ""}, row{2, "b0", ""}, row{3, "c", ""})
	names := []string{"b0", "b1"}
	// The edits have no fixed order, so the test repeats until both orders have occurred.
	for i := range 32 {
		from, to := names[i%2], names[(i+1)%2]
		g.Expect(d.Update(func() error {
			d.rows.Delete(from)
			d.rows.Put(&row{2, to, ""})
			g.Expect(d.rows.All()).To(HaveExactElements(HaveField("Name", "a"), HaveField("Name", to), HaveField("Name", "c")))
			return nil
		})).To(Succeed())
		g.Expect(d.names()).To(Equal("a " + to + " c"))
		g.Expect(d.rows.Get(from)).To(BeNil())
	}
	again, _ := open(t, path)
	g.Expect(again.names()).To(Equal("a b0 c"))
}

// TestWithinAnUpdate verifies that an update reads its own changes.
func TestWithinAnUpdate(t *testing.T) {
	g := NewWithT(t)
	d := newDB()
	d.put(t, row{1, "a", ""}, row{2, "b", ""})
	g.Expect(d.Update(func() error {
		d.rows.Put(&row{3, "c", "new"})
		g.Expect(d.rows.Get("c").Text).To(Equal("new"))
		d.rows.Edit("c").Text = "newer"
		g.Expect(d.rows.Get("c").Text).To(Equal("newer"))
		d.rows.Edit("a").Text = "1"
		d.rows.Edit("a").Text += "2"
		d.rows.Delete("b")
		g.Expect(d.rows.Edit("b")).To(BeNil(), "what is deleted cannot be edited")
		d.rows.Delete("b")
		d.rows.Put(&row{4, "d", ""})
		d.rows.Delete("d")
		g.Expect(d.rows.All()).To(HaveLen(2))
		g.Expect(d.rows.Find(func(r *row) bool { return r.Text == "newer" })).NotTo(BeNil())
		return nil
	})).To(Succeed())
	g.Expect(d.names()).To(Equal("a12 cnewer"))
	g.Expect(d.rows.Get("d")).To(BeNil())
	g.Expect(d.rows.Get("b")).To(BeNil())
}
