// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

func TestRanges(t *testing.T) {
	tests := []struct {
		name  string
		flags []string
		args  []string
		err   string
	}{
		{"When no flag is set, it should add no arguments", nil, nil, ""},
		{
			"When CIDRs are set, it should pass them to the operator", []string{"--maas-allow-cidrs=127.0.0.0/8", "--maas-refuse-cidrs=10.0.0.0/8,fd00::/8"},
			[]string{"--maas-allow-cidrs=127.0.0.0/8", "--maas-refuse-cidrs=10.0.0.0/8,fd00::/8"}, "",
		},
		{"When a CIDR is invalid, it should name the flag", []string{"--maas-refuse-cidrs=nonsense"}, nil, "--maas-refuse-cidrs"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			part, flags := &Ranges{Platform: "maas", Of: "MAAS endpoints of tenants"}, pflag.NewFlagSet("install", pflag.ContinueOnError)
			part.AddFlags(flags)
			g.Expect(flags.Parse(tt.flags)).To(Succeed())
			added, err := part.Complete("hypershift")
			if tt.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			if diff := cmp.Diff(tt.args, added.Args); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}
