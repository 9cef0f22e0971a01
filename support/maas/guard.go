// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/openshift/hypershift/support/addressguard"
)

// Guard is the address policy of a client whose endpoint is a tenant's choice.
type Guard = addressguard.Guard

// Own knows addresses of the management cluster.
type Own = addressguard.Own

// RefusedAddressError is a call that a Guard stopped before it left.
type RefusedAddressError = addressguard.RefusedError

// allowHint is appended to a refused address.
const allowHint = "; an administrator can allow it with hypershift install --maas-allow-cidrs"

// Environment by which the operator tells the provider what NewGuard takes. A provider without it serves no tenants.
const (
	EnvAllowCIDRs  = "MAAS_ALLOW_CIDRS"
	EnvRefuseCIDRs = "MAAS_REFUSE_CIDRS"
	// EnvRefuseAddresses lists single ports, such as 10.0.0.5:6443, that are refused.
	EnvRefuseAddresses = "MAAS_REFUSE_ADDRESSES"
)

// NewGuard reads lists of ranges such as "10.0.0.0/8,fd00::/8". In a pod, it refuses the API of the cluster that the
// pod is in, and the addresses of EnvRefuseAddresses.
func NewGuard(allow, refuse string) (*Guard, error) {
	guard, err := addressguard.New(allow, refuse)
	if err != nil {
		return nil, err
	}
	for text := range strings.SplitSeq(os.Getenv(EnvRefuseAddresses), ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		at, err := netip.ParseAddrPort(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not an address and port; write it as in 10.0.0.5:6443", EnvRefuseAddresses, text)
		}
		guard.RefuseAt = append(guard.RefuseAt, at)
	}
	return guard, nil
}

// ParsePrefixes reads ranges that are separated by commas; an empty text is none.
func ParsePrefixes(text string) ([]netip.Prefix, error) { return addressguard.ParsePrefixes(text) }
