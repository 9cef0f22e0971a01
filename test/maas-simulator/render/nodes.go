// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strconv"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
)

func appendDecimal(out []byte, f float64) []byte { return strconv.AppendFloat(out, f, 'f', 1, 64) }

// Node renders a controller or device. Fields of the seed override the defaults.
func (p *Printer) Node(n *inventory.Node) Object {
	names := map[string]struct {
		kind int
		name string
	}{"devices": {1, "Device"}, "rackcontrollers": {2, "Rack controller"}, "regioncontrollers": {3, "Region controller"}}
	kind := names[n.Kind]
	out := Object{
		"system_id": n.SystemID, "hostname": n.SystemID, "node_type": kind.kind, "node_type_name": kind.name, "description": "",
		"hardware_uuid": nil, "hardware_info": hardwareInfo(), "tag_names": []any{}, "power_type": "", "power_state": "unknown",
		"osystem": "", "distro_series": "", "interface_set": []any{}, "architecture": nil, "cpu_speed": 0, "cpu_count": 0, "memory": 0,
		"swap_size": nil, "ip_addresses": []any{}, "status_action": nil, "version": p.Version.Text,
		"current_testing_result_id": nil, "current_commissioning_result_id": nil, "current_installation_result_id": nil,
		"resource_uri": uri(n.Kind, n.SystemID),
	}
	for _, kind := range testKinds {
		out[kind+"_status"], out[kind+"_status_name"] = -1, "Unknown"
	}
	if z := p.DB.Zones.Get(1); z != nil {
		out["zone"] = p.Zone(z)
	}
	if d := p.DB.Domains.Find(func(d *inventory.Domain) bool { return d.Default }); d != nil {
		out["domain"] = p.Domain(d)
		hostname, _ := n.Doc["hostname"].(string)
		if hostname == "" {
			hostname = n.SystemID
		}
		out["fqdn"] = hostname + "." + d.Name
	}
	return over(out, n.Doc)
}
