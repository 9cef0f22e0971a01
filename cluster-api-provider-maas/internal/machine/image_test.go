// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/maas"
)

var images = []maas.BootResource{{Type: "Synced", Name: "ubuntu/noble"}, {Type: "Synced", Name: "centos/centos9"}, {Type: "Uploaded", Name: "rhcos"}, {Type: "Uploaded", Name: "rhel/rhel9"}}

func TestMissingImage(t *testing.T) {
	for image, missing := range map[string]bool{
		"ubuntu/noble": false, "custom/rhcos": false, "rhel/rhel9": false, "centos/centos9": false,
		"custom/other": true, "ubuntu/jammy": true, "windows/win2022": true,
		// Only MAAS can resolve these names.
		"rhcos": false, "noble": false, "24.04": false, "ubuntu/24.04": false, "ubuntu/": false,
	} {
		got := missingImage(image, images)
		NewWithT(t).Expect(got != "").To(Equal(missing), "%s: %s", image, got)
		if missing {
			NewWithT(t).Expect(got).To(ContainSubstring("it has centos/centos9, custom/rhcos, rhel/rhel9, ubuntu/noble"))
		}
	}
	NewWithT(t).Expect(missingImage("custom/x", nil)).To(ContainSubstring("no images at all"))
}

func TestFormat(t *testing.T) {
	for want, secrets := range map[string][]map[string]string{
		"ignition": {{"value": `{"ignition": {"version": "3.4.0"}}`}, {"value": "#cloud-config", "format": "ignition"}},
		"cloud-config": {{"value": "#cloud-config\n"}, {"value": `{"ignition": {}}`, "format": "cloud-config"}, {"value": `{"runcmd": []}`},
			{"value": "#!/bin/sh\n"}, {"value": ""}},
	} {
		for _, secret := range secrets {
			data := map[string][]byte{}
			for key, value := range secret {
				data[key] = []byte(value)
			}
			NewWithT(t).Expect(formatOf(data)).To(Equal(want), "%v", secret)
		}
	}
}

func TestRefusesFormat(t *testing.T) {
	for image, refuses := range map[string]bool{"ubuntu/noble": true, "noble": true, "custom/rhcos": false, "rhel/rhel9": false, "unknown": false} {
		NewWithT(t).Expect(refusesFormat(image, formatIgnition, images) != "").To(Equal(refuses), image)
		NewWithT(t).Expect(refusesFormat(image, formatCloudConfig, images)).To(BeEmpty())
	}
}
