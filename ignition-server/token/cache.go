// SPDX-License-Identifier: Apache-2.0

// Package token keeps the bearer tokens that machines fetch their configuration with: it renders the configuration of
// each token Secret, holds it in memory, rotates tokens and drops expired ones.
package token

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/openshift/hypershift/support/machinetoken"
)

// TTL is how long a token is served without being seen in its Secret again. A live Secret is reconciled at least every
// half TTL.
const TTL = 11 * time.Hour

// Entry is what a token stands for.
type Entry struct {
	// Secret holds the token.
	Secret types.NamespacedName
	// NodePool is <namespace>/<name> of the pool.
	NodePool string
	// Machine is the name of the Machine whose token it is; empty for the token that all machines of the pool may have.
	Machine string
	// Architecture is that of the pool's machines, in Go's words; empty for amd64.
	Architecture string
	// Hash names the configuration among those of the pool.
	Hash string
	// Payload is the configuration of a node, in JSON; nil while it could not be rendered.
	Payload []byte
	// InPlace is what Nodes of the pool are updated by; nil for a pool whose machines are replaced.
	InPlace *InPlace
}

// InPlace is a configuration for machines that are Nodes.
type InPlace struct {
	// Plan is the node plan, in JSON; nil where there can be none.
	Plan []byte
	// Refusal says why there is none, and what to do.
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

// NewCache makes an empty cache.
func NewCache(c clock.PassiveClock) *Cache {
	return &Cache{clock: c, secrets: map[types.NamespacedName]*held{}, tokens: map[string]*held{}}
}

// Put makes tokens, and no other tokens of the same Secret, stand for the entry. A nil payload keeps the one that the
// Secret had: machines that boot now should not wait for a mistake to be corrected.
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

// Get returns what a token stands for. Tokens of single machines are made of those that are held.
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

// Config returns a configuration of a pool by its name among them.
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

// Drop forgets the tokens of a Secret.
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

// Len counts the tokens.
func (c *Cache) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.tokens)
}
