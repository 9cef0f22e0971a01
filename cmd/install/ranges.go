// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/openshift/hypershift/support/maas"
)

// Ranges is the install part of a platform on which tenants name addresses that the operator calls.
// --PLATFORM-allow-cidrs and --PLATFORM-refuse-cidrs restrict these addresses.
type Ranges struct {
	// Platform is the platform's name in flags. Of describes the addresses, as in "MAAS endpoints of tenants".
	Platform, Of string

	allow, refuse string
}

// AddFlags implements Part.
func (r *Ranges) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&r.allow, r.Platform+"-allow-cidrs", "", "ranges, separated by commas, that "+r.Of+" may be in although they would be refused, such as a loopback range")
	flags.StringVar(&r.refuse, r.Platform+"-refuse-cidrs", "",
		"ranges, separated by commas, that "+r.Of+" must not be in, such as the pods and Services of this management cluster")
}

// Complete implements Part.
func (r *Ranges) Complete(string) (Addition, error) {
	allow, refuse := "--"+r.Platform+"-allow-cidrs", "--"+r.Platform+"-refuse-cidrs"
	if _, err := maas.NewGuard(r.allow, r.refuse); err != nil {
		return Addition{}, fmt.Errorf("%s or %s: %w", allow, refuse, err)
	}
	var args []string
	if r.allow != "" {
		args = append(args, allow+"="+r.allow)
	}
	if r.refuse != "" {
		args = append(args, refuse+"="+r.refuse)
	}
	return Addition{Args: args}, nil
}
