// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"errors"
	"strings"

	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/distributions"
)

// cloudInitSystems are the operating systems, in MAAS's words, whose images configure themselves by cloud-init.
var cloudInitSystems = map[string]bool{"ubuntu": true, "debian": true}

// ubuntuReleases are the releases of Ubuntu from 22.04 on by all names that MAAS takes without "ubuntu/".
var ubuntuReleases = map[string]bool{
	"jammy": true, "kinetic": true, "lunar": true, "mantic": true, "noble": true, "oracular": true, "plucky": true, "questing": true, "resolute": true,
	"22.04": true, "22.10": true, "23.04": true, "23.10": true, "24.04": true, "24.10": true, "25.04": true, "25.10": true, "26.04": true,
}

// UserDataFormat is what the pool says, or else what its image is known to read. A custom image is read by Ignition unless
// the pool says otherwise: pools from before there was a choice have no other.
func (*Platform) UserDataFormat(pool platform.Pool) hyperv1.UserDataFormat {
	block := settings(pool)
	if block.UserDataFormat != "" {
		return block.UserDataFormat
	}
	if distributions.Of(pool.Distribution()).OwnOperators {
		return hyperv1.UserDataIgnition
	}
	if readsCloudConfig(block.Image) {
		return hyperv1.UserDataCloudConfig
	}
	return hyperv1.UserDataIgnition
}

// readsCloudConfig tells whether an image is Ubuntu's or Debian's by its name.
func readsCloudConfig(image string) bool {
	system, _, named := strings.Cut(image, "/")
	return named && cloudInitSystems[system] || !named && ubuntuReleases[image]
}

// validateUserData refuses what no machine could read, and can decide only once the payload was read.
func validateUserData(pool platform.Pool) error {
	block := settings(pool)
	if pool.Distribution() == "" || (&Platform{}).UserDataFormat(pool) != hyperv1.UserDataCloudConfig {
		return nil
	}
	if distributions.Of(pool.Distribution()).OwnOperators {
		return errors.New("spec.platform.maas.userDataFormat is CloudConfig, but the nodes of an OpenShift release run CoreOS, which reads Ignition only: " +
			"leave the field out, and name an RHCOS image in spec.platform.maas.image")
	}
	if wipe := block.DiskWipe; wipe != nil && ptr.Deref(wipe.Enabled, false) {
		return errors.New("spec.platform.maas.diskWipe.enabled goes with userDataFormat Ignition only: an image with cloud-init carries no helper " +
			"partition; set it to false")
	}
	return nil
}
