// SPDX-License-Identifier: Apache-2.0

package kubevirt

import "github.com/openshift/hypershift/cmd/install"

// NewInstall returns the platform's part of install: the address ranges that clusters for virtual machines may use.
func NewInstall() install.Part {
	return &install.Ranges{Platform: "kubevirt", Of: "clusters of tenants for virtual machines"}
}
