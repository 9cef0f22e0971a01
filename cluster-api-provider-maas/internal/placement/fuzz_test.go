// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"math"
	"regexp"
	"slices"
	"testing"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/quarantine"
	"github.com/openshift/hypershift/support/maas"
)

var storage = regexp.MustCompile(`^root:[1-9][0-9]*$`)

// FuzzRequest requests a machine with names chosen by a tenant. A machine with exactly these names matches, one with
// none of them does not. The parameters for MAAS contain exactly these names, whatever their syntax.
func FuzzRequest(f *testing.F) {
	f.Add("az1", "default", "amd64/generic", "ssd", uint32(100))
	f.Add("az1,az2", "default&tags=x", "amd64", "a,b", uint32(0))
	f.Add("", "not_pool", "", quarantine.Tag, uint32(math.MaxUint32))
	f.Add("root:1(ssd)", "\n", "/", " ", uint32(1))
	f.Fuzz(func(t *testing.T, zone, pool, arch, tag string, disk uint32) {
		request := Request{Zones: []string{zone}, Pool: pool, Architecture: arch, Tags: []string{tag}, MinDiskGB: int(disk)}
		fits := maas.Machine{
			Zone: maas.Zone{Name: zone}, Pool: maas.Pool{Name: pool}, Architecture: arch, TagNames: []string{tag},
			PhysicalBlockDevices: []maas.BlockDevice{{Size: int64(disk) * BytesPerGB}},
		}
		lacks := request.Mismatches(fits)
		if setAside := tag == quarantine.Tag; setAside != (len(lacks) > 0) {
			t.Errorf("a machine that has what is asked for: %q", lacks)
		}
		if len(request.Mismatches(maas.Machine{Zone: maas.Zone{Name: zone + "x"}})) == 0 {
			t.Errorf("a machine of another zone fits")
		}
		asked := request.Allocation(zone)
		if asked.Zone != zone || asked.Pool != pool || asked.Architecture != arch || !slices.Equal(asked.Tags, []string{tag}) {
			t.Errorf("MAAS is asked for %+v", asked)
		}
		if (disk == 0) != (asked.Storage == "") || asked.Storage != "" && !storage.MatchString(asked.Storage) {
			t.Errorf("MAAS is asked for the disk %q", asked.Storage)
		}
	})
}
