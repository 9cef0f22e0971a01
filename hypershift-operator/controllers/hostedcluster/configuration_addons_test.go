// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	. "github.com/onsi/gomega"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/releaseinfo"
)

func TestAddonsNeedKubernetes(t *testing.T) {
	g, s, d := NewWithT(t), withScope(), newDesk()
	s.HC.Spec.Addons = &hyperv1.AddonsSpec{KubeProxyMode: "nftables"}
	for distribution, refused := range map[releaseinfo.Distribution]bool{releaseinfo.Kubernetes: false, releaseinfo.OpenShift: true} {
		s.Release = releaseinfo.New("", releaseinfo.Payload{Version: "1.36.3", Distribution: distribution})
		_, err := d.reconcileAddons(t.Context(), s)
		g.Expect(err != nil).To(Equal(refused), "%s: %v", distribution, err)
	}
}
