// SPDX-License-Identifier: Apache-2.0

package management

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// unservedFor is how long a negative answer is remembered. A kind that is installed meanwhile is found after that time.
const unservedFor = 15 * time.Second

// Unserved remembers which kinds the management cluster does not serve. A RESTMapper remembers only positive answers:
// each negative one costs it discovery requests, during which all other users of the mapper wait. The zero value is
// ready to use, also by several goroutines.
type Unserved struct {
	mu    sync.Mutex
	until map[schema.GroupKind]time.Time
}

// Serves is like the function Serves, but for 15 seconds it repeats a negative answer without asking the cluster.
func (u *Unserved) Serves(mapper meta.RESTMapper, kind schema.GroupKind, now time.Time) (bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.Before(u.until[kind]) {
		return false, nil
	}
	served, err := Serves(mapper, kind)
	if err == nil && !served {
		if u.until == nil {
			u.until = map[schema.GroupKind]time.Time{}
		}
		u.until[kind] = now.Add(unservedFor)
	}
	return served, err
}
