// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"net/netip"
	"net/url"

	"sigs.k8s.io/yaml"
)

// vendorData is what MAAS itself wants of a machine: that it takes the time from the region. cloud-init finds its part below
// the key of its name.
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
	// Maps, lists and texts are YAML always.
	cloudConfig, _ := yaml.Marshal(config)
	document, _ := yaml.Marshal(map[string]any{"cloud-init": "#cloud-config\n" + string(cloudConfig)})
	return string(document)
}
