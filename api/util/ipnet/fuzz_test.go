// SPDX-License-Identifier: Apache-2.0

package ipnet

import (
	"encoding/json"
	"testing"
)

// FuzzIPNet reads what a person wrote as a network. What is read is written as text that reads as the same network, with no bits of a host.
func FuzzIPNet(f *testing.F) {
	for _, text := range []string{`"10.0.0.0/16"`, `"10.0.0.7/24"`, `"fd00::1/64"`, `"::ffff:10.0.0.1/120"`, `"0.0.0.0/0"`, `""`, `null`, `"10.0.0.0"`, `{}`, `"10.0.0.0/33"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var first, second IPNet
		if json.Unmarshal(raw, &first) != nil {
			return
		}
		written, err := json.Marshal(first)
		if err != nil {
			t.Fatalf("%s is read, and cannot be written: %v", raw, err)
		}
		if err := json.Unmarshal(written, &second); err != nil {
			t.Fatalf("%s is written as %s, which is no network: %v", raw, written, err)
		}
		if first.String() != second.String() {
			t.Errorf("%s is read as %s, written, and read as %s", raw, first, second)
		}
		if len(first.IP) > 0 && !first.IP.Equal(first.IP.Mask(first.Mask)) {
			t.Errorf("%s is read with bits of a host: %s", raw, first.IP)
		}
	})
}
