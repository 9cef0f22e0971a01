// SPDX-License-Identifier: Apache-2.0

package ipnet

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJSON(t *testing.T) {
	cases := []struct {
		name, in, want, failure string
	}{
		{name: "When the network is IPv4, it should be unchanged", in: `"10.132.0.0/14"`, want: `"10.132.0.0/14"`},
		{name: "When the network is IPv6, it should be unchanged", in: `"fd00::/64"`, want: `"fd00::/64"`},
		{name: "When the network has host bits, they should be cleared", in: `"10.0.0.7/24"`, want: `"10.0.0.0/24"`},
		{name: "When the text is empty, it should become the zero network", in: `""`, want: `""`},
		{name: "When the value is null, it should become the zero network", in: `null`, want: `""`},
		{name: "When the text is an address without a prefix length, the error should quote the text", in: `"10.0.0.7"`, failure: `"10.0.0.7" is not a network`},
		{name: "When the value is not a string, it should return an error", in: `7`, failure: "must be CIDR text"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			var network IPNet
			err := json.Unmarshal([]byte(test.in), &network)
			if test.failure != "" {
				if err == nil || !strings.Contains(err.Error(), test.failure) {
					t.Fatalf("want an error with %q, got %v", test.failure, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			out, err := json.Marshal(network)
			if err != nil || string(out) != test.want {
				t.Errorf("want %s, got %s (%v)", test.want, out, err)
			}
		})
	}
}

func TestDeepCopy(t *testing.T) {
	t.Run("When a copy is changed, the original should stay unchanged", func(t *testing.T) {
		original := MustParseCIDR("10.0.0.0/8")
		copied := original.DeepCopy()
		copied.IP[0], copied.Mask[1] = 11, 255
		if original.String() != "10.0.0.0/8" || copied.String() != "11.0.0.0/16" {
			t.Errorf("original %s, copy %s", original, copied)
		}
	})
	t.Run("When the original is nil, DeepCopy should return nil", func(t *testing.T) {
		if (*IPNet)(nil).DeepCopy() != nil {
			t.Error("want nil")
		}
	})
}

func TestMustParseCIDR(t *testing.T) {
	t.Run("When the text is not a network, it should panic", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("want a panic")
			}
		}()
		MustParseCIDR("10.0.0.0")
	})
}

func TestIPNets(t *testing.T) {
	nets := IPNets{*MustParseCIDR("10.0.0.0/8"), *MustParseCIDR("fd00::/64")}
	t.Run("When networks are listed, they should keep their order", func(t *testing.T) {
		if diff := cmp.Diff([]string{"10.0.0.0/8", "fd00::/64"}, nets.StringSlice()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("When networks are joined, they should be separated by commas", func(t *testing.T) {
		if got := nets.CSVString(); got != "10.0.0.0/8,fd00::/64" {
			t.Error(got)
		}
		if got := (IPNets{}).CSVString(); got != "" {
			t.Error(got)
		}
	})
}
