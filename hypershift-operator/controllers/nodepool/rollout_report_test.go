// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// TestReportUpdatingBuild checks that a different build of the pool's version counts as an update.
func TestReportUpdatingBuild(t *testing.T) {
	for name, test := range map[string]struct {
		version, digest string
		want            metav1.ConditionStatus
	}{
		"the same build":                        {"1.36.3", "sha256:2", metav1.ConditionFalse},
		"another build":                         {"1.36.3", "sha256:1", metav1.ConditionTrue},
		"a renamed build":                       {"1.36.2", "sha256:2", metav1.ConditionTrue},
		"no recorded build":                     {"1.36.3", "", metav1.ConditionFalse},
		"another version and no recorded build": {"1.36.2", "", metav1.ConditionTrue},
	} {
		t.Run("When nodes have "+name+", it should report whether they need an update", func(t *testing.T) {
			g, s := NewWithT(t), pass()
			s.Release = releaseinfo.New("r", releaseinfo.Payload{Version: "1.36.3", Digest: "sha256:2"})
			s.Pool.Status.Version = test.version
			if test.digest != "" {
				scope.Annotate(s.Pool, hyperv1.NodePoolCurrentReleaseAnnotation, test.digest)
			}
			s.reportUpdating(nil)
			g.Expect(s.Conditions[hyperv1.NodePoolUpdatingVersionConditionType].Status).To(Equal(test.want))
		})
	}
}

func TestReportRolledOut(t *testing.T) {
	g, s := NewWithT(t), pass()
	s.reportRolledOut()
	for _, kind := range []string{hyperv1.NodePoolUpdatingConfigConditionType, hyperv1.NodePoolUpdatingVersionConditionType,
		hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType} {
		g.Expect(s.says(kind)).To(Equal("False/AsExpected: "+hyperv1.AllIsWellMessage), kind)
	}
}

func TestObserveMakers(t *testing.T) {
	g, s, kind := NewWithT(t), pass(), hyperv1.NodePoolReadyConditionType
	reported := []metav1.Condition{
		condition.False(clusterv1.MachineDeploymentAvailableCondition, "R", "of a deployment"), condition.False(clusterv1.MachineSetMachinesReadyCondition, "R", "of a set"),
	}
	md, ms := &clusterv1.MachineDeployment{}, &clusterv1.MachineSet{}
	md.Spec.Replicas, md.Status.Conditions = ptr.To[int32](3), reported
	ms.Spec.Replicas, ms.Status.Conditions = ptr.To[int32](4), reported
	s.observeDeployment(md)
	g.Expect(s.says(kind)).To(Equal("False/WaitingForMachines: 0 of 3 machines are available. of a deployment"))
	s.observeMachineSet(ms)
	g.Expect(s.says(kind)).To(Equal("False/WaitingForMachines: 0 of 4 machines are available. of a set"))
	ms.Status.Conditions[1].Message = ""
	s.observeMachineSet(ms)
	g.Expect(s.says(kind)).To(Equal("False/WaitingForMachines: 0 of 4 machines are available"))
}

func TestAvailable(t *testing.T) {
	refused := scopetest.Machine("b", "wanted", scopetest.Joined)
	refused.Status.Conditions[0].Status = metav1.ConditionFalse
	older := scopetest.Machine("c", "wanted")
	//nolint:staticcheck // as an older Cluster API writes them
	older.SetV1Beta1Conditions(clusterv1.Conditions{{Type: clusterv1.InfrastructureReadyV1Beta1Condition, Status: corev1.ConditionTrue}})
	older.Status.NodeRef.Name = "c"
	NewWithT(t).Expect(available([]*clusterv1.Machine{
		scopetest.Machine("a", "wanted", scopetest.Joined), refused, older, scopetest.Machine("d", "wanted", scopetest.Joined, scopetest.Leaving), scopetest.Machine("e", "wanted"), scopetest.Machine("f", "wanted", scopetest.Joined),
	})).To(BeEquivalentTo(2))
	nodeless := scopetest.Machine("g", "wanted")
	//nolint:staticcheck // as an older Cluster API writes them
	nodeless.SetV1Beta1Conditions(clusterv1.Conditions{{Type: clusterv1.ReadyV1Beta1Condition, Status: corev1.ConditionTrue}})
	NewWithT(t).Expect(serves(nodeless)).To(BeFalse(), "it has no node")
}
