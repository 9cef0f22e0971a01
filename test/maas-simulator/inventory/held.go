// SPDX-License-Identifier: Apache-2.0

package inventory

import "iter"

// Holding is an address of a machine's link.
type Holding struct {
	Machine   *Machine
	Interface *Interface
	Link      *Link
}

// Holdings returns an iterator over the addresses of all machines.
func (db *DB) Holdings() iter.Seq[Holding] {
	return func(yield func(Holding) bool) {
		for _, m := range db.Machines.All() {
			for h := range m.holdings() {
				if !yield(h) {
					return
				}
			}
		}
	}
}

// Links returns an iterator over the machine's links that have a subnet.
func (m *Machine) Links() iter.Seq[*Link] {
	return func(yield func(*Link) bool) {
		for i := range m.Interfaces {
			for j := range m.Interfaces[i].Links {
				if link := &m.Interfaces[i].Links[j]; link.SubnetID != nil && !yield(link) {
					return
				}
			}
		}
	}
}

func (m *Machine) holdings() iter.Seq[Holding] {
	return func(yield func(Holding) bool) {
		for i := range m.Interfaces {
			for j := range m.Interfaces[i].Links {
				link := &m.Interfaces[i].Links[j]
				if link.IP != "" && !yield(Holding{m, &m.Interfaces[i], link}) {
					return
				}
			}
		}
	}
}
