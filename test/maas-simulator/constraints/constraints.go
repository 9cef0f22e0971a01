// SPDX-License-Identifier: Apache-2.0

// Package constraints understands the parameters with which machines are
// chosen, by allocate and by list filters.
package constraints

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/form"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
)

// Set is what a request asks for.
type Set struct {
	rules []rule
	// Storage and Interfaces are the labelled constraints, for the map of what
	// was matched.
	storage    []storageRule
	interfaces []interfaceRule
	// given is the request as it was sent.
	given form.Values
	// SystemID is what was asked for by identity, else "".
	SystemID string
}

// rule is one constraint; it sorts by its name in messages.
type rule struct {
	name, resolved string
	fits           func(*inventory.Machine) bool
}

// parser turns the values of one parameter into a rule.
type parser func(c *context, values []string) (resolved string, fits func(*inventory.Machine) bool)

// context is what a parser may look at and write to.
type context struct {
	db     *inventory.DB
	set    *Set
	key    string
	fields problem.Fields
	err    error
}

func (c *context) refuse(format string, args ...any) (string, func(*inventory.Machine) bool) {
	c.fields.Add(c.key, format, args...)
	return "", nil
}

// notConstraints are parameters of allocate that choose nothing.
var notConstraints = []string{
	"op", "agent_name", "comment", "bridge_all", "bridge_type", "bridge_stp", "bridge_fd", "dry_run", "verbose",
	"install_kvm", "install_rackd", "register_vmhost", "ephemeral_deploy", "enable_hw_sync",
}

// Acquire reads the constraints of allocate. It must run inside View or Update.
func Acquire(db *inventory.DB, values form.Values) (*Set, error) {
	return parse(db, values.Without(notConstraints...), acquireParsers)
}

// Filter reads the filters of a list. It must run inside View or Update.
func Filter(db *inventory.DB, values form.Values) (*Set, error) {
	return parse(db, values.Without("op"), filterParsers)
}

func parse(db *inventory.DB, values form.Values, parsers map[string]parser) (*Set, error) {
	c := &context{db: db, set: &Set{given: values}, fields: problem.Fields{}}
	for _, key := range values.Keys() {
		parse, known := parsers[key]
		if !known {
			c.fields.Add(key, "No such constraint.")
			continue
		}
		given := slices.DeleteFunc(values.All(key), func(v string) bool { return v == "" })
		if len(given) == 0 {
			continue
		}
		c.key = key
		resolved, fits := parse(c, given)
		if fits != nil {
			c.set.rules = append(c.set.rules, rule{key, resolved, fits})
		}
	}
	if c.err != nil {
		return nil, c.err
	}
	sort.Slice(c.set.rules, func(i, j int) bool { return c.set.rules[i].name < c.set.rules[j].name })
	return c.set, c.fields.Problem()
}

// Fits reports whether the machine satisfies every constraint.
func (s *Set) Fits(m *inventory.Machine) bool {
	for _, r := range s.rules {
		if !r.fits(m) {
			return false
		}
	}
	return true
}

// Resolved describes the constraints as the server understood them.
func (s *Set) Resolved() string {
	parts := make([]string, len(s.rules))
	for i, r := range s.rules {
		parts[i] = r.name + "=" + r.resolved
	}
	return strings.Join(parts, " ")
}

// Asked describes the constraints as they were sent, in the server's notation.
func Asked(values form.Values) string {
	values = values.Without("op")
	parts := []string{}
	for _, key := range values.Keys() {
		quoted := []string{}
		for _, v := range values.All(key) {
			quoted = append(quoted, quote(v))
		}
		parts = append(parts, fmt.Sprintf("(%s, [%s])", quote(key), strings.Join(quoted, ", ")))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// quote writes a string as Python's repr does.
func quote(s string) string {
	mark := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		mark = `"`
	}
	s = strings.ReplaceAll(s, `\`, `\\`)
	if mark == "'" {
		s = strings.ReplaceAll(s, "'", `\'`)
	}
	return mark + strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s) + mark
}

// Cost orders machines: the cheapest one that fits is taken.
func Cost(m *inventory.Machine) float64 { return float64(m.CPUCount) + float64(m.Memory)/1024 }
