// SPDX-License-Identifier: Apache-2.0

package maas

import "github.com/openshift/hypershift/cmd/install"

// NewInstall returns the platform's part of install: the address ranges that MAAS endpoints may use.
func NewInstall() install.Part {
	return &install.Ranges{Platform: "maas", Of: "MAAS endpoints of tenants"}
}
