// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"testing"

	. "github.com/onsi/gomega"

	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/releaseinfo"
)

func TestUserDataFormat(t *testing.T) {
	ignition, cloudConfig := hyperv1.UserDataIgnition, hyperv1.UserDataCloudConfig
	for _, tc := range []struct {
		distribution releaseinfo.Distribution
		image        string
		said, want   hyperv1.UserDataFormat
	}{
		{releaseinfo.Kubernetes, "", "", ignition},
		{releaseinfo.Kubernetes, "custom/kubernetes-node", "", ignition},
		{releaseinfo.Kubernetes, "custom/noble", "", ignition},
		{releaseinfo.Kubernetes, "rhcos-4.20", "", ignition},
		{releaseinfo.Kubernetes, "ubuntu-core/24", "", ignition},
		{releaseinfo.Kubernetes, "ubuntu/noble", "", cloudConfig},
		{releaseinfo.Kubernetes, "ubuntu/24.04", "", cloudConfig},
		{releaseinfo.Kubernetes, "noble", "", cloudConfig},
		{releaseinfo.Kubernetes, "22.04", "", cloudConfig},
		{releaseinfo.Kubernetes, "resolute", "", cloudConfig},
		{releaseinfo.Kubernetes, "debian/trixie", "", cloudConfig},
		{releaseinfo.Kubernetes, "custom/debian-13", cloudConfig, cloudConfig},
		{releaseinfo.Kubernetes, "ubuntu/noble", ignition, ignition},
		{releaseinfo.OpenShift, "custom/rhcos", "", ignition},
		{releaseinfo.OpenShift, "ubuntu/noble", "", ignition},
		{"", "ubuntu/noble", "", cloudConfig},
	} {
		t.Run("When "+string(tc.distribution)+" runs on "+tc.image+" said to read "+string(tc.said)+", it should read "+string(tc.want), func(t *testing.T) {
			pool := testPool(tc.distribution, hyperv1.MAASNodePoolPlatform{Image: tc.image, UserDataFormat: tc.said})
			NewWithT(t).Expect((&Platform{}).UserDataFormat(pool)).To(Equal(tc.want))
		})
	}
}

func TestValidateUserData(t *testing.T) {
	wipe := func(on *bool) *hyperv1.MAASDiskWipe { return &hyperv1.MAASDiskWipe{Enabled: on} }
	for _, tc := range []struct {
		name         string
		distribution releaseinfo.Distribution
		block        hyperv1.MAASNodePoolPlatform
		refusal      string
	}{
		{"When OpenShift is to read cloud-config, it should say what it reads", releaseinfo.OpenShift,
			hyperv1.MAASNodePoolPlatform{Image: "custom/rhcos", UserDataFormat: hyperv1.UserDataCloudConfig}, "userDataFormat is CloudConfig, but the nodes of an OpenShift release"},
		{"When the payload is not known yet, it should wait with its answer", "",
			hyperv1.MAASNodePoolPlatform{Image: "custom/rhcos", UserDataFormat: hyperv1.UserDataCloudConfig}, ""},
		{"When Ubuntu is to wipe a partition, it should say that there is none", releaseinfo.Kubernetes,
			hyperv1.MAASNodePoolPlatform{Image: "ubuntu/noble", DiskWipe: wipe(ptr.To(true))}, "diskWipe.enabled goes with userDataFormat Ignition only"},
		{"When the wipe is off, it should be fine", releaseinfo.Kubernetes,
			hyperv1.MAASNodePoolPlatform{Image: "ubuntu/noble", DiskWipe: wipe(ptr.To(false))}, ""},
		{"When it is stock Ubuntu, it should be fine", releaseinfo.Kubernetes, hyperv1.MAASNodePoolPlatform{Image: "ubuntu/noble"}, ""},
		{"When an image of Ignition is to wipe a partition, it should be fine", releaseinfo.Kubernetes,
			hyperv1.MAASNodePoolPlatform{Image: "custom/a", DiskWipe: wipe(ptr.To(true))}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := (&Platform{}).ValidateNodePool(testPool(tc.distribution, tc.block))
			g := NewWithT(t)
			if tc.refusal == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.refusal)))
		})
	}
}
