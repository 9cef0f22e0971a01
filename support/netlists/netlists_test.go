// SPDX-License-Identifier: Apache-2.0

package netlists

import (
	"errors"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestWhole(t *testing.T) {
	denied := errors.New("denied")
	for name, tt := range map[string]struct {
		interrupted int
		last        error
		err         error
		asked       int
	}{
		"When nothing changes, it should list once":                               {asked: 1},
		"When something changes twice, it should list a third time":               {interrupted: 2, asked: 3},
		"When something changes every time, it should return an error in the end": {interrupted: tries, err: netlink.ErrDumpInterrupted, asked: tries},
		"When the kernel returns an error, it should not list again":              {last: denied, err: denied, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			all, err := Whole(func() ([]string, error) {
				if asked++; asked <= tt.interrupted {
					return []string{"half"}, netlink.ErrDumpInterrupted
				}
				return []string{"a", "b"}, tt.last
			})
			if !errors.Is(err, tt.err) || asked != tt.asked || (err == nil && len(all) != 2) {
				t.Errorf("listed %d times: %v, %v; want %d times, %v", asked, all, err, tt.asked, tt.err)
			}
		})
	}
}
