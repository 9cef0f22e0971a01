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
		"When nothing changes, it should list once":                 {asked: 1},
		"When something changes twice, it should list a third time": {interrupted: 2, asked: 3},
		"When it is always changing, it should say so in the end":   {interrupted: tries, err: netlink.ErrDumpInterrupted, asked: tries},
		"When the kernel refuses, it should not ask again":          {last: denied, err: denied, asked: 1},
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
