// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"strings"
	"testing"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/maas"
)

// FuzzProviderID parses the machine out of a provider ID. The parsed ID equals the written one, even if the zone name
// contains a slash.
func FuzzProviderID(f *testing.F) {
	f.Add("default", "wq4h8c", "maas:///default/wq4h8c")
	f.Add("", "a", "")
	f.Add("a/b", "x", "///")
	f.Fuzz(func(t *testing.T, zone, systemID, foreign string) {
		read := func(id string) string {
			return (&scope{machine: &infrav1.MaasMachine{Spec: infrav1.MaasMachineSpec{ProviderID: &id}}}).systemID()
		}
		if strings.Contains(read(foreign), "/") {
			t.Fatalf("%q names the machine %q", foreign, read(foreign))
		}
		if strings.Contains(systemID, "/") {
			return // MAAS generates system IDs from letters and digits.
		}
		for _, mode := range []infrav1.ProvisioningMode{infrav1.ProvisioningModeBareMetal, infrav1.ProvisioningModeLXD} {
			id := formatProviderID(infrav1.MaasMachineSpec{ProvisioningMode: mode}, &maas.Machine{SystemID: systemID, Zone: maas.Zone{Name: zone}})
			if got := read(id); got != systemID {
				t.Fatalf("%q was written, and %q is read", systemID, got)
			}
			if parsed, ok := maas.ParseProviderID(id); systemID != "" && (!ok || parsed.Zone != zone) {
				t.Fatalf("%q is read as %+v", id, parsed)
			}
		}
	})
}
