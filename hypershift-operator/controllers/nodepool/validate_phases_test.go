// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/none"
	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/platforms"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// said returns the status and the reason of a condition.
func said(s *reconciliation, conditionType string) string {
	c := s.Conditions[conditionType]
	return string(c.Status) + " " + c.Reason
}

// TestAutoscalingSaid checks what the pool reports about its number of machines, with and without an autoscaler.
func TestAutoscalingSaid(t *testing.T) {
	scaled := func(minimum *int32) *hyperv1.NodePoolAutoScaling {
		return &hyperv1.NodePoolAutoScaling{Min: minimum, Max: 3}
	}
	for name, tc := range map[string]struct {
		platform   hyperv1.PlatformType
		scaling    *hyperv1.NodePoolAutoScaling
		annotation string
		components []string
		// phase is the report of the phase, and payload the report once the payload is known.
		phase, message, payload string
	}{
		"When replicas is set, it should report the fixed number":                          {"MAAS", nil, "", nil, "False AsExpected", "spec.replicas", "False AsExpected"},
		"When the payload has the autoscaler, it should report autoscaling":                {"MAAS", scaled(ptr.To[int32](1)), "", []string{"cluster-autoscaler"}, "True AsExpected", "between 1 and 3", "True AsExpected"},
		"When an annotation sets the autoscaler's image, it should report autoscaling":     {"MAAS", scaled(ptr.To[int32](2)), "registry.example/a", nil, "True AsExpected", "between 2 and 3", "True AsExpected"},
		"When the payload has no autoscaler, it should report a validation failure":        {"MAAS", scaled(ptr.To[int32](1)), "", []string{"other"}, "True AsExpected", "between 1 and 3", "False ValidationFailed"},
		"When the platform allows empty pools, it should accept a minimum of zero":         {"MAAS", scaled(ptr.To[int32](0)), "", []string{"cluster-autoscaler"}, "True AsExpected", "between 0 and 3", "True AsExpected"},
		"When the platform does not allow empty pools, it should reject a minimum of zero": {"KubeVirt", scaled(ptr.To[int32](0)), "", []string{"cluster-autoscaler"}, "False ValidationFailed", "KubeVirt", "False ValidationFailed"},
		"When the platform does not allow empty pools, it should accept a minimum of one":  {"KubeVirt", scaled(ptr.To[int32](1)), "", []string{"cluster-autoscaler"}, "True AsExpected", "between 1 and 3", "True AsExpected"},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), pass()
			s.Pool.Spec.Platform.Type, s.Pool.Spec.AutoScaling = tc.platform, tc.scaling
			if tc.annotation != "" {
				scope.Annotate(s.HC, hyperv1.ClusterAutoscalerImage, tc.annotation)
			}
			components := map[string]string{}
			for _, component := range tc.components {
				components[component] = "registry.example/" + component
			}
			s.Release = releaseinfo.New("r", releaseinfo.Payload{Version: "1.36.3", Distribution: releaseinfo.Kubernetes, Components: components})
			result, err := (&Reconciler{}).validateAutoscaling(t.Context(), s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result).To(BeZero())
			g.Expect(said(s, "AutoscalingEnabled")).To(Equal(tc.phase))
			g.Expect(s.Conditions["AutoscalingEnabled"].Message).To(ContainSubstring(tc.message))
			s.validateAutoscaler()
			g.Expect(said(s, "AutoscalingEnabled")).To(Equal(tc.payload))
		})
	}
}

// TestAutoscalingOfUnwritableTaints checks what the pool reports about taints that it does not write.
func TestAutoscalingOfUnwritableTaints(t *testing.T) {
	g, s := NewWithT(t), pass()
	s.Pool.Spec.AutoScaling = &hyperv1.NodePoolAutoScaling{Min: ptr.To[int32](1), Max: 3}
	s.Pool.Spec.Taints = []hyperv1.Taint{{Key: "own:NoSchedule,b", Effect: "NoSchedule"}}
	_, err := (&Reconciler{}).validateAutoscaling(t.Context(), s)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(said(s, "AutoscalingEnabled")).To(Equal("False ValidationFailed"))
	g.Expect(s.Conditions["AutoscalingEnabled"].Message).To(ContainSubstring("spec.taints has a key that is not a valid label key"))
}

// TestManagementSaid checks that invalid settings end the reconcile.
func TestManagementSaid(t *testing.T) {
	g, s := NewWithT(t), pass()
	result, err := (&Reconciler{}).validateManagement(t.Context(), s)
	g.Expect(err).To(MatchError(phase.ErrStop))
	g.Expect(result).To(BeZero())
	g.Expect(said(s, "UpdateManagementEnabled")).To(Equal("False ValidationFailed"))
	g.Expect(s.Conditions["UpdateManagementEnabled"].Message).To(ContainSubstring("spec.management.replace is missing"))
	s.Pool.Spec.Management.Replace = &hyperv1.ReplaceUpgrade{Strategy: hyperv1.UpgradeStrategyOnDelete}
	_, err = (&Reconciler{}).validateManagement(t.Context(), s)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(said(s, "UpdateManagementEnabled")).To(Equal("True AsExpected"))
	g.Expect(s.Conditions["UpdateManagementEnabled"].Message).To(ContainSubstring("Replace"))
}

// TestPlatformSaid checks the validation of the pool's platform settings.
func TestPlatformSaid(t *testing.T) {
	const valid, arch = "ValidPlatformConfig", "ValidArchPlatform"
	for name, tc := range map[string]struct {
		change func(*reconciliation)
		err    error
		want   map[string]string
		// says is part of the message of the false condition.
		says string
	}{
		"When all settings are valid, it should report true": {want: map[string]string{valid: "True AsExpected", arch: "True AsExpected"}},
		"When the platform is not supported, it should report the supported ones": {change: func(s *reconciliation) { s.PlatformServed, s.Pool.Spec.Platform.Type = false, "AWS" },
			err: phase.ErrStop, want: map[string]string{valid: "False ValidationFailed"}, says: "AWS: use one of [None]"},
		"When the cluster has another platform, it should report it": {change: func(s *reconciliation) { s.HC.Spec.Platform.Type = "AWS" },
			err: phase.ErrStop, want: map[string]string{valid: "False ValidationFailed"}, says: "the HostedCluster's is AWS"},
		"When the platform rejects the pool, it should report why": {change: func(s *reconciliation) { s.Platform = &faulty{fault: errors.New("no such zone")} },
			err: phase.ErrStop, want: map[string]string{valid: "False ValidationFailed"}, says: "no such zone"},
		"When the platform waits for a resource, it should report which one": {
			change: func(s *reconciliation) {
				s.Platform = &faulty{fault: &platform.Fault{Condition: "ValidPlatformImage", Reason: "NoImage", Message: "none yet"}}
			},
			err: phase.ErrStop, want: map[string]string{valid: "True AsExpected", "ValidPlatformImage": "False NoImage"}, says: "none yet"},
		"When the platform does not support the architecture, it should report it": {change: func(s *reconciliation) { s.Pool.Spec.Arch = "s390x" },
			err: phase.ErrStop, want: map[string]string{valid: "True AsExpected", arch: "False InvalidArchPlatform"}, says: "s390x is not supported on platform None"},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), pass()
			s.Platform, s.PlatformServed = none.Platform{}, true
			s.Pool.Spec.Platform.Type, s.HC.Spec.Platform.Type = "None", "None"
			if tc.change != nil {
				tc.change(s)
			}
			r := &Reconciler{Platforms: registry.Of(map[hyperv1.PlatformType]platform.Platform{"None": none.Platform{}})}
			result, err := r.reconcilePlatform(t.Context(), s)
			g.Expect(result).To(BeZero())
			if tc.err != nil {
				g.Expect(err).To(MatchError(tc.err))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
			got := map[string]string{}
			for conditionType, c := range s.Conditions {
				got[conditionType] = said(s, conditionType)
				if c.Status == metav1.ConditionFalse {
					g.Expect(c.Message).To(ContainSubstring(tc.says))
				}
			}
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

// TestPayloadArchitectures checks that an image of one architecture supports only machines of that architecture.
func TestPayloadArchitectures(t *testing.T) {
	payloads := map[string]hyperv1.PayloadArchType{"amd64": "AMD64", "arm64": "ARM64", "ppc64le": "PPC64LE", "s390x": "S390X"}
	for arch := range payloads {
		t.Run("When machines are of "+arch+", it should accept only a payload of that architecture", func(t *testing.T) {
			for of, payload := range payloads {
				hc := &hyperv1.HostedCluster{Status: hyperv1.HostedClusterStatus{PayloadArch: payload}}
				pool := &hyperv1.NodePool{Spec: hyperv1.NodePoolSpec{Arch: arch}}
				why := architectureFault(pool, hc, platforms.Traits{Architectures: []string{"amd64", "arm64", "ppc64le", "s390x"}})
				NewWithT(t).Expect(why == "").To(Equal(of == arch), "payload of %s: %s", of, why)
			}
		})
	}
}

// keeping is a platform that manages the image of its machines.
type keeping struct {
	faulty
	platform.ImageKeeper
}

// TestReportFault checks that the condition of a fault is cleared when the fault is gone, unless a later phase sets
// it.
func TestReportFault(t *testing.T) {
	const image, group = "ValidPlatformImage", "AWSSecurityGroupAvailable"
	waits := func(conditionType string) *platform.Fault {
		return &platform.Fault{Condition: conditionType, Reason: "NotReady", Message: "not made yet"}
	}
	for name, tc := range map[string]struct {
		platform platform.Platform
		fault    *platform.Fault
		unknown  bool
		cleared  []string
		want     map[string]string
	}{
		"When the payload is unknown, it should keep all conditions":                         {platform: &faulty{}, unknown: true, want: map[string]string{}},
		"When there is no fault, it should clear both conditions":                            {platform: &faulty{}, cleared: []string{image, group}, want: map[string]string{}},
		"When the pool waits for an image, it should clear the security group condition":     {platform: &faulty{}, fault: waits(image), cleared: []string{group}, want: map[string]string{image: "False NotReady"}},
		"When the pool waits for a security group, it should clear the image condition":      {platform: &faulty{}, fault: waits(group), cleared: []string{image}, want: map[string]string{group: "False NotReady"}},
		"When the platform manages images, it should leave the image condition to it":        {platform: &keeping{}, cleared: []string{group}, want: map[string]string{}},
		"When an image is found, it should report it and clear the security group condition": {platform: &finding{}, cleared: []string{group}, want: map[string]string{image: "True AsExpected"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), pass()
			s.Platform = tc.platform
			if tc.unknown {
				s.Release = nil
			}
			s.reportFault(tc.fault)
			g.Expect(s.Cleared).To(Equal(tc.cleared))
			got := map[string]string{}
			for conditionType := range s.Conditions {
				got[conditionType] = said(s, conditionType)
			}
			g.Expect(got).To(Equal(tc.want))
		})
	}
}
