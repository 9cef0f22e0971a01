// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/openshift/hypershift/support/addressguard"
)

// Guard is the address policy of a client whose endpoint a tenant chooses.
type Guard = addressguard.Guard

// Own is a set of addresses of the management cluster.
type Own = addressguard.Own

// RefusedAddressError reports that a Guard blocked a connection.
type RefusedAddressError = addressguard.RefusedError

// allowHint is appended to the error for a blocked address.
const allowHint = "; an administrator can allow it with hypershift install --maas-allow-cidrs"

// The environment variables with which the operator passes the arguments of NewGuard to the provider. A provider
// without them serves no tenants.
const (
	EnvAllowCIDRs  = "MAAS_ALLOW_CIDRS"
	EnvRefuseCIDRs = "MAAS_REFUSE_CIDRS"
	// EnvRefuseAddresses lists single ports that are blocked, such as 10.0.0.5:6443.
	EnvRefuseAddresses = "MAAS_REFUSE_ADDRESSES"
)

// NewGuard parses lists of ranges such as "10.0.0.0/8,fd00::/8". In a pod, the Guard also blocks the API of the cluster
// in which the pod runs. It always blocks the addresses in EnvRefuseAddresses.
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

// ParsePrefixes parses comma-separated ranges; an empty text has none.
func ParsePrefixes(text string) ([]netip.Prefix, error) { return addressguard.ParsePrefixes(text) }
