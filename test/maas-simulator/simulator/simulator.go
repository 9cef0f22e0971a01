// SPDX-License-Identifier: Apache-2.0

// Package simulator implements a MAAS region in a Go process. It is an http.Handler over an inventory, and simulates
// the life cycle of the machines.
package simulator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/openshift/hypershift/test/maas-simulator/api"
	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/lifecycle"
	"github.com/openshift/hypershift/test/maas-simulator/load"
	"github.com/openshift/hypershift/test/maas-simulator/metadata"
	"github.com/openshift/hypershift/test/maas-simulator/render"
)

// Options configures a simulator. The zero value is an empty MAAS 3.4 in which operations take no time.
type Options struct {
	// Seed is the inventory as JSON, in the form of MAAS's responses. It is used if the state file is empty or missing.
	Seed []byte
	// StateFile is the file that stores the state; empty means memory only.
	StateFile string
	// Users are the users and their keys. nil means DefaultUsers: admin, with administrator's rights, and alice. Missing
	// keys are generated.
	Users []User
	// Version is 3.2 to 3.7, a full version, or main; empty means 3.4.
	Version string
	// Durations are the durations of operations; the zero value means no time.
	Durations lifecycle.Durations
	// Cost is the cost of requests; the zero value means no cost.
	Cost load.Cost
	// Backend boots the machines; nil means that only their states are simulated.
	Backend boot.Backend
	// MetadataURL is the metadata URL that machines get, with a trailing slash.
	MetadataURL string
	// Clock is the clock of the simulator; nil means the real one.
	Clock clock.Clock
	// RandomSeed makes IDs, keys and faults reproducible.
	RandomSeed uint64
	// Log logs errors outside of API requests; nil discards them.
	Log func(format string, args ...any)
}

// User is a user of the API.
type User struct {
	Name  string
	Admin bool
	// Key has the form consumer:token:secret; empty generates a key.
	Key string
}

// DefaultUsers are the users of a simulator whose Options have none.
var DefaultUsers = []User{{Name: "admin", Admin: true}, {Name: "alice"}}

// Simulator is a simulated MAAS region. Create one with New and run it with Run.
type Simulator struct {
	// DB is the inventory. Tests may read it inside View.
	DB *inventory.DB
	// Faults contains the faults to inject.
	Faults *faults.Set
	// Life simulates the life cycle of the machines.
	Life *lifecycle.Life
	// Load delays requests by their cost and counts it by operation.
	Load *load.Meter

	api, metadata http.Handler

	mu sync.Mutex
	// counts contains the request counters of each user.
	counts map[string]map[Count]int
}

// Count is the key of the request counters.
type Count struct {
	// Operation is the name of the operation, for example machine.deploy.
	Operation string
	// Status is the HTTP status of the response.
	Status int
}

// New returns a simulator. Machines change their state only while Run runs, or when Life.Tick is called.
func New(o Options) (*Simulator, error) {
	version, err := render.ParseVersion(orDefault(o.Version, "3.4"))
	if err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Backend == nil {
		o.Backend = &boot.None{}
	}
	if o.Users == nil {
		o.Users = DefaultUsers
	}
	db := inventory.NewDB(o.RandomSeed)
	set := faults.NewSet(o.Clock, o.RandomSeed)
	life := lifecycle.New(lifecycle.Config{
		DB: db, Clock: o.Clock, Version: version, Backend: o.Backend, Faults: set, Durations: o.Durations,
		MetadataURL: o.MetadataURL, Log: o.Log,
	})
	s := &Simulator{DB: db, Faults: set, Life: life, Load: load.NewMeter(o.Clock), counts: map[string]map[Count]int{}}
	if err := errors.Join(s.Load.Set(o.Cost), s.load(o)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s.api, s.metadata = api.New(life, s.Load, s.count), metadata.New(life)
	return s, nil
}

func orDefault(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// load reads the state file, or the seed if there is no state yet.
func (s *Simulator) load(o Options) error {
	found := false
	if o.StateFile != "" {
		var err error
		if found, err = s.DB.Open(o.StateFile); err != nil {
			return err
		}
	}
	if !found {
		if err := s.DB.Load(o.Seed, o.Clock.Now()); err != nil {
			return err
		}
	}
	return s.DB.Update(func() error {
		s.DB.Restarted()
		api.EnsureRegion(s.DB)
		if err := s.users(o.Users); err != nil {
			return err
		}
		if found {
			s.Life.Adopt()
		}
		return nil
	})
}

// users creates missing users and adds missing keys.
func (s *Simulator) users(users []User) error {
	for _, want := range users {
		u := s.DB.Users.Edit(want.Name)
		if u == nil {
			u = &inventory.User{Name: want.Name, Email: want.Name + "@example.com", Local: true}
			s.DB.Users.Put(u)
		}
		u.Superuser = want.Admin || u.Superuser
		if want.Key == "" && len(u.Keys) > 0 {
			continue
		}
		token := s.DB.NewToken()
		if want.Key != "" {
			parts := strings.Split(want.Key, ":")
			if len(parts) != 3 {
				return fmt.Errorf("the key of user %s must have the form consumer:token:secret", want.Name)
			}
			token = inventory.Token{Consumer: parts[0], Key: parts[1], Secret: parts[2]}
		}
		known := false
		for _, k := range u.Keys {
			known = known || k.Token == token
		}
		if !known {
			u.Keys = append(append([]inventory.NamedToken{}, u.Keys...), inventory.NamedToken{Name: "MAAS consumer", Token: token})
		}
	}
	return nil
}

// Run simulates the machines until the context ends.
func (s *Simulator) Run(ctx context.Context) { s.Life.Run(ctx) }

// Close closes the state file, and releases requests that wait for their cost.
func (s *Simulator) Close() error {
	return errors.Join(s.Load.Set(load.Cost{}), s.DB.Close())
}

// ServeHTTP serves the API and the metadata endpoint.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, metadata.Root) {
		s.metadata.ServeHTTP(w, r)
		return
	}
	s.api.ServeHTTP(w, r)
}

// Key returns the newest API key of a user; empty if there is none.
func (s *Simulator) Key(user string) string {
	key := ""
	// The function always returns nil.
	_ = s.DB.View(func() error {
		if u := s.DB.Users.Get(user); u != nil && len(u.Keys) > 0 {
			k := u.Keys[len(u.Keys)-1]
			key = k.Consumer + ":" + k.Key + ":" + k.Secret
		}
		return nil
	})
	return key
}

// Keys returns the newest API key of every user with a key.
func (s *Simulator) Keys() map[string]string {
	keys := map[string]string{}
	_ = s.DB.View(func() error {
		for _, u := range s.DB.Users.All() {
			if len(u.Keys) > 0 {
				k := u.Keys[len(u.Keys)-1]
				keys[u.Name] = k.Consumer + ":" + k.Key + ":" + k.Secret
			}
		}
		return nil
	})
	return keys
}

func (s *Simulator) count(operation, user string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts[user] == nil {
		s.counts[user] = map[Count]int{}
	}
	s.counts[user][Count{operation, status}]++
}

// Requests returns the number of requests of the users by operation and status, since the start or the last
// ResetRequests. Without arguments, it counts all users.
func (s *Simulator) Requests(users ...string) map[Count]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[Count]int{}
	for user, counts := range s.counts {
		if len(users) > 0 && !slices.Contains(users, user) {
			continue
		}
		for k, n := range counts {
			out[k] += n
		}
	}
	return out
}

// EnsureUser returns the API key of a user. It creates the user if there is none with the name.
func (s *Simulator) EnsureUser(u User) (string, error) {
	if err := s.DB.Update(func() error { return s.users([]User{u}) }); err != nil {
		return "", err
	}
	return s.Key(u.Name), nil
}

// ResetRequests sets all counters to zero, including those of the load.
func (s *Simulator) ResetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.counts)
	s.Load.Reset()
}

// Machine returns a copy of the machine with the system ID or hostname; nil if there is none.
func (s *Simulator) Machine(name string) *inventory.Machine {
	var found *inventory.Machine
	_ = s.DB.View(func() error {
		if found = s.DB.Machines.Get(name); found == nil {
			found = s.DB.MachineByName(name)
		}
		if found != nil {
			found = found.Clone()
		}
		return nil
	})
	return found
}

// Machines returns a copy of every machine.
func (s *Simulator) Machines() []*inventory.Machine {
	var out []*inventory.Machine
	_ = s.DB.View(func() error {
		for _, m := range s.DB.Machines.All() {
			out = append(out, m.Clone())
		}
		return nil
	})
	return out
}

// Change edits a machine outside of the MAAS API, as an event on the hardware would. It reports whether the machine
// exists.
func (s *Simulator) Change(systemID string, change func(*inventory.Machine)) bool {
	found := false
	// The update fails only if the state file cannot be written. In that case, the caller sees no change.
	err := s.DB.Update(func() error {
		if m := s.DB.Machines.Edit(systemID); m != nil {
			found = true
			change(m)
		}
		return nil
	})
	s.Life.Wake()
	return found && err == nil
}

// ChangeVMHost edits a VM host outside of the MAAS API. It reports whether a host with the name exists.
func (s *Simulator) ChangeVMHost(name string, change func(*inventory.VMHost)) bool {
	found := false
	err := s.DB.Update(func() error {
		if h := s.DB.VMHostByName(name); h != nil {
			found = true
			change(s.DB.VMHosts.Edit(h.ID))
		}
		return nil
	})
	s.Life.Wake()
	return found && err == nil
}

// Now returns the simulator's time.
func (s *Simulator) Now() time.Time { return s.Life.Clock.Now() }
