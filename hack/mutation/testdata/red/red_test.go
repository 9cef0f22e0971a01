package red

import "testing"

func TestRed(t *testing.T) {
	if !Red() {
		t.Error("as meant")
	}
}
