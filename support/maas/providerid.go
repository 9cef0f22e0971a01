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

// ProviderID identifies a machine of MAAS in Cluster API and in Nodes. The format is maas:///<zone>/<system id>, or
// maas-lxd:///<zone>/<system id> for a virtual machine of provisioningMode lxd.
type ProviderID struct {
	Zone, SystemID string
	LXD            bool
}

// String returns the provider ID as a text.
func (p ProviderID) String() string {
	scheme := providerScheme
	if p.LXD {
		scheme = providerSchemeLXD
	}
	return fmt.Sprintf("%s%s/%s", scheme, p.Zone, p.SystemID)
}

// ParseProviderID parses both formats, also with two slashes instead of three, as other tools write them. For any other
// text, as from a user or a backup, it returns false, and the text after the last slash as the system ID.
func ParseProviderID(text string) (id ProviderID, ok bool) {
	rest, lxd := strings.CutPrefix(text, strings.TrimSuffix(providerSchemeLXD, "/"))
	plain := false
	if !lxd {
		rest, plain = strings.CutPrefix(text, strings.TrimSuffix(providerScheme, "/"))
	}
	text = rest
	if lxd || plain {
		text = strings.TrimPrefix(rest, "/")
	}
	slash := strings.LastIndex(text, "/")
	if systemID := text[slash+1:]; !lxd && !plain || slash < 0 || systemID == "" {
		return ProviderID{SystemID: systemID}, false
	}
	return ProviderID{Zone: text[:slash], SystemID: text[slash+1:], LXD: lxd}, true
}
