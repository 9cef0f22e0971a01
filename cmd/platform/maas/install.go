// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/openshift/hypershift/cmd/install"
	"github.com/openshift/hypershift/support/maas"
)

// Install is the platform's part of install: where a MAAS may be.
type Install struct{ allow, refuse string }

// AddFlags implements install.Part.
func (i *Install) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&i.allow, "maas-allow-cidrs", "", "ranges, separated by commas, that MAAS endpoints of tenants may be in although they would be refused, such as a loopback range")
	flags.StringVar(&i.refuse, "maas-refuse-cidrs", "",
		"ranges, separated by commas, that MAAS endpoints of tenants must not be in, such as the pods and Services of this management cluster")
}

// Complete implements install.Part.
func (i *Install) Complete(string) (install.Addition, error) {
	if _, err := maas.NewGuard(i.allow, i.refuse); err != nil {
		return install.Addition{}, fmt.Errorf("--maas-allow-cidrs or --maas-refuse-cidrs: %w", err)
	}
	var args []string
	if i.allow != "" {
		args = append(args, "--maas-allow-cidrs="+i.allow)
	}
	if i.refuse != "" {
		args = append(args, "--maas-refuse-cidrs="+i.refuse)
	}
	return install.Addition{Args: args}, nil
}
