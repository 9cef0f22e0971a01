// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/cmd/doctor"
	"github.com/openshift/hypershift/support/maas"
)

func TestCompose(t *testing.T) {
	host := func(name, zone string, cores, memory int) maas.VMHost {
		return maas.VMHost{
			Name: name, Zone: maas.Zone{Name: zone}, Available: maas.Resources{Cores: cores, Memory: memory},
		}
	}
	hosts := []maas.VMHost{
		host("h1", "az1", 10, 65536), host("h2", "az1", 64, 8192), host("h3", "az2", 64, 65536), host("h4", "az1", -2, 1),
	}
	for name, tt := range map[string]struct {
		needs doctor.MAAS
		count int
		from  string
	}{
		"counts by cores and memory": {doctor.MAAS{Zones: []string{"az1"}, MinCPU: 4, MinMemoryMiB: 4096}, 4,
			"virtual machines of 4 cores and 4096 MiB on LXD hosts h1 (10 cores, 65536 MiB free), h2 (64 cores, 8192 MiB free), h4"},
		"counts the least machine":   {doctor.MAAS{Zones: []string{"az2"}}, 32, "virtual machines of 2 cores and 2048 MiB on LXD hosts h3"},
		"names a zone without hosts": {doctor.MAAS{Zones: []string{"az9"}}, 0, "none of 4 LXD hosts is in the zone"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			count, from := tt.needs.Compose(hosts)
			g.Expect(count).To(Equal(tt.count))
			g.Expect(from).To(HavePrefix(tt.from))
		})
	}
}
