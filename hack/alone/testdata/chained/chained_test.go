// SPDX-License-Identifier: Apache-2.0

package chained

import "testing"

func TestDoor(t *testing.T) {
	open := false
	t.Run("it opens (when asked)", func(*testing.T) { open = true })
	t.Run("it is open", func(t *testing.T) {
		if !open {
			t.Error("it is shut")
		}
	})
	if open {
		t.Run("somebody passes", func(*testing.T) {})
	}
}
