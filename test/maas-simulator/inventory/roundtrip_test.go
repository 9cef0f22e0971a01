// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/render"
)

// plain encodes a value as JSON and decodes it again.
func plain(t *testing.T, v any) any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// printSite renders all lists of an inventory.
func printSite(db *inventory.DB, version render.Version) map[string][]any {
	p := &render.Printer{DB: db, Version: version}
	out := map[string][]any{"spaces": p.Spaces()}
	each(out, "users", db.Users.All(), func(u *inventory.User) any { return p.User(u) })
	each(out, "zones", db.Zones.All(), func(z *inventory.Zone) any { return p.Zone(z) })
	each(out, "resourcepools", db.Pools.All(), func(r *inventory.Pool) any { return p.Pool(r) })
	each(out, "tags", db.Tags.All(), func(x *inventory.Tag) any { return p.Tag(x) })
	each(out, "domains", db.Domains.All(), func(d *inventory.Domain) any { return p.Domain(d) })
	each(out, "fabrics", db.Fabrics.All(), func(f *inventory.Fabric) any { return p.Fabric(f) })
	each(out, "subnets", db.Subnets.All(), func(s *inventory.Subnet) any { return p.Subnet(&s.ID) })
	each(out, "ipranges", db.Ranges.All(), func(r *inventory.Range) any { return p.Range(r) })
	each(out, "ipaddresses", db.Addresses.All(), func(a *inventory.Address) any { return p.Address(a) })
	each(out, "boot_resources", db.BootResources.All(), func(b *inventory.BootResource) any { return p.BootResource(b) })
	each(out, "vm_hosts", db.VMHosts.All(), func(h *inventory.VMHost) any { return p.VMHost(h) })
	each(out, "dnsresources", db.DNSResources.All(), func(d *inventory.DNSResource) any { return p.DNSResource(d) })
	each(out, "machines", db.Machines.All(), func(m *inventory.Machine) any { return p.Machine(m) })
	return out
}

func each[V any](out map[string][]any, name string, rows []*V, print func(*V) any) {
	for _, row := range rows {
		out[name] = append(out[name], print(row))
	}
}

// TestRoundTrip verifies that a site that is loaded from MAAS responses renders the same responses.
func TestRoundTrip(t *testing.T) {
	version, err := render.ParseVersion("3.7")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(site)
	if err != nil {
		t.Fatal(err)
	}
	db := inventory.NewDB(1)
	if err := db.Load(raw, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	printed := printSite(db, version)
	for name, list := range site {
		t.Run("When "+name+" are loaded, they should be rendered unchanged", func(t *testing.T) {
			if diff := cmp.Diff(plain(t, list), plain(t, printed[name])); diff != "" {
				t.Error(diff)
			}
		})
	}
}
