// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// ClaimName returns the name of the PersistentVolumeClaim of a pod.
func ClaimName(pod string) string { return dataVolume + "-" + pod }

// Size returns the desired size of each member's volume.
func Size(hcp *hyperv1.HostedControlPlane) resource.Quantity {
	if managed := hcp.Spec.Etcd.Managed; managed != nil && managed.Storage.PersistentVolume != nil && managed.Storage.PersistentVolume.Size != nil {
		return *managed.Storage.PersistentVolume.Size
	}
	return resource.MustParse(defaultSize)
}

// Quota returns the maximum size of the database in bytes. The log and the snapshots get a fifth of the volume. An
// etcd that reaches its quota rejects writes and can be repaired. An etcd whose disk is full cannot even compact. The
// quota follows the smallest existing volume, since an expansion may take long, or never succeed.
func Quota(hcp *hyperv1.HostedControlPlane, claims []corev1.PersistentVolumeClaim) int64 {
	smallest := Size(hcp)
	for i := range claims {
		if has := claims[i].Status.Capacity.Storage(); !has.IsZero() && has.Cmp(smallest) < 0 {
			smallest = *has
		}
	}
	return smallest.Value() / 5 * 4
}

// readQuota reads the claims and returns the quota for them.
func readQuota(ctx context.Context, reader client.Reader, hcp *hyperv1.HostedControlPlane) (int64, error) {
	var claims []corev1.PersistentVolumeClaim
	for _, pod := range Pods(hcp) {
		claim := corev1.PersistentVolumeClaim{}
		key := client.ObjectKey{Namespace: hcp.Namespace, Name: ClaimName(pod)}
		if err := client.IgnoreNotFound(reader.Get(ctx, key, &claim)); err != nil {
			return 0, fmt.Errorf("reading PersistentVolumeClaim %s: %w", key, err)
		}
		claims = append(claims, claim)
	}
	return Quota(hcp, claims), nil
}
