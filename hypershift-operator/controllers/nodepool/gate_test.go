// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/support/releaseinfo"
)

const (
	olderBuild = "registry.example/release@sha256:1"
	newerBuild = "registry.example/release@sha256:2"
)

// build returns a payload that was read by a tag, or by its digest.
func build(image, version, digest string) *releaseinfo.ReleaseImage {
	return releaseinfo.New(image, releaseinfo.Payload{Version: version, Distribution: releaseinfo.Kubernetes, Digest: digest})
}

// gated returns a scope of a pool that names the second build of 1.36.3 by a tag, as its cluster does.
func gated() (*Reconciler, *reconciliation) {
	s := pass()
	s.access = release.Access{PullSecret: []byte("{}")}
	s.Pool.Status.Version = ""
	s.Pool.Spec.Release.Image, s.Release = "registry.example/release:second", build("registry.example/release:second", "1.36.3", "sha256:2")
	s.HC.Spec.Release.Image = s.Pool.Spec.Release.Image
	return &Reconciler{Releases: fixture.Releases{
		"registry.example/release:older": build("registry.example/release:older", "1.36.2", "sha256:0"), olderBuild: build(olderBuild, "1.36.3", "sha256:1"),
		newerBuild: build(newerBuild, "1.36.3", "sha256:2"), "registry.example/release:second": build("registry.example/release:second", "1.36.3", "sha256:2"),
	}}, s
}

// ran returns a history of updates that begins with the newest.
func ran(entries ...configv1.UpdateHistory) *hyperv1.ClusterVersionStatus {
	return &hyperv1.ClusterVersionStatus{History: entries}
}

func step(state configv1.UpdateState, version, image string) configv1.UpdateHistory {
	return configv1.UpdateHistory{State: state, Version: version, Image: image}
}

func TestGate(t *testing.T) {
	for name, test := range map[string]struct {
		change    func(*reconciliation)
		plane     string
		toldParts []string
	}{
		"When the control plane has completed the version, it should allow nodes": {
			func(s *reconciliation) {
				s.HC.Status.Version = ran(step(configv1.CompletedUpdate, "1.36.3", newerBuild))
			}, "1.36.3", nil},
		"When the control plane is being installed, it should compare with the cluster's spec": {func(*reconciliation) {}, "1.36.3", nil},
		"When the control plane is being installed with an older release, it should reject newer nodes": {
			func(s *reconciliation) { s.HC.Spec.Release.Image = "registry.example/release:older" }, "1.36.2", []string{"1.36.3", "1.36.2"}},
		"When the control plane has completed only an older version, it should reject newer nodes": {
			func(s *reconciliation) {
				s.HC.Status.Version = ran(step(configv1.PartialUpdate, "1.36.3", newerBuild), step(configv1.CompletedUpdate, "1.36.2", "x"))
			}, "1.36.2", []string{"1.36.3", "1.36.2"}},
		"When the NodePool is downgraded and newer than the control plane, it should report both": {
			func(s *reconciliation) {
				s.Pool.Status.Version = "1.37.0"
				s.HC.Status.Version = ran(step(configv1.CompletedUpdate, "1.36.2", "x"))
			}, "1.36.2", []string{"going back", "1.36.2"}},
		"When the control plane is being updated to the same build, nodes should wait": {
			func(s *reconciliation) {
				s.HC.Status.Version = ran(step(configv1.PartialUpdate, "1.36.3", newerBuild), step(configv1.CompletedUpdate, "1.36.3", olderBuild))
			}, "1.36.3", []string{newerBuild}},
		"When the release of the cluster cannot be read, it should name the cluster": {
			func(s *reconciliation) { s.HC.Spec.Release.Image = "registry.example/unknown:1" }, "", []string{"HostedCluster demo", "manifest unknown"}},
		"When validation is skipped, it should allow any version": {
			func(s *reconciliation) {
				scope.Annotate(s.HC, hyperv1.SkipReleaseImageValidation, "true")
				s.Pool.Status.Version = "1.37.0"
				s.HC.Status.Version = ran(step(configv1.CompletedUpdate, "1.35.0", "x"))
			}, "1.35.0", nil},
		"When validation is skipped during installation, it should not read the cluster's release": {
			func(s *reconciliation) {
				scope.Annotate(s.HC, hyperv1.SkipReleaseImageValidation, "true")
				s.HC.Spec.Release.Image = "registry.example/unknown:1"
			}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, s := gated()
			test.change(s)
			err := r.gate(t.Context(), s)
			g.Expect(s.controlPlaneVersion).To(Equal(test.plane))
			if test.toldParts == nil {
				g.Expect(err).NotTo(HaveOccurred())
			}
			for _, part := range test.toldParts {
				g.Expect(err).To(MatchError(ContainSubstring(part)))
			}
		})
	}
	t.Run("When the cluster's release has no version, it should still report a downgrade of the NodePool", func(t *testing.T) {
		r, s := gated()
		s.Pool.Status.Version, s.HC.Spec.Release.Image = "1.37.0", "nameless"
		r.Releases = fixture.Releases{"nameless": build("nameless", "", "")}
		NewWithT(t).Expect(r.gate(t.Context(), s)).To(MatchError(ContainSubstring("going back")))
	})
}

func TestClusterRelease(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*reconciliation)
		want   string
	}{
		"When the NodePool uses the same release, it should return the NodePool's release": {func(s *reconciliation) { s.access = release.Access{} }, "registry.example/release:second"},
		"When the cluster uses another release, it should return the cluster's release": {
			func(s *reconciliation) { s.HC.Spec.Release.Image = "registry.example/release:older" }, "registry.example/release:older"},
		"When the control plane has its own release, it should return that release": {
			func(s *reconciliation) {
				s.HC.Spec.ControlPlaneRelease = &hyperv1.Release{Image: "registry.example/release:older"}
			}, "registry.example/release:older"},
		"When the control plane release is empty, it should return the cluster's release": {
			func(s *reconciliation) { s.HC.Spec.ControlPlaneRelease = &hyperv1.Release{} }, "registry.example/release:second"},
		"When the control plane has pinned the release to a digest, it should return the pinned release": {
			func(s *reconciliation) { s.hcp = controlPlane("clusters", s.HC.Spec.Release.Image, olderBuild) }, olderBuild},
		"When the control plane has pinned another release, it should ignore that release": {
			func(s *reconciliation) { s.hcp = controlPlane("clusters", "elsewhere", olderBuild) }, "registry.example/release:second"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, s := gated()
			test.change(s)
			got, err := r.clusterRelease(t.Context(), s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.PullSpec()).To(Equal(test.want))
		})
	}
}

// going sets the cluster's Progressing condition. Its observed generation may be behind the spec's generation.
func going(status metav1.ConditionStatus, behind int64) func(*reconciliation) {
	return func(s *reconciliation) {
		s.HC.Generation = 5
		s.HC.Status.Conditions = []metav1.Condition{
			{Type: "Other", Status: metav1.ConditionTrue}, {Type: string(hyperv1.HostedClusterProgressing), Status: status, ObservedGeneration: 5 - behind},
		}
	}
}

func TestInOrder(t *testing.T) {
	onOlder := ran(step(configv1.CompletedUpdate, "1.36.3", olderBuild))
	for name, test := range map[string]struct {
		history *hyperv1.ClusterVersionStatus
		change  func(*reconciliation)
		waits   bool
	}{
		"When the control plane is being installed, nodes should not wait":      {nil, going(metav1.ConditionTrue, 0), false},
		"When the control plane has completed the build, nodes should not wait": {ran(step(configv1.CompletedUpdate, "1.36.3", newerBuild)), going(metav1.ConditionTrue, 0), false},
		"When the control plane is downgraded from the build, nodes should not wait": {
			ran(step(configv1.PartialUpdate, "1.36.3", olderBuild), step(configv1.CompletedUpdate, "1.36.3", newerBuild)), going(metav1.ConditionTrue, 0), false},
		"When the control plane has started the rollout of the build, nodes should wait": {
			ran(step(configv1.PartialUpdate, "1.36.3", newerBuild), step(configv1.CompletedUpdate, "1.36.3", olderBuild)), func(*reconciliation) {}, true},
		"When the control plane has started the rollout of another build, nodes should not wait": {
			ran(step(configv1.PartialUpdate, "1.36.3", "registry.example/release@sha256:3"), step(configv1.CompletedUpdate, "1.36.3", olderBuild)), func(*reconciliation) {}, false},
		"When the control plane reports Progressing, nodes should wait":                                       {onOlder, going(metav1.ConditionTrue, 0), true},
		"When the control plane's new spec is not observed yet, nodes should wait":                            {onOlder, going(metav1.ConditionFalse, 1), true},
		"When the control plane has completed its spec, nodes should not wait":                                {onOlder, going(metav1.ConditionFalse, 0), false},
		"When the control plane has never reported Progressing, nodes should not wait":                        {onOlder, func(*reconciliation) {}, false},
		"When the control plane is being updated to another release than the NodePool, nodes should not wait": {onOlder, func(s *reconciliation) { going(metav1.ConditionTrue, 0)(s); s.HC.Spec.Release.Image = olderBuild }, false},
		"When the NodePool has another version than the control plane, nodes should not wait":                 {onOlder, func(s *reconciliation) { going(metav1.ConditionTrue, 0)(s); s.controlPlaneVersion = "1.36.4" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := gated()
			s.controlPlaneVersion, s.HC.Status.Version = "1.36.3", test.history
			test.change(s)
			err := r.inOrder(t.Context(), s)
			if !test.waits {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(newerBuild)))
		})
	}
	t.Run("When the release of the control plane cannot be read, nodes should wait and report the reason", func(t *testing.T) {
		r, s := gated()
		s.controlPlaneVersion, s.HC.Status.Version = "1.36.3", onOlder
		going(metav1.ConditionTrue, 0)(s)
		s.HC.Spec.Release.Image = "registry.example/unknown:1"
		NewWithT(t).Expect(r.inOrder(t.Context(), s)).To(MatchError(ContainSubstring("manifest unknown")))
	})
}

func TestIsRelease(t *testing.T) {
	for name, test := range map[string]struct {
		digest, image string
		want          bool
	}{
		"When the digest is the same, it should match, whatever the repository is":       {"sha256:2", "mirror.example/release@sha256:2", true},
		"When the digest differs, it should not match, even with the tag in the spec":    {"sha256:2", "registry.example/release:second@sha256:1", false},
		"When the image has no digest, it should match the tag in the spec":              {"sha256:2", "registry.example/release:second", true},
		"When the image has no digest and another tag, it should not match":              {"sha256:2", "registry.example/release:first", false},
		"When the NodePool's digest is unknown, an image with a digest should not match": {"", "mirror.example/release@sha256:2", false},
		"When the NodePool's digest is unknown, the tag in the spec should match":        {"", "registry.example/release:second", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, s := gated()
			s.Release = build("registry.example/release:second", "1.36.3", test.digest)
			NewWithT(t).Expect(s.isRelease(test.image)).To(Equal(test.want))
		})
	}
	t.Run("When the NodePool's spec has a digest that is not read yet, the same pull spec should match", func(t *testing.T) {
		_, s := gated()
		s.Release, s.Pool.Spec.Release.Image = build(newerBuild, "1.36.3", ""), newerBuild
		NewWithT(t).Expect(s.isRelease(newerBuild)).To(BeTrue())
	})
}

func TestCompletedVersion(t *testing.T) {
	for name, test := range map[string]struct {
		history *hyperv1.ClusterVersionStatus
		want    string
	}{
		"When there is no history, it should return no version":                    {nil, ""},
		"When no version is completed, it should return no version":                {ran(step(configv1.PartialUpdate, "1.36.3", "")), ""},
		"When several versions are completed, it should return the newest":         {ran(step(configv1.CompletedUpdate, "1.36.3", ""), step(configv1.CompletedUpdate, "1.36.2", "")), "1.36.3"},
		"When the completed entry has no version, it should return the one before": {ran(step(configv1.CompletedUpdate, "", ""), step(configv1.CompletedUpdate, "1.36.2", "")), "1.36.2"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(completedVersion(&hyperv1.HostedCluster{Status: hyperv1.HostedClusterStatus{Version: test.history}})).To(Equal(test.want))
		})
	}
}

func TestReportSkew(t *testing.T) {
	for plane, want := range map[string]metav1.Condition{
		"1.36.3": {Status: metav1.ConditionTrue, Reason: "AsExpected"},
		"1.40.0": {Status: metav1.ConditionFalse, Reason: "UnsupportedSkew"},
		"":       {Status: metav1.ConditionTrue, Reason: "AsExpected"},
	} {
		t.Run("When the control plane has version "+plane+", SupportedVersionSkew should be "+string(want.Status), func(t *testing.T) {
			_, s := gated()
			s.controlPlaneVersion = plane
			s.reportSkew()
			got := s.Conditions[hyperv1.NodePoolSupportedVersionSkewConditionType]
			NewWithT(t).Expect(got).To(And(HaveField("Status", want.Status), HaveField("Reason", want.Reason)))
			NewWithT(t).Expect(got.Message).NotTo(BeEmpty())
		})
	}
}
