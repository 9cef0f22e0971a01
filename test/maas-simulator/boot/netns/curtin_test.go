// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
)

func TestCurtinFiles(t *testing.T) {
	g := NewWithT(t)
	files, err := curtinFiles(boot.Spec{
		SystemID: "abc123", Domain: "maas", MAC: "52:54:00:AA:BB:CC", MetadataURL: "http://192.0.2.1:5240/MAAS/metadata",
		Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.9/24")}, Gateway: netip.MustParseAddr("192.0.2.1"),
		Nameservers: []netip.Addr{netip.MustParseAddr("192.0.2.2")}, ConsumerKey: "c", TokenKey: "t", TokenSecret: "s", OSystem: "ubuntu",
	})
	g.Expect(err).NotTo(HaveOccurred())
	for name, want := range map[string]string{
		"50-cloudconfig-maas-cloud-config.cfg": `{"datasource": {"MAAS": {"consumer_key": "c", "token_key": "t", "token_secret": "s", "metadata_url": "http://192.0.2.1:5240/MAAS/metadata/"}}}`,
		"50-cloudconfig-maas-reporting.cfg": `{"reporting": {"maas": {"consumer_key": "c", "token_key": "t", "token_secret": "s", "type": "webhook",
			"endpoint": "http://192.0.2.1:5240/MAAS/metadata/status/abc123"}}}`,
		"50-cloudconfig-maas-datasource.cfg": `{"datasource_list": ["MAAS"]}`,
		"90_dpkg_local_cloud_config.cfg":     `{"apt_preserve_sources_list": true, "manage_etc_hosts": false, "manual_cache_clean": true}`,
		"50-curtin-networking.cfg": `{"network": {"version": 2, "ethernets": {"eth0": {"match": {"macaddress": "52:54:00:aa:bb:cc"}, "set-name": "eth0",
			"addresses": ["192.0.2.9/24"], "gateway4": "192.0.2.1", "nameservers": {"addresses": ["192.0.2.2"], "search": ["maas"]}}}}}`,
	} {
		var got, wanted any
		g.Expect(yaml.Unmarshal([]byte(files[cloudConfigDir+name].content), &got)).To(Succeed())
		g.Expect(yaml.Unmarshal([]byte(want), &wanted)).To(Succeed())
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	kubelet := kubeletconfig.KubeletConfiguration{}
	g.Expect(yaml.UnmarshalStrict([]byte(files[crowdedFile].content), &kubelet)).To(Succeed())
	g.Expect(kubelet.EvictionHard).To(And(HaveKeyWithValue("nodefs.available", "0%"), HaveKeyWithValue("imagefs.available", "0%")))
	for name, file := range files {
		if strings.HasPrefix(name, cloudConfigDir) && name != cloudConfigDir+"50-cloudconfig-maas-datasource.cfg" {
			g.Expect(file.mode).To(BeEquivalentTo(0o600), "%s holds keys", name)
		}
	}
}

func TestIsCloud(t *testing.T) {
	for osystem, want := range map[string]bool{"ubuntu": true, "debian": true, "custom": false, "": false, "centos": false} {
		NewWithT(t).Expect(isCloud(boot.Spec{OSystem: osystem})).To(Equal(want), osystem)
	}
}
