// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/phase"
)

func TestObserve(t *testing.T) {
	t.Run("When a backup is being restored, it should not change members or volumes", func(t *testing.T) {
		hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{hyperv1.RestoringAnnotation: "true"}}}
		_, err := (&Reconciler{}).observe(t.Context(), hcp)
		NewWithT(t).Expect(err).To(MatchError(phase.ErrStop))
	})
}
