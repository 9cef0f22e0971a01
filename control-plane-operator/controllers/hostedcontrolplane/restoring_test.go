// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/phase"
)

func TestTellRestoring(t *testing.T) {
	t.Run("When a running control plane waits for a restore, it should report not ready and stay initialized", func(t *testing.T) {
		g := NewWithT(t)
		hcp := fixture.ControlPlane()
		restoring(hcp)
		told := []hyperv1.ConditionType{hyperv1.HostedControlPlaneAvailable, hyperv1.EtcdAvailable, hyperv1.KubeAPIServerAvailable, hyperv1.EtcdMembersHealthy}
		for _, t := range told {
			hcp.Status.Conditions = condition.Merge(hcp.Status.Conditions, 1, condition.True(string(t), hyperv1.AsExpectedReason, ""))
		}
		hcp.Status.Ready, hcp.Status.Initialized = true, true
		c := fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(hcp).WithStatusSubresource(hcp).Build()
		_, err := (&Reconciler{Client: c}).begin(t.Context(), hcp)
		g.Expect(err).To(MatchError(phase.ErrStop))
		stored := &hyperv1.HostedControlPlane{}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(hcp), stored)).To(Succeed())
		for _, t := range told {
			g.Expect(meta.FindStatusCondition(stored.Status.Conditions, string(t))).To(And(HaveField("Status", BeEquivalentTo("False")), HaveField("Reason", hyperv1.WaitingForBackupReason)), string(t))
		}
		g.Expect(stored.Status.Ready).To(BeFalse())
		g.Expect(stored.Status.Initialized).To(BeTrue())
		_, err = (&Reconciler{Client: c}).begin(t.Context(), stored.DeepCopy())
		g.Expect(err).To(MatchError(phase.ErrStop))
		again := &hyperv1.HostedControlPlane{}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(hcp), again)).To(Succeed())
		g.Expect(again.ResourceVersion).To(Equal(stored.ResourceVersion), "it is said once")
	})
	t.Run("When the status cannot be written during a restore, it should return an error", func(t *testing.T) {
		w := fakeWorld(t)
		restoring(w.hcp)
		w.refuse("update status")
		_, err := w.r.begin(t.Context(), w.hcp)
		NewWithT(t).Expect(err).To(MatchError(errRefused))
	})
}
