// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"fmt"
	"io/fs"
	"net/netip"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
)

// file is one that the installer writes.
type file struct {
	content string
	mode    fs.FileMode
}

const cloudConfigDir = "etc/cloud/cloud.cfg.d/"

// crowded tells a kubelet what metal never has: a disk that is shared with all machines and with whatever else the host keeps, and may be
// rather full. Nothing else of such a machine is prepared for one.
const (
	crowdedFile = "etc/kubernetes/kubelet.conf.d/90-shared-disk.conf"
	crowded     = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard: {memory.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%", imagefs.inodesFree: "0%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
`
)

// curtinFiles are what curtin writes for MAAS into an image with cloud-init, by path: where the metadata are and the keys to
// them, where to report to, the network.
func curtinFiles(spec boot.Spec) (map[string]file, error) {
	metadataURL := strings.TrimSuffix(spec.MetadataURL, "/") + "/"
	keys := map[string]any{"consumer_key": spec.ConsumerKey, "token_key": spec.TokenKey, "token_secret": spec.TokenSecret}
	with := func(more map[string]any) map[string]any {
		for key, value := range keys {
			more[key] = value
		}
		return more
	}
	files := map[string]file{
		"etc/hostname": {content: spec.OSystem + "\n", mode: 0o644},
		crowdedFile:    {content: crowded, mode: 0o644},
		// ds-identify reads a list that stands in one line only.
		cloudConfigDir + "50-cloudconfig-maas-datasource.cfg": {content: "datasource_list: [ MAAS ]", mode: 0o644},
	}
	for name, config := range map[string]any{
		"50-cloudconfig-maas-cloud-config.cfg": map[string]any{
			"datasource": map[string]any{"MAAS": with(map[string]any{"metadata_url": metadataURL})},
		},
		"50-cloudconfig-maas-reporting.cfg": map[string]any{
			"reporting": map[string]any{"maas": with(map[string]any{"type": "webhook", "endpoint": metadataURL + "status/" + spec.SystemID})},
		},
		"90_dpkg_local_cloud_config.cfg": map[string]any{
			"apt_preserve_sources_list": true, "manage_etc_hosts": false, "manual_cache_clean": true,
		},
		"50-curtin-networking.cfg": map[string]any{"network": network2(spec)},
	} {
		text, err := yaml.Marshal(config)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", name, err)
		}
		// The keys are in these files.
		files[cloudConfigDir+name] = file{content: "#cloud-config\n" + string(text), mode: 0o600}
	}
	return files, nil
}

// network2 is the network configuration, version 2, of the boot interface.
func network2(spec boot.Spec) map[string]any {
	addresses := []string{}
	for _, address := range spec.Addresses {
		addresses = append(addresses, address.String())
	}
	link := map[string]any{
		"match": map[string]any{"macaddress": strings.ToLower(spec.MAC)}, "set-name": "eth0", "addresses": addresses,
		"nameservers": map[string]any{"addresses": spec.Nameservers, "search": []string{spec.Domain}},
	}
	if spec.Gateway != (netip.Addr{}) {
		link["gateway4"] = spec.Gateway
	}
	return map[string]any{"version": 2, "ethernets": map[string]any{"eth0": link}}
}
