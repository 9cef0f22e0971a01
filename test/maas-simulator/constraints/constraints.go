// SPDX-License-Identifier: Apache-2.0

// Package constraints parses the constraints by which allocate and the list filters select machines.
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

// Set contains the constraints of a request.
type Set struct {
	rules []rule
	// storage and interfaces are the labelled constraints. Matched reports which devices satisfy them.
	storage    []storageRule
	interfaces []interfaceRule
	// given contains the parameters of the request.
	given form.Values
	// SystemID is the requested system ID, or "".
	SystemID string
}

// rule is one constraint. Messages list the rules sorted by name.
type rule struct {
	name, resolved string
	fits           func(*inventory.Machine) bool
}

// parser parses the values of one parameter into a rule.
type parser func(c *context, values []string) (resolved string, fits func(*inventory.Machine) bool)

// context is the input and output of a parser.
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

// notConstraints are the parameters of allocate that are no constraints.
var notConstraints = []string{
	"op", "agent_name", "comment", "bridge_all", "bridge_type", "bridge_stp", "bridge_fd", "dry_run", "verbose",
	"install_kvm", "install_rackd", "register_vmhost", "ephemeral_deploy", "enable_hw_sync",
}

// Acquire parses the constraints of allocate. It must run inside View or Update.
func Acquire(db *inventory.DB, values form.Values) (*Set, error) {
	return parse(db, values.Without(notConstraints...), acquireParsers)
}

// Filter parses the filters of a list. It must run inside View or Update.
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

// Resolved describes the constraints after parsing.
func (s *Set) Resolved() string {
	parts := make([]string, len(s.rules))
	for i, r := range s.rules {
		parts[i] = r.name + "=" + r.resolved
	}
	return strings.Join(parts, " ")
}

// Asked describes the constraints of the request in MAAS's notation.
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

// quote quotes a string like Python's repr.
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

// Cost returns the cost by which machines are ordered. MAAS allocates the cheapest machine that satisfies the
// constraints.
func Cost(m *inventory.Machine) float64 { return float64(m.CPUCount) + float64(m.Memory)/1024 }
