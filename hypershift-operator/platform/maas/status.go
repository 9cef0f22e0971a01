// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/upsert"
)

// CompleteStatus implements platform.StatusCompleter. It sets status.initialization.provisioned of what a third-party
// provider reports as ready, because Cluster API waits for it. It also removes a list of failure domains that the
// provider cannot read.
func (p *Platform) CompleteStatus(ctx context.Context, c client.Client, cluster platform.Cluster) error {
	if !p.foreign(cluster) {
		return nil
	}
	infras, machines := &infrav1.MaasClusterList{}, &infrav1.MaasMachineList{}
	if err := c.List(ctx, infras, client.InNamespace(cluster.Namespace)); err != nil {
		return fmt.Errorf("listing MaasClusters of namespace %s: %w", cluster.Namespace, err)
	}
	if err := c.List(ctx, machines, client.InNamespace(cluster.Namespace)); err != nil {
		return fmt.Errorf("listing MaasMachines of namespace %s: %w", cluster.Namespace, err)
	}
	keepZones := thirdPartyOf(p.image(cluster)).zones
	var failures []error
	for i := range infras.Items {
		status := &infras.Items[i].Status
		failures = append(failures, upsert.Status(ctx, c, &infras.Items[i], func() {
			provision(status.Ready, &status.Initialization)
			if !keepZones {
				status.FailureDomains = nil
			}
		}))
	}
	for i := range machines.Items {
		status := &machines.Items[i].Status
		failures = append(failures, upsert.Status(ctx, c, &machines.Items[i], func() {
			provision(status.Ready, &status.Initialization)
		}))
	}
	return errors.Join(failures...)
}

// provision sets provisioned when an object becomes ready. It never resets provisioned.
func provision(ready bool, status *infrav1.InitializationStatus) {
	if ready {
		status.Provisioned = ptr.To(true)
	}
}
