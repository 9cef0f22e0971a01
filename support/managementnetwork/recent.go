// SPDX-License-Identifier: Apache-2.0

package managementnetwork

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recently is how long the addresses of the API server and of Services are remembered.
const recently = 10 * time.Second

// Recent is for callers that read the addresses often. The zero value is ready to use, also by several goroutines.
type Recent struct {
	mu    sync.Mutex
	fixed *Addresses
	until time.Time
}

// Read is like the function Read, but reads what hardly ever changes once in ten seconds. It always reads the nodes.
func (r *Recent) Read(ctx context.Context, live, nodes client.Reader, now time.Time) (*Addresses, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fixed == nil || !now.Before(r.until) {
		fixed, err := readFixed(ctx, live)
		if err != nil {
			return nil, err
		}
		r.fixed, r.until = fixed, now.Add(recently)
	}
	found := *r.fixed
	return &found, readNodes(ctx, nodes, &found)
}
