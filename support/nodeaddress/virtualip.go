// SPDX-License-Identifier: Apache-2.0

package nodeaddress

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// VirtualIPComponent is the name of the component that holds virtual IPs. It is also the component's value of the label
// hyperv1.OperatorComponentLabel.
const VirtualIPComponent = "api-virtual-ip"

// Virtual is a virtual IP, which moves between nodes.
type Virtual struct {
	// Host is the first address; empty if the management cluster has none.
	Host string
	// Fit is the number of nodes that can hold it.
	Fit int32
}

// FindVirtual returns the virtual IP that `hypershift install --api-virtual-ip` gave the management cluster. It returns
// a zero Virtual if there is none.
func FindVirtual(ctx context.Context, c client.Reader) (Virtual, error) {
	var sets appsv1.DaemonSetList
	if err := c.List(ctx, &sets, client.MatchingLabels{hyperv1.OperatorComponentLabel: VirtualIPComponent}); err != nil {
		return Virtual{}, fmt.Errorf("look for a virtual IP of the management cluster: %w", err)
	}
	for _, set := range sets.Items {
		if host, _, _ := strings.Cut(set.Annotations[hyperv1.APIVirtualIPAnnotation], ","); host != "" {
			return Virtual{Host: host, Fit: set.Status.NumberReady}, nil
		}
	}
	return Virtual{}, nil
}
