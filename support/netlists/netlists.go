// SPDX-License-Identifier: Apache-2.0

// Package netlists lists the kernel's objects of a node's network.
package netlists

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// tries is the maximum number of attempts to list objects that change during the dump. A second attempt is enough,
// except where pods start and stop all the time.
const tries = 100

// Whole repeats a list that changed while the kernel dumped it. Interfaces, addresses and routes change as pods start
// and stop. An interrupted dump matches neither the state before the change nor the state after it. Whole returns the
// error of the list, or netlink.ErrDumpInterrupted after a hundred attempts.
func Whole[T any](list func() ([]T, error)) (all []T, err error) {
	for range tries {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}
