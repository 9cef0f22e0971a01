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

// file is a file that the installer writes.
type file struct {
	content string
	mode    fs.FileMode
}

const cloudConfigDir = "etc/cloud/cloud.cfg.d/"

// crowded disables a kubelet's disk thresholds. All machines share one disk with the rest of the host, and it may be
// nearly full. The node configuration does not expect that, because physical machines have their own disks.
const (
	crowdedFile = "etc/kubernetes/kubelet.conf.d/90-shared-disk.conf"
	crowded     = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard: {memory.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%", imagefs.inodesFree: "0%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
`
)

// curtinFiles returns the files that curtin writes for MAAS into an image with cloud-init, by path. They configure the
// metadata URL and its credentials, the reporting endpoint, and the network.
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
		// ds-identify reads the list only if it is on one line.
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
		// These files contain credentials.
		files[cloudConfigDir+name] = file{content: "#cloud-config\n" + string(text), mode: 0o600}
	}
	return files, nil
}

// network2 returns the version 2 network configuration of the boot interface.
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
