// SPDX-License-Identifier: Apache-2.0

package kubevirt

import "github.com/openshift/hypershift/cmd/install"

// NewInstall makes the platform's part of install: where clusters for virtual machines may be.
func NewInstall() install.Part {
	return &install.Ranges{Platform: "kubevirt", Of: "clusters of tenants for virtual machines"}
}
