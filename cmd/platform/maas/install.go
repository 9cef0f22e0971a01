// SPDX-License-Identifier: Apache-2.0

package maas

import "github.com/openshift/hypershift/cmd/install"

// NewInstall makes the platform's part of install: where a MAAS may be.
func NewInstall() install.Part {
	return &install.Ranges{Platform: "maas", Of: "MAAS endpoints of tenants"}
}
