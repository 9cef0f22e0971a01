// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"fmt"
	"strings"
)

const (
	providerScheme    = "maas:///"
	providerSchemeLXD = "maas-lxd:///"
)

// ProviderID names a machine of MAAS in Cluster API and in Nodes: maas:///<zone>/<system id>, or maas-lxd:///<zone>/<system id> for a
// virtual machine of provisioningMode lxd.
type ProviderID struct {
	Zone, SystemID string
	LXD            bool
}

// String formats it.
func (p ProviderID) String() string {
	scheme := providerScheme
	if p.LXD {
		scheme = providerSchemeLXD
	}
	return fmt.Sprintf("%s%s/%s", scheme, p.Zone, p.SystemID)
}

// ParseProviderID reads both forms, and, of what a user or a backup wrote, what follows the last slash as the system id; ok tells that it
// is one of the two forms.
func ParseProviderID(text string) (id ProviderID, ok bool) {
	rest, lxd := strings.CutPrefix(text, providerSchemeLXD)
	plain := false
	if !lxd {
		rest, plain = strings.CutPrefix(text, providerScheme)
	}
	slash := strings.LastIndex(rest, "/")
	if systemID := rest[slash+1:]; !lxd && !plain || slash < 0 || systemID == "" {
		return ProviderID{SystemID: systemID}, false
	}
	return ProviderID{Zone: rest[:slash], SystemID: rest[slash+1:], LXD: lxd}, true
}
