// SPDX-License-Identifier: Apache-2.0

package free

import "testing"

func TestDoor(t *testing.T) {
	t.Run("it is a/b", func(t *testing.T) {
		t.Run("below", func(*testing.T) {})
	})
}

func TestWithoutSubtests(*testing.T) {}
