// SPDX-License-Identifier: Apache-2.0

package red

import "testing"

func TestRed(t *testing.T) {
	if !Red() {
		t.Error("as meant")
	}
}
