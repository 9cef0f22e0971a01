// SPDX-License-Identifier: Apache-2.0

// Package store keeps typed tables in memory and changes them in atomic updates. It writes each update to a journal, so
// that a restarted process has the same state.
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

// compactAfter limits the growth of the journal. The journal is compacted when it exceeds twice its size after the
// last compaction by this number of bytes.
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
	size      int64 // size of the journal in bytes
	compacted int64 // size after the last compaction in bytes
	failed    error // error of the last compaction
}

func (s *Store) register(name string, t table) {
	if s.tables == nil {
		s.tables = map[string]table{}
	}
	s.tables[name] = t
	s.order = append(s.order, name)
}

// View runs fn while no update runs.
func (s *Store) View(fn func() error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return fn()
}

// Update runs fn exclusively and stores its changes if it returns nil. If fn fails or the journal cannot be written,
// the tables do not change.
func (s *Store) Update(fn func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.attempt(fn); err != nil {
		s.each(table.rollback)
		return err
	}
	s.each(table.commit)
	if s.journal != nil && s.size > 2*s.compacted+compactAfter {
		// The journal contains the update even if the compaction fails. The next update tries the compaction again.
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
		// An incomplete line would make the following lines unreadable.
		err = errors.Join(err, s.journal.Truncate(s.size))
		return fmt.Errorf("writing the state file %s: %w", s.path, err)
	}
	s.size += int64(n)
	return nil
}

// Open loads the journal at path into the tables, and writes further updates to it. All tables must be registered
// before. It reports whether the file contained any state.
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

// replay applies every complete line. The last line may be incomplete if the process was killed. Its update never
// succeeded, so it is dropped.
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

// compact replaces the journal with one that contains only the current rows.
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

// Close closes the journal. It returns the error of the last compaction, if any.
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
