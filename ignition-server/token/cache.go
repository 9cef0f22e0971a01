// SPDX-License-Identifier: Apache-2.0

// Package token manages the bearer tokens with which machines fetch their configuration. It renders the configuration
// of each token Secret, caches it in memory, rotates tokens and drops expired ones.
package token

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/openshift/hypershift/support/machinetoken"
)

// TTL is how long the cache serves a token after the controller last read it in its Secret. The Secret of a valid
// token is reconciled at least every half TTL.
const TTL = 11 * time.Hour

// Entry is the data of a token.
type Entry struct {
	// Secret holds the token.
	Secret types.NamespacedName
	// NodePool is <namespace>/<name> of the pool.
	NodePool string
	// Machine is the name of the Machine to which the token belongs; empty for the token of all machines of the pool.
	Machine string
	// Architecture is the architecture of the pool's machines, in Go's spelling; empty for amd64.
	Architecture string
	// Hash identifies the configuration within the pool.
	Hash string
	// Payload is the configuration of a node, in JSON; nil if it could not be rendered.
	Payload []byte
	// InPlace is the configuration for updates of the pool's Nodes; nil for a pool that replaces its machines.
	InPlace *InPlace
}

// InPlace is a configuration for machines that already are Nodes.
type InPlace struct {
	// Plan is the node plan, in JSON; nil if the configuration cannot be applied in place.
	Plan []byte
	// Refusal states why there is no plan, and the remedy.
	Refusal string
}

// Cache maps tokens to payloads. It is safe for concurrent use; the zero value is not usable.
type Cache struct {
	clock   clock.PassiveClock
	mu      sync.RWMutex
	secrets map[types.NamespacedName]*held
	tokens  map[string]*held
}

type held struct {
	entry   Entry
	tokens  []string
	expires time.Time
}

// NewCache returns an empty cache.
func NewCache(c clock.PassiveClock) *Cache {
	return &Cache{clock: c, secrets: map[types.NamespacedName]*held{}, tokens: map[string]*held{}}
}

// Put sets the entry of tokens, and removes other tokens of the same Secret. A nil payload keeps the Secret's previous
// payload: machines that boot now should not wait until the user corrects a mistake.
func (c *Cache) Put(e Entry, tokens ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.secrets[e.Secret]; old != nil && e.Payload == nil {
		e.Payload, e.InPlace = old.entry.Payload, old.entry.InPlace
	}
	c.drop(e.Secret)
	if e.Payload == nil {
		return
	}
	h := &held{entry: e, expires: c.clock.Now().Add(TTL)}
	for _, token := range tokens {
		if token != "" {
			h.tokens = append(h.tokens, token)
			c.tokens[token] = h
		}
	}
	c.secrets[e.Secret] = h
}

// Get returns the entry of a token. The cache derives the tokens of single machines from the cached tokens.
func (c *Cache) Get(token string) (Entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	h, machine := c.tokens[token], ""
	if h == nil {
		h, machine = c.ofMachine(token)
	}
	if h == nil || c.clock.Now().After(h.expires) {
		return Entry{}, false
	}
	entry := h.entry
	entry.Machine = machine
	return entry, true
}

// Config returns the configuration of a pool with the given hash.
func (c *Cache) Config(pool, hash string) (Entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, h := range c.secrets {
		if h.entry.NodePool == pool && h.entry.Hash == hash && hash != "" && !c.clock.Now().After(h.expires) {
			return h.entry, true
		}
	}
	return Entry{}, false
}

func (c *Cache) ofMachine(token string) (*held, string) {
	machine, ok := machinetoken.Machine(token)
	if !ok {
		return nil, ""
	}
	for pool, h := range c.tokens {
		if machinetoken.Verify(token, []byte(pool)) {
			return h, machine
		}
	}
	return nil, ""
}

// Drop removes the tokens of a Secret.
func (c *Cache) Drop(secret types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(secret)
}

func (c *Cache) drop(secret types.NamespacedName) {
	if h := c.secrets[secret]; h != nil {
		for _, token := range h.tokens {
			delete(c.tokens, token)
		}
	}
	delete(c.secrets, secret)
}

// Len returns the number of tokens.
func (c *Cache) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.tokens)
}
