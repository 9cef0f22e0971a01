// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"net/netip"
	"net/url"

	"sigs.k8s.io/yaml"
)

// vendorData returns the vendor data of a machine: MAAS configures the region as its time server. cloud-init reads the
// value of the key "cloud-init".
func vendorData(metadataURL string) string {
	config := map[string]any{}
	if region, err := url.Parse(metadataURL); err == nil && region.Hostname() != "" {
		servers, pools := []string{}, []string{}
		if _, err := netip.ParseAddr(region.Hostname()); err == nil {
			servers = append(servers, region.Hostname())
		} else {
			pools = append(pools, region.Hostname())
		}
		config["ntp"] = map[string]any{"servers": servers, "pools": pools}
	}
	// Maps, lists and strings can always be encoded as YAML.
	cloudConfig, _ := yaml.Marshal(config)
	document, _ := yaml.Marshal(map[string]any{"cloud-init": "#cloud-config\n" + string(cloudConfig)})
	return string(document)
}
