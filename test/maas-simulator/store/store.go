// SPDX-License-Identifier: Apache-2.0

// Package store keeps typed tables in memory, changes them in all-or-nothing
// updates, and writes each update to a journal so that a killed process finds
// everything again.
package store

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// compactAfter is how large the journal may grow, in bytes, beyond twice its
// size at the last compaction.
const compactAfter = 8 << 20

type edit struct {
	Table string          `json:"t"`
	Key   json.RawMessage `json:"k"`
	Row   json.RawMessage `json:"v,omitempty"`
}

type table interface {
	commit()
	rollback()
	dirty() ([]edit, error)
	snapshot() ([]edit, error)
	load(edit) error
}

// Store is a set of tables. The zero value is an empty store without a journal.
type Store struct {
	mu     sync.RWMutex
	tables map[string]table
	order  []string

	path      string
	journal   *os.File
	size      int64 // of the journal
	compacted int64 // its size after the last compaction
	failed    error // of the last compaction
}

func (s *Store) register(name string, t table) {
	if s.tables == nil {
		s.tables = map[string]table{}
	}
	s.tables[name] = t
	s.order = append(s.order, name)
}

// View runs fn while nothing changes.
func (s *Store) View(fn func() error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return fn()
}

// Update runs fn alone and keeps its changes when it returns nil; else, and when
// the journal cannot be written, nothing has changed.
func (s *Store) Update(fn func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.attempt(fn); err != nil {
		s.each(table.rollback)
		return err
	}
	s.each(table.commit)
	if s.journal != nil && s.size > 2*s.compacted+compactAfter {
		// The update is in the journal, whatever becomes of this: the next one tries again.
		s.failed = s.compact()
	}
	return nil
}

func (s *Store) attempt(fn func() error) error {
	defer func() {
		if failure := recover(); failure != nil {
			s.each(table.rollback)
			panic(failure)
		}
	}()
	if err := fn(); err != nil {
		return err
	}
	if s.journal == nil {
		return nil
	}
	edits, err := s.collect(table.dirty)
	if err != nil || len(edits) == 0 {
		return err
	}
	return s.append(edits)
}

func (s *Store) each(do func(table)) {
	for _, name := range s.order {
		do(s.tables[name])
	}
}

func (s *Store) collect(of func(table) ([]edit, error)) ([]edit, error) {
	var all []edit
	for _, name := range s.order {
		edits, err := of(s.tables[name])
		if err != nil {
			return nil, err
		}
		all = append(all, edits...)
	}
	return all, nil
}

func (s *Store) append(edits []edit) error {
	line, err := json.Marshal(edits)
	if err != nil {
		return fmt.Errorf("encoding an update: %w", err)
	}
	n, err := s.journal.Write(append(line, '\n'))
	if err != nil {
		// A torn line would hide what follows it.
		err = errors.Join(err, s.journal.Truncate(s.size))
		return fmt.Errorf("writing the state file %s: %w", s.path, err)
	}
	s.size += int64(n)
	return nil
}

// Open reads the journal at path into the tables, which must all be registered,
// and keeps writing to it. It reports whether the file held anything.
func (s *Store) Open(path string) (found bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return false, fmt.Errorf("opening the state file: %w", err)
	}
	s.path, s.journal = path, f
	if err := s.replay(f); err != nil {
		return false, errors.Join(fmt.Errorf("reading the state file %s: %w", path, err), f.Close())
	}
	if s.size == 0 {
		return false, nil
	}
	return true, s.compact()
}

// replay applies every whole line. The last one may be torn by a kill: that
// update was never acknowledged and is dropped.
func (s *Store) replay(f *os.File) error {
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if len(line) > 0 {
				return f.Truncate(s.size)
			}
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.apply(line); err != nil {
			return err
		}
		s.size += int64(len(line))
	}
}

func (s *Store) apply(line []byte) error {
	var edits []edit
	if err := json.Unmarshal(line, &edits); err != nil {
		return fmt.Errorf("at byte %d: %w", s.size, err)
	}
	for _, e := range edits {
		t := s.tables[e.Table]
		if t == nil {
			return fmt.Errorf("at byte %d: no table is called %q", s.size, e.Table)
		}
		if err := t.load(e); err != nil {
			return err
		}
	}
	s.each(table.commit)
	return nil
}

// compact replaces the journal by one that holds only the present rows.
func (s *Store) compact() error {
	edits, err := s.collect(table.snapshot)
	if err != nil {
		return err
	}
	line, err := json.Marshal(edits)
	if err != nil {
		return fmt.Errorf("encoding the state: %w", err)
	}
	line = append(line, '\n')
	fresh := s.path + ".new"
	if err := os.WriteFile(fresh, line, 0o600); err != nil {
		return fmt.Errorf("compacting the state file: %w", err)
	}
	f, err := os.OpenFile(fresh, os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("compacting the state file: %w", err)
	}
	if err := os.Rename(fresh, s.path); err != nil {
		return errors.Join(fmt.Errorf("compacting the state file: %w", err), f.Close())
	}
	err = s.journal.Close()
	s.journal, s.size, s.compacted = f, int64(len(line)), int64(len(line))
	return err
}

// Close stops writing to the journal, and says what kept it from being compacted.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal == nil {
		return nil
	}
	err := errors.Join(s.failed, s.journal.Close())
	s.journal, s.failed = nil, nil
	return err
}
