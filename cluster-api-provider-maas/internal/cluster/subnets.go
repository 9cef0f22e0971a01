// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CAPMAAS reads the preferred subnets, separated by commas, from this ConfigMap in the namespace of the cluster.
const (
	preferredSubnetMap = "maas-preferred-subnet"
	preferredSubnetKey = "preferredSubnets"
)

// preferredSubnets returns the subnets whose addresses are published in DNS, in order of preference: the subnets in the
// spec, or else the subnets that were configured for CAPMAAS.
func (r *Reconciler) preferredSubnets(ctx context.Context, s *scope) ([]string, error) {
	if len(s.infra.Spec.PreferredSubnets) > 0 {
		return s.infra.Spec.PreferredSubnets, nil
	}
	config := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: s.infra.Namespace, Name: preferredSubnetMap}
	if err := r.Reader.Get(ctx, key, config); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	var subnets []string
	for _, subnet := range strings.FieldsFunc(config.Data[preferredSubnetKey], func(c rune) bool { return c == ',' || c == ' ' || c == '\n' }) {
		if _, err := netip.ParsePrefix(subnet); err != nil {
			return nil, fmt.Errorf("%q in %s of ConfigMap %s is not a network; write it as 10.0.0.0/24", subnet, preferredSubnetKey, key)
		}
		subnets = append(subnets, subnet)
	}
	return subnets, nil
}
