// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"bytes"
	"testing"
)

// FuzzUnpack unpacks the data of Secrets, and checks that Unpack reverses Pack.
func FuzzUnpack(f *testing.F) {
	packed, err := Pack([]byte("kind: MachineConfig\n"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Add([]byte("H4sIAAAA"))
	f.Add([]byte("\x1f\x8b\x08\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if text, err := Unpack(raw); err == nil && len(text) > maxConfigSize {
			t.Fatalf("%d bytes came out", len(text))
		}
		packed, err := Pack(raw)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Unpack(packed); err != nil || !bytes.Equal(again, raw) {
			t.Fatalf("what was packed came back as %q: %v", again, err)
		}
	})
}
