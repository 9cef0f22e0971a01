// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Table contains the rows of one kind. Its methods may be called only inside View (Get, All, Len) or Update (all) of
// its store.
//
// Callers must not change the results of Get and All, which are shared. They change rows with Edit and Put.
type Table[K cmp.Ordered, V any] struct {
	name  string
	key   func(*V) K
	clone func(*V) *V
	less  func(a, b *V) int

	rows    map[K]*V
	edits   map[K]*V // A nil value means that the row is deleted.
	sorted  []*V     // rows in the order of the table
	commits uint64
}

// NewTable registers a table. clone must copy the fields that callers change in place. less is the order of All; it
// must be strict and must not depend on fields that callers change.
func NewTable[K cmp.Ordered, V any](s *Store, name string, key func(*V) K, clone func(*V) *V, less func(a, b *V) int) *Table[K, V] {
	t := &Table[K, V]{name: name, key: key, clone: clone, less: less, rows: map[K]*V{}, edits: map[K]*V{}}
	s.register(name, t)
	return t
}

// Get returns the row, with the edits of the current update; nil if there is none.
func (t *Table[K, V]) Get(k K) *V {
	if v, edited := t.edits[k]; edited {
		return v
	}
	return t.rows[k]
}

// Edit returns a copy that is stored if the update succeeds; nil if there is no such row.
func (t *Table[K, V]) Edit(k K) *V {
	if v, edited := t.edits[k]; edited {
		return v
	}
	v := t.rows[k]
	if v == nil {
		return nil
	}
	v = t.clone(v)
	t.edits[k] = v
	return v
}

// Put adds a row, or replaces the row with the same key.
func (t *Table[K, V]) Put(v *V) { t.edits[t.key(v)] = v }

// Delete deletes a row. It does nothing if there is none with the key.
func (t *Table[K, V]) Delete(k K) {
	if t.Get(k) != nil {
		t.edits[k] = nil
	}
}

// All returns every row in the table's order.
func (t *Table[K, V]) All() []*V {
	if len(t.edits) == 0 {
		return t.sorted
	}
	return t.merged(slices.Clone(t.sorted))
}

// merged applies the edits to the rows in their order.
func (t *Table[K, V]) merged(all []*V) []*V {
	for k, v := range t.edits {
		old := t.rows[k]
		if old == nil && v == nil {
			continue
		}
		if old == nil {
			at, _ := slices.BinarySearchFunc(all, v, t.less)
			all = slices.Insert(all, at, v)
			continue
		}
		// The index is not found by order: if a key changed, a new row may have the same position.
		at := slices.Index(all, old)
		if v == nil {
			all = slices.Delete(all, at, at+1)
		} else {
			all[at] = v
		}
	}
	return all
}

// Commits returns the number of updates that changed the table.
func (t *Table[K, V]) Commits() uint64 { return t.commits }

// Find returns the first row, in the table's order, for which fits returns true; nil if there is none.
func (t *Table[K, V]) Find(fits func(*V) bool) *V {
	for _, v := range t.All() {
		if fits(v) {
			return v
		}
	}
	return nil
}

func (t *Table[K, V]) commit() {
	if len(t.edits) == 0 {
		return
	}
	t.commits++
	t.sorted = t.merged(t.sorted)
	for k, v := range t.edits {
		if v == nil {
			delete(t.rows, k)
			continue
		}
		t.rows[k] = v
	}
	clear(t.edits)
}

func (t *Table[K, V]) rollback() { clear(t.edits) }

func (t *Table[K, V]) dirty() ([]edit, error) {
	edits := make([]edit, 0, len(t.edits))
	for k, v := range t.edits {
		e, err := t.encode(k, v)
		if err != nil {
			return nil, err
		}
		edits = append(edits, e)
	}
	return edits, nil
}

func (t *Table[K, V]) snapshot() ([]edit, error) {
	edits := make([]edit, 0, len(t.rows))
	for _, v := range t.All() {
		e, err := t.encode(t.key(v), v)
		if err != nil {
			return nil, err
		}
		edits = append(edits, e)
	}
	return edits, nil
}

func (t *Table[K, V]) encode(k K, v *V) (edit, error) {
	key, err := json.Marshal(k)
	if err != nil {
		return edit{}, fmt.Errorf("encoding a key of table %s: %w", t.name, err)
	}
	if v == nil {
		return edit{Table: t.name, Key: key}, nil
	}
	row, err := json.Marshal(v)
	if err != nil {
		return edit{}, fmt.Errorf("encoding row %v of table %s: %w", k, t.name, err)
	}
	return edit{Table: t.name, Key: key, Row: row}, nil
}

func (t *Table[K, V]) load(e edit) error {
	if e.Row == nil {
		var k K
		if err := json.Unmarshal(e.Key, &k); err != nil {
			return fmt.Errorf("decoding a key of table %s: %w", t.name, err)
		}
		t.edits[k] = nil
		return nil
	}
	v := new(V)
	if err := json.Unmarshal(e.Row, v); err != nil {
		return fmt.Errorf("decoding row %s of table %s: %w", e.Key, t.name, err)
	}
	t.Put(v)
	return nil
}
