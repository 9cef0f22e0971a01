// SPDX-License-Identifier: Apache-2.0

package management

import (
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// unservedFor is how long a mapper repeats that a kind is not served. A kind that is installed in that time is found
// afterwards.
const unservedFor = 15 * time.Second

// Remembering returns a mapper that repeats a negative answer of another mapper for 15 seconds. The mapper of
// controller-runtime remembers positive answers only. It sends two discovery requests for each negative answer, and
// all its other callers wait for them. The returned mapper may be used by several goroutines.
func Remembering(mapper meta.RESTMapper, clock clock.PassiveClock) meta.RESTMapper {
	return &rememberingMapper{RESTMapper: mapper, clock: clock, unserved: map[string]negative{}}
}

type rememberingMapper struct {
	meta.RESTMapper
	clock clock.PassiveClock

	mu       sync.Mutex
	unserved map[string]negative
}

// negative is the answer that a kind is not served.
type negative struct {
	err   error
	until time.Time
}

// RESTMapping implements meta.RESTMapper.
func (m *rememberingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	key := strings.Join(slices.Concat([]string{kind.String()}, versions), " ")
	m.mu.Lock()
	known := m.unserved[key]
	m.mu.Unlock()
	if m.clock.Now().Before(known.until) {
		return nil, known.err
	}
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if meta.IsNoMatchError(err) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.unserved[key] = negative{err: err, until: m.clock.Now().Add(unservedFor)}
	}
	return mapping, err
}
