// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"strings"
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
		"When the ID is that of a machine, it should be parsed":                             {"maas:///az1/wq4h8c", maas.ProviderID{Zone: "az1", SystemID: "wq4h8c"}, true},
		"When the ID is that of a virtual machine, it should be parsed":                     {"maas-lxd:///az1/wq4h8c", maas.ProviderID{Zone: "az1", SystemID: "wq4h8c", LXD: true}, true},
		"When the ID has two slashes, it should be parsed":                                  {"maas://az1/wq4h8c", maas.ProviderID{Zone: "az1", SystemID: "wq4h8c"}, true},
		"When the ID of a virtual machine has two slashes, it should be parsed":             {"maas-lxd://az1/wq4h8c", maas.ProviderID{Zone: "az1", SystemID: "wq4h8c", LXD: true}, true},
		"When the text is the scheme alone, it should return it":                            {"maas", maas.ProviderID{SystemID: "maas"}, false},
		"When the zone is empty, it should be parsed":                                       {"maas:////wq4h8c", maas.ProviderID{SystemID: "wq4h8c"}, true},
		"When the ID is that of another cloud, it should return the last part as system ID": {"aws:///eu-1a/i-1", maas.ProviderID{SystemID: "i-1"}, false},
		"When the ID is a bare system ID, it should return it":                              {"wq4h8c", maas.ProviderID{SystemID: "wq4h8c"}, false},
		"When the ID has no zone, it should not be recognized as ours":                      {"maas:///wq4h8c", maas.ProviderID{SystemID: "wq4h8c"}, false},
		"When the ID is empty, it should return nothing":                                    {"", maas.ProviderID{}, false},
		"When the ID has no system ID, it should name no machine":                           {"maas-lxd:///az1/", maas.ProviderID{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := maas.ParseProviderID(tc.text)
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
				t.Fatalf("-want +got:\n%s\nok %v", diff, ok)
			}
			if ours := strings.Replace(tc.text, "://az1", ":///az1", 1); ok && got.String() != ours {
				t.Errorf("%q becomes %q", tc.text, got)
			}
		})
	}
}
