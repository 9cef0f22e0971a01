// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
)

// printed caches the JSON of machines, because long lists are requested often and change rarely.
type printed struct {
	mu    sync.Mutex
	epoch uint64
	rows  map[string]encoded
}

// encoded is the JSON of a row. Rows never change in place, so an equal pointer means an unchanged row.
type encoded struct {
	row  *inventory.Machine
	json json.RawMessage
}

// epoch changes when any table changes on which the JSON of machines depends. It ignores the table of machines
// itself.
func epoch(db *inventory.DB) uint64 {
	return db.Zones.Commits() + db.Pools.Commits() + db.Domains.Commits() + db.DNSResources.Commits() + db.DNSRecords.Commits() +
		db.VLANs.Commits() + db.Fabrics.Commits() + db.Spaces.Commits() + db.Subnets.Commits() + db.VMHosts.Commits()
}

// machineJSON encodes a machine. It may be called only inside View.
func (s *Server) machineJSON(m *inventory.Machine) (json.RawMessage, error) {
	now := epoch(s.DB)
	s.printed.mu.Lock()
	if s.printed.epoch != now || s.printed.rows == nil {
		s.printed.epoch, s.printed.rows = now, map[string]encoded{}
	}
	kept := s.printed.rows[m.SystemID]
	s.printed.mu.Unlock()
	if kept.row == m {
		return kept.json, nil
	}
	body, err := json.Marshal(s.print.Machine(m))
	if err != nil {
		return nil, err
	}
	s.printed.mu.Lock()
	defer s.printed.mu.Unlock()
	if s.printed.epoch == now {
		s.printed.rows[m.SystemID] = encoded{m, body}
	}
	return body, nil
}

// list is a JSON list of encoded elements.
type list [][]byte

func (l list) encode() []byte {
	return append(append([]byte{'['}, bytes.Join(l, []byte{','})...), ']')
}
