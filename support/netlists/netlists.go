// SPDX-License-Identifier: Apache-2.0

// Package netlists lists what the kernel has of a node's network.
package netlists

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// tries is how often something is listed that changed while the kernel told of it. A second one is enough, but where pods come and go all the time.
const tries = 100

// Whole lists again what changed while the kernel told of it: as pods come and go, so do interfaces, addresses and routes, and what was told is then
// neither what was there before nor what is there now. The error is that of the list, or netlink.ErrDumpInterrupted after a hundred tries.
func Whole[T any](list func() ([]T, error)) (all []T, err error) {
	for range tries {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}
