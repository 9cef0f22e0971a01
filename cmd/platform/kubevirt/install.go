// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/openshift/hypershift/cmd/install"
	"github.com/openshift/hypershift/support/maas"
)

// Install is the platform's part of install: where clusters for virtual machines may be.
type Install struct{ allow, refuse string }

// AddFlags implements install.Part.
func (i *Install) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&i.allow, "kubevirt-allow-cidrs", "", "ranges, separated by commas, that clusters of tenants for virtual machines may be in although they would be refused, such as a loopback range")
	flags.StringVar(&i.refuse, "kubevirt-refuse-cidrs", "",
		"ranges, separated by commas, that clusters of tenants for virtual machines must not be in, such as the pods and Services of this management cluster")
}

// Complete implements install.Part.
func (i *Install) Complete(string) (install.Addition, error) {
	if _, err := maas.NewGuard(i.allow, i.refuse); err != nil {
		return install.Addition{}, fmt.Errorf("--kubevirt-allow-cidrs or --kubevirt-refuse-cidrs: %w", err)
	}
	var args []string
	if i.allow != "" {
		args = append(args, "--kubevirt-allow-cidrs="+i.allow)
	}
	if i.refuse != "" {
		args = append(args, "--kubevirt-refuse-cidrs="+i.refuse)
	}
	return install.Addition{Args: args}, nil
}
