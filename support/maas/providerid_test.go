// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/hypershift/support/maas"
)

func TestProviderID(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want maas.ProviderID
		ok   bool
	}{
		"When it is a machine's it should be read":                      {"maas:///az1/wq4h8c", maas.ProviderID{Zone: "az1", SystemID: "wq4h8c"}, true},
		"When it is a virtual machine's it should be read":              {"maas-lxd:///az1/wq4h8c", maas.ProviderID{Zone: "az1", SystemID: "wq4h8c", LXD: true}, true},
		"When the zone is empty it should be read":                      {"maas:////wq4h8c", maas.ProviderID{SystemID: "wq4h8c"}, true},
		"When it is of another cloud its last part should be all":       {"aws:///eu-1a/i-1", maas.ProviderID{SystemID: "i-1"}, false},
		"When it is a system id it should be taken as one":              {"wq4h8c", maas.ProviderID{SystemID: "wq4h8c"}, false},
		"When there is no zone it should not pass for one of ours":      {"maas:///wq4h8c", maas.ProviderID{SystemID: "wq4h8c"}, false},
		"When it is empty there should be nothing":                      {"", maas.ProviderID{}, false},
		"When it ends early it should not name a machine of our making": {"maas-lxd:///az1/", maas.ProviderID{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := maas.ParseProviderID(tc.text)
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
				t.Fatalf("-want +got:\n%s\nok %v", diff, ok)
			}
			if ok && got.String() != tc.text {
				t.Errorf("%q becomes %q", tc.text, got)
			}
		})
	}
}
