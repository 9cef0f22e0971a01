// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/releaseinfo"
)

func TestNodeStartup(t *testing.T) {
	d := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	for _, tc := range []struct {
		name  string
		block hyperv1.MAASNodePoolPlatform
		want  time.Duration
	}{
		{"When no timeouts are set, it should use the provider's defaults", hyperv1.MAASNodePoolPlatform{}, 225 * time.Minute},
		{"When the deploy timeout is set, it should count it for each attempt", hyperv1.MAASNodePoolPlatform{DeployTimeout: d(2 * time.Hour)}, 405 * time.Minute},
		{"When all timeouts are set, it should use all of them", hyperv1.MAASNodePoolPlatform{
			AllocateTimeout: d(time.Minute), DeployTimeout: d(time.Minute), BootTimeout: d(time.Minute), JoinTimeout: d(time.Minute)}, 6 * time.Minute},
		{"When virtual machines are created, it should add the time for their commissioning", hyperv1.MAASNodePoolPlatform{LXD: &hyperv1.MAASLXDNodePool{Enabled: true}}, 315 * time.Minute},
		{"When a timeout is zero, it should use the provider's default", hyperv1.MAASNodePoolPlatform{BootTimeout: d(0)}, 225 * time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect((&Platform{}).NodeStartup(testPool(releaseinfo.Kubernetes, tc.block))).To(Equal(tc.want))
		})
	}
}

func TestMachineStart(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	is := func(conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: "in its words", LastTransitionTime: metav1.NewTime(at)}
	}
	for _, tc := range []struct {
		name   string
		status infrav1.MaasMachineStatus
		want   platform.MachineStart
	}{
		{"When there are no conditions yet, it should report no start", infrav1.MaasMachineStatus{}, platform.MachineStart{}},
		{"When no MAAS machine matches, it should report no start", infrav1.MaasMachineStatus{
			Conditions: []metav1.Condition{is("MachineAllocated", metav1.ConditionFalse, "NoCapacity")}}, platform.MachineStart{}},
		{"When a machine is allocated, it should report the time of the allocation", infrav1.MaasMachineStatus{
			Conditions: []metav1.Condition{is("MachineAllocated", metav1.ConditionTrue, "MachineAllocated")}}, platform.MachineStart{Begun: at}},
		{"When the node is still joining, it should report no failure", infrav1.MaasMachineStatus{
			Conditions: []metav1.Condition{is("NodeProviderIDSet", metav1.ConditionFalse, "WaitingForNode")}}, platform.MachineStart{}},
		{"When the node has not joined in time, it should report a failure", infrav1.MaasMachineStatus{
			Conditions: []metav1.Condition{is("NodeProviderIDSet", metav1.ConditionFalse, "NodeTimedOut")}},
			platform.MachineStart{Reason: "NodeTimedOut", Message: "in its words"}},
		{"When the provider reports a failure, it should report the reason", infrav1.MaasMachineStatus{
			FailureReason: ptr.To("CreateError"), FailureMessage: ptr.To("3 machines failed"),
			Conditions: []metav1.Condition{is("Ready", metav1.ConditionFalse, "DeployAttemptsExhausted")}},
			platform.MachineStart{Reason: "DeployAttemptsExhausted", Message: "3 machines failed"}},
		{"When another provider reports only a failure reason, it should report the failure", infrav1.MaasMachineStatus{FailureReason: ptr.To("CreateError")},
			platform.MachineStart{Reason: "CreateError", Message: "the provider reported a terminal failure"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect((&Platform{}).MachineStart(&infrav1.MaasMachine{Status: tc.status})).To(Equal(tc.want))
		})
	}
}
