// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/distributions"
)

// keepVolumes keeps the current size of the etcd volumes if the payload brings its own operator. That operator cannot
// enlarge volumes, and an unexpected size would fail each of its reconciles. last is the etcd spec of the current
// HostedControlPlane.
func (s *scope) keepVolumes(etcd, last hyperv1.EtcdSpec) {
	wanted, had := volumeSize(etcd), volumeSize(last)
	if wanted == nil || had == nil || wanted.Cmp(*had) == 0 {
		return
	}
	if s.wantedControlPlane == nil {
		// The operator of the release is unknown until the release can be read.
		*wanted = *had
		return
	}
	if !distributions.Of(s.wantedControlPlane.Distribution()).OwnOperators {
		return
	}
	s.SetCondition(condition.True(string(hyperv1.ValidHostedClusterConfiguration), hyperv1.AsExpectedReason, fmt.Sprintf(
		"%s; without effect: etcd.managed.storage.persistentVolume.size, since the operator of an OpenShift payload cannot enlarge volumes. They stay at %s",
		hyperv1.AllIsWellMessage, had.String())))
	*wanted = *had
}

func volumeSize(etcd hyperv1.EtcdSpec) *resource.Quantity {
	if etcd.Managed == nil || etcd.Managed.Storage.PersistentVolume == nil {
		return nil
	}
	return etcd.Managed.Storage.PersistentVolume.Size
}
