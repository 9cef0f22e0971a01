// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/none"
	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/platforms"
)

func TestManagementFault(t *testing.T) {
	rolling := &hyperv1.ReplaceUpgrade{Strategy: hyperv1.UpgradeStrategyRollingUpdate, RollingUpdate: &hyperv1.RollingUpdate{}}
	for _, tc := range []struct {
		name       string
		management hyperv1.NodePoolManagement
		want       string
	}{
		{"When machines are updated in place, it should accept the settings", hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeInPlace}, ""},
		{"When machines are replaced by a rolling update, it should accept the settings", hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace, Replace: rolling}, ""},
		{"When the replace block is missing, it should report it", hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace}, "replace is missing"},
		{"When the strategy is unknown, it should name the valid ones", hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace,
			Replace: &hyperv1.ReplaceUpgrade{Strategy: "Magic"}}, "use RollingUpdate or OnDelete"},
		{"When the rolling update has no limits, it should ask for them", hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace,
			Replace: &hyperv1.ReplaceUpgrade{Strategy: hyperv1.UpgradeStrategyRollingUpdate}}, "set maxSurge and maxUnavailable"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, got := NewWithT(t), managementFault(tc.management)
			if tc.want == "" {
				g.Expect(got).To(BeEmpty())
				return
			}
			g.Expect(got).To(ContainSubstring(tc.want))
		})
	}
}

func TestArchitectureFault(t *testing.T) {
	maas, _ := platforms.Of(hyperv1.MAASPlatform)
	for _, tc := range []struct {
		name, arch string
		payload    hyperv1.PayloadArchType
		faulty     bool
	}{
		{"When the pool sets no architecture, it should accept the pool", "", hyperv1.AMD64, false},
		{"When pool and payload have the same architecture, it should accept the pool", "amd64", hyperv1.AMD64, false},
		{"When the payload is multi-arch, it should accept the pool", "arm64", hyperv1.Multi, false},
		{"When the payload is not known yet, it should accept the pool", "arm64", "", false},
		{"When the payload is for another architecture, it should reject the pool", "arm64", hyperv1.AMD64, true},
		{"When the platform does not support the architecture, it should reject the pool", "s390x", hyperv1.Multi, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hc := &hyperv1.HostedCluster{Status: hyperv1.HostedClusterStatus{PayloadArch: tc.payload}}
			pool := &hyperv1.NodePool{Spec: hyperv1.NodePoolSpec{Arch: tc.arch}}
			NewWithT(t).Expect(architectureFault(pool, hc, maas) != "").To(Equal(tc.faulty))
		})
	}
}

func TestValidate(t *testing.T) {
	c := fixture.Start(t)
	for _, tc := range []struct {
		name          string
		namespace     string
		annotations   map[string]string
		plugins       map[hyperv1.PlatformType]platform.Platform
		cluster       func(*hyperv1.HostedCluster)
		pool          func(*hyperv1.NodePool)
		conditionType string
		reason, want  string
	}{
		{name: "When the release image is unknown, it should name the image", namespace: "no-image",
			pool:          func(p *hyperv1.NodePool) { p.Spec.Release.Image = "registry.example/none:1" },
			conditionType: "ValidReleaseImage", reason: "ValidationFailed", want: "registry.example/none:1"},
		{name: "When the pool is newer than the cluster, it should reject the release", namespace: "newer",
			cluster:       func(hc *hyperv1.HostedCluster) { hc.Status.Version = completed("1.35.0") },
			conditionType: "ValidReleaseImage", reason: "ValidationFailed", want: "upgrade the cluster first"},
		{name: "When the pool is too many minor versions behind, it should report the skew", namespace: "older",
			cluster:       func(hc *hyperv1.HostedCluster) { hc.Status.Version = completed("1.40.0") },
			conditionType: "SupportedVersionSkew", reason: "UnsupportedSkew", want: "more than 3 minor versions behind"},
		{name: "When pool and cluster have different platforms, it should reject the pool", namespace: "platform",
			pool:          func(p *hyperv1.NodePool) { p.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.NonePlatform} },
			conditionType: "ValidPlatformConfig", reason: "ValidationFailed", want: "they must be the same"},
		{name: "When the platform has no plugin, it should name the supported platforms", namespace: "plugin",
			pool: func(p *hyperv1.NodePool) {
				p.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.AWSPlatform}
			},
			plugins:       map[hyperv1.PlatformType]platform.Platform{hyperv1.NonePlatform: &none.Platform{}},
			conditionType: "ValidPlatformConfig", reason: "ValidationFailed", want: "use one of [None]"},
		{name: "When the control plane's update to the pool's version is incomplete, it should reject the release", namespace: "hanging",
			cluster:       func(hc *hyperv1.HostedCluster) { hc.Status.Version = onTheWay("1.36.3", "1.35.0") },
			conditionType: "ValidReleaseImage", reason: "ValidationFailed", want: "newer than the cluster's 1.35.0"},
		{name: "When the control plane is being installed, it should use the version of its spec", namespace: "installing",
			cluster:       func(hc *hyperv1.HostedCluster) { hc.Status.Version = onTheWay("1.36.3", "") },
			conditionType: "ValidReleaseImage", reason: "AsExpected", want: "1.36.3"},
		{name: "When a control plane is being installed with an older release, it should reject the pool's release", namespace: "installing-older",
			cluster:       func(hc *hyperv1.HostedCluster) { hc.Status.Version = onTheWay("1.36.3", "") },
			pool:          func(p *hyperv1.NodePool) { p.Spec.Release.Image = laterImage },
			conditionType: "ValidReleaseImage", reason: "ValidationFailed", want: "newer than the cluster's 1.36.3"},
		{name: "When a control plane update would exceed the skew, it should not report the skew until it completes", namespace: "skew-coming",
			cluster:       func(hc *hyperv1.HostedCluster) { hc.Status.Version = onTheWay("1.40.0", "1.36.3") },
			conditionType: "SupportedVersionSkew", reason: "AsExpected", want: "All is well"},
		{name: "When an OpenShift pool sets no image, it should report it", namespace: "ocp-imageless",
			annotations:   map[string]string{hyperv1.SkipReleaseImageValidation: "true"},
			pool:          func(p *hyperv1.NodePool) { p.Spec.Release.Image = fixture.OCPImage },
			conditionType: "ValidPlatformConfig", reason: "ValidationFailed", want: "spec.platform.maas.image is empty"},
		{name: "When the ignition endpoint is missing, it should wait", namespace: "endpoint",
			cluster:       func(hc *hyperv1.HostedCluster) { hc.Status.IgnitionEndpoint = "" },
			conditionType: "IgnitionEndpointAvailable", reason: "IgnitionEndpointMissing", want: "Waiting"},
		{name: "When a configuration is missing, it should name the ConfigMap", namespace: "config",
			pool:          func(p *hyperv1.NodePool) { p.Spec.Config = []corev1.LocalObjectReference{{Name: "gone"}} },
			conditionType: "ValidMachineConfig", reason: "ValidationFailed", want: "there is no ConfigMap config/gone"},
		{name: "When fields have no effect for the release, it should report them", namespace: "in-vain",
			pool: func(p *hyperv1.NodePool) {
				p.Spec.TuningConfig = []corev1.LocalObjectReference{{Name: "tuned"}}
				p.Spec.OSImageStream = &hyperv1.OSImageStreamReference{Name: "rhel-10"}
			},
			conditionType: "AllFieldsHonored", reason: "FieldsWithoutEffect", want: "spec.tuningConfig, spec.osImageStream; remove"},
		{name: "When the pool is paused, it should report until when", namespace: "paused",
			pool:          func(p *hyperv1.NodePool) { p.Spec.PausedUntil = ptr.To("2030-01-01T00:00:00Z") },
			conditionType: "ReconciliationActive", reason: "ReconciliationPaused", want: "2030-01-01T00:00:00Z"},
		{name: "When an autoscaler image is set, it should report the limits", namespace: "scale",
			annotations: map[string]string{hyperv1.ClusterAutoscalerImage: "registry.example/autoscaler:1"},
			pool: func(p *hyperv1.NodePool) {
				p.Spec.Replicas = nil
				p.Spec.AutoScaling = &hyperv1.NodePoolAutoScaling{Min: ptr.To[int32](1), Max: 3}
			},
			conditionType: "AutoscalingEnabled", reason: "AsExpected", want: "between 1 and 3 machines"},
		{name: "When the release has no autoscaler, it should report it and how to set an image", namespace: "scale-none",
			pool: func(p *hyperv1.NodePool) {
				p.Spec.Replicas = nil
				p.Spec.AutoScaling = &hyperv1.NodePoolAutoScaling{Min: ptr.To[int32](1), Max: 3}
			},
			conditionType: "AutoscalingEnabled", reason: "ValidationFailed", want: "brings no cluster-autoscaler"},
		{name: "When machines of a Kubernetes release are updated in place, it should accept the settings", namespace: "in-place",
			pool: func(p *hyperv1.NodePool) {
				p.Spec.Management = hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeInPlace}
			},
			conditionType: "UpdateManagementEnabled", reason: "AsExpected", want: "updated by InPlace"},
		{name: "When no machine has fetched its configuration, it should not start auto-repair", namespace: "repair",
			conditionType: "AutorepairEnabled", reason: "WaitingForFirstMachine", want: "as soon as one has fetched"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newWorld(t, c, tc.namespace)
			s.Releases = laterPayloads()
			if tc.plugins != nil {
				s.Platforms = registry.Of(tc.plugins)
			}
			s.ready(func(hc *hyperv1.HostedCluster) { hc.Annotations = tc.annotations })
			if tc.cluster != nil {
				hc := &hyperv1.HostedCluster{}
				s.Expect(c.Get(t.Context(), ctrlKey(s.namespace, fixture.ClusterName), hc)).To(Succeed())
				tc.cluster(hc)
				s.Expect(c.Status().Update(t.Context(), hc)).To(Succeed())
			}
			pool := fixture.NodePool(s.namespace)
			if tc.pool != nil {
				tc.pool(pool)
			}
			fixture.Create(t, c, pool)
			s.mustPass()
			got := s.condition(tc.conditionType)
			s.Expect(got.Reason).To(Equal(tc.reason))
			s.Expect(got.Message).To(ContainSubstring(tc.want))
		})
	}
}

func completed(version string) *hyperv1.ClusterVersionStatus {
	now := metav1.Now()
	status := &hyperv1.ClusterVersionStatus{}
	status.Desired.Version, status.Desired.Image = version, "registry.example/release:"+version
	status.History = append(status.History, updateHistory(version, now))
	return status
}

// onTheWay returns the status of a control plane that is being updated to a version; from is empty during the first
// installation.
func onTheWay(to, from string) *hyperv1.ClusterVersionStatus {
	status := &hyperv1.ClusterVersionStatus{}
	if from != "" {
		status = completed(from)
	}
	entry := updateHistory(to, metav1.Now())
	entry.State, entry.CompletionTime = configv1.PartialUpdate, nil
	status.History = append([]configv1.UpdateHistory{entry}, status.History...)
	status.Desired.Version, status.Desired.Image = to, entry.Image
	return status
}

// faulty is a platform whose pools wait for something that is missing.
type faulty struct {
	none.Platform
	fault error
}

func (f *faulty) ValidateNodePool(platform.Pool) error { return f.fault }

func TestValidatePlatformFault(t *testing.T) {
	g := NewWithT(t)
	pool := &hyperv1.NodePool{Status: hyperv1.NodePoolStatus{Conditions: []hyperv1.NodePoolCondition{{Type: "ValidPlatformImage", Status: "False"}}}}
	s := newReconciliation(pool)
	waiting := &faulty{fault: &platform.Fault{Condition: "ValidPlatformImage", Reason: "ValidationFailed", Message: "no image"}}
	s.Platform = waiting
	g.Expect(s.validatePlatform()).To(MatchError(phase.ErrStop))
	g.Expect(s.Conditions["ValidPlatformImage"].Message).To(Equal("no image"))
	g.Expect(s.Conditions["ValidPlatformConfig"].Status).To(Equal(metav1.ConditionTrue), "nothing is wrong with the settings")
	g.Expect(s.Cleared).To(BeEmpty())

	s = newReconciliation(pool)
	s.Platform, waiting.fault = waiting, nil
	g.Expect(s.validatePlatform()).To(Succeed())
	g.Expect(s.Cleared).To(BeEmpty(), "the payload is not known: what was said last stays")
	s.Release = fixture.Payloads()[fixture.ReleaseImage]
	g.Expect(s.validatePlatform()).To(Succeed())
	g.Expect(s.Cleared).To(ContainElement("ValidPlatformImage"))
}

// finding is a platform that finds an image for each pool.
type finding struct{ faulty }

func (*finding) Findings(p platform.Pool) []platform.Finding {
	return []platform.Finding{{Condition: "ValidPlatformImage", Message: "image of " + p.Stream}}
}

func TestPlatformFindings(t *testing.T) {
	g := NewWithT(t)
	s := newReconciliation(&hyperv1.NodePool{})
	s.Release = fixture.Payloads()[fixture.ReleaseImage]
	found := &finding{}
	s.Platform = found
	g.Expect(s.validatePlatform()).To(Succeed())
	s.Stream = "rhel-10"
	g.Expect(s.validatePlatform()).To(Succeed())
	g.Expect(s.Conditions["ValidPlatformImage"].Status).To(Equal(metav1.ConditionTrue))
	g.Expect(s.Conditions["ValidPlatformImage"].Message).To(Equal("image of rhel-10"))
	g.Expect(s.Cleared).NotTo(ContainElement("ValidPlatformImage"))

	found.fault = &platform.Fault{Condition: "AWSSecurityGroupAvailable", Reason: "NotReady", Message: "not made yet"}
	g.Expect(s.validatePlatform()).To(MatchError(phase.ErrStop))
	g.Expect(s.Conditions["AWSSecurityGroupAvailable"].Status).To(Equal(metav1.ConditionFalse))
	g.Expect(s.Conditions["ValidPlatformImage"].Status).To(Equal(metav1.ConditionTrue), "it waits for something else")
	found.fault = &platform.Fault{Condition: "ValidPlatformImage", Reason: "ValidationFailed", Message: "no image"}
	g.Expect(s.validatePlatform()).To(MatchError(phase.ErrStop))
	g.Expect(s.Conditions["ValidPlatformImage"].Message).To(Equal("no image"))
}
