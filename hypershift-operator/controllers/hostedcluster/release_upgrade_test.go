// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// tagged returns the pull spec of a Kubernetes release by its version, and pinned by its digest.
func tagged(version string) string { return "registry.example/release:" + version }
func pinned(build string) string {
	return fmt.Sprintf("registry.example/release@sha256:%064s", build)
}

// push makes a tag refer to the given build of a version.
func push(releases fixture.Releases, tag, version, build string) {
	payload := releaseinfo.Payload{
		Version: version, Distribution: releaseinfo.Kubernetes, Digest: fmt.Sprintf("sha256:%064s", build),
		Components: map[string]string{"cluster-capi-controllers": "registry.example/capi:" + build, "kube-apiserver": "registry.example/kas:" + build},
	}
	releases[tag] = releaseinfo.New(tag, payload)
	releases[pinned(build)] = releaseinfo.New(pinned(build), payload)
}

// running returns a fixture whose cluster runs a version of Kubernetes, with a registry of the minor versions from 1.31
// to 1.36.
func running(t *testing.T, c client.WithWatch, namespace, version string) *world {
	t.Helper()
	s := newWorld(t, c, namespace)
	releases := fixture.Payloads()
	for minor := 31; minor <= 36; minor++ {
		v := fmt.Sprintf("1.%d.0", minor)
		push(releases, tagged(v), v, v)
	}
	s.Releases = releases
	s.start(func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = tagged(version) })
	s.mustPass()
	s.serve()
	s.complete(version)
	s.mustPass()
	s.Expect(s.condition(hyperv1.HostedClusterProgressing).Status).To(Equal(metav1.ConditionFalse))
	return s
}

func (s *world) controlPlane() *hyperv1.HostedControlPlane {
	s.t.Helper()
	hcp := &hyperv1.HostedControlPlane{}
	s.get(hcp, fixture.ClusterName)
	return hcp
}

// complete reports what the control-plane-operator reports once all components run the desired release.
func (s *world) complete(version string) {
	s.t.Helper()
	s.reportVersion(version, configv1.CompletedUpdate)
}

func (s *world) reportVersion(version string, state configv1.UpdateState) {
	s.t.Helper()
	hcp, at := s.controlPlane(), metav1.NewTime(s.clock.Now())
	image := hcp.Spec.ReleaseImage
	if own := hcp.Spec.ControlPlaneReleaseImage; own != nil {
		image = *own
	}
	entry := hyperv1.ControlPlaneUpdateHistory{State: state, StartedTime: at, Version: version, Image: image}
	guest := configv1.UpdateHistory{State: state, StartedTime: at, Version: version, Image: image}
	if state == configv1.CompletedUpdate {
		entry.CompletionTime, guest.CompletionTime = at, &at
	}
	status := &hcp.Status
	status.ControlPlaneVersion.Desired = configv1.Release{Version: version, Image: image}
	status.ControlPlaneVersion.History = append([]hyperv1.ControlPlaneUpdateHistory{entry}, status.ControlPlaneVersion.History...)
	if hcp.Spec.ControlPlaneReleaseImage == nil {
		if status.VersionStatus == nil {
			status.VersionStatus = &hyperv1.ClusterVersionStatus{}
		}
		status.VersionStatus.Desired = status.ControlPlaneVersion.Desired
		status.VersionStatus.History = append([]configv1.UpdateHistory{guest}, status.VersionStatus.History...)
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: string(hyperv1.ClusterVersionUpgradeable), Status: metav1.ConditionTrue, Reason: hyperv1.AsExpectedReason,
	})
	s.Expect(s.client.Status().Update(s.t.Context(), hcp)).To(Succeed())
}

// want changes the desired release.
func (s *world) want(image string) {
	s.t.Helper()
	s.change(func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = image })
	_, err := s.pass()
	s.Expect(err).NotTo(HaveOccurred())
}

func TestReleaseIsTakenByDigest(t *testing.T) {
	c := fixture.Start(t)
	s := running(t, c, "digest", "1.36.0")
	s.Expect(s.controlPlane().Spec.ReleaseImage).To(Equal(pinned("1.36.0")))
	s.Expect(s.cluster().Status.Version.History[0].Image).To(Equal(pinned("1.36.0")))
	operator := &appsv1.Deployment{}
	s.get(operator, "control-plane-operator")
	s.Expect(operator.Spec.Template.Spec.Containers[0].Env).To(ContainElement(And(HaveField("Name", "OPERATE_ON_RELEASE_IMAGE"), HaveField("Value", pinned("1.36.0")))))

	push(s.Releases.(fixture.Releases), tagged("1.36.0"), "1.36.0", "moved")
	s.mustPass()
	s.Expect(s.controlPlane().Spec.ReleaseImage).To(Equal(pinned("1.36.0")), "the tag moved, the release did not")
	s.Expect(s.condition(hyperv1.HostedClusterProgressing).Status).To(Equal(metav1.ConditionFalse))

	push(s.Releases.(fixture.Releases), tagged("rebuilt"), "1.36.0", "rebuilt")
	s.want(tagged("rebuilt"))
	s.Expect(s.controlPlane().Spec.ReleaseImage).To(Equal(pinned("rebuilt")), "another image of the same version is another release")
	s.Expect(s.condition(hyperv1.HostedClusterProgressing)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "Progressing"),
		HaveField("Message", ContainSubstring(pinned("rebuilt")))), "it shows before the control plane reports it")
	s.complete("1.36.0")
	s.mustPass()
	s.Expect(s.condition(hyperv1.HostedClusterProgressing).Status).To(Equal(metav1.ConditionFalse))
	s.Expect(s.cluster().Status.Version.History).To(HaveLen(2))
}

func TestReleaseOfAnOlderOperator(t *testing.T) {
	c := fixture.Start(t)
	s := running(t, c, "older-operator", "1.36.0")
	hcp := s.controlPlane()
	hcp.Spec.ReleaseImage = tagged("1.36.0")
	hcp.Annotations = map[string]string{hyperv1.HostedClusterAnnotation: hcp.Annotations[hyperv1.HostedClusterAnnotation]}
	s.Expect(c.Update(t.Context(), hcp)).To(Succeed())
	s.mustPass()
	s.Expect(s.controlPlane().Spec.ReleaseImage).To(Equal(tagged("1.36.0")), "a new operator rolls nothing")
}

func TestUpgradeRules(t *testing.T) {
	c := fixture.Start(t)
	for _, tc := range []struct {
		name, at, image string
		says            string
	}{
		{"When the release is one minor version newer, it should be accepted", "1.31.0", tagged("1.32.0"), ""},
		{"When the release skips minor versions, it should be rejected", "1.31.0", tagged("1.36.0"), "spec.release.image: a control plane is upgraded by one minor version at a time, and 1.31.0 to 1.36.0 spans 5: choose a release of 1.32 first"},
		{"When the release is a minor version older, it should be rejected", "1.36.0", tagged("1.35.0"), "spec.release.image: going back from version 1.36.0 to 1.35.0 is not possible"},
		{"When the distribution differs, it should be rejected", "1.31.0", fixture.OCPImage, "the distribution cannot be changed"},
		{"When the release cannot be read, it should be rejected", "1.36.0", "registry.example/none:1", "registry.example/none:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := running(t, c, fmt.Sprintf("rules-%x", len(tc.name)), tc.at)
			s.change(func(hc *hyperv1.HostedCluster) { hc.Spec.Labels = map[string]string{"beside": "the-release"} })
			s.want(tc.image)
			hcp := s.controlPlane()
			s.Expect(hcp.Spec.Labels).To(HaveKey("beside"), "everything else goes on")
			if tc.says == "" {
				s.Expect(hcp.Spec.ReleaseImage).To(Equal(pinned("1.32.0")))
				s.Expect(s.condition(hyperv1.ValidReleaseImage).Status).To(Equal(metav1.ConditionTrue))
				return
			}
			s.Expect(hcp.Spec.ReleaseImage).To(Equal(pinned(tc.at)), "the control plane stays as it is")
			s.Expect(s.condition(hyperv1.ValidReleaseImage)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring(tc.says))))
			s.Expect(s.condition(hyperv1.HostedClusterProgressing)).To(And(HaveField("Reason", "Blocked"), HaveField("Message", ContainSubstring(tc.says))))
			s.Expect(s.condition(hyperv1.HostedClusterAvailable).Status).To(Equal(metav1.ConditionTrue))
			s.want(tagged(tc.at))
			s.Expect(s.condition(hyperv1.HostedClusterProgressing).Status).To(Equal(metav1.ConditionFalse), "who takes the change back is done with it")
		})
	}
}

func TestUpgradeRulesAreSkipped(t *testing.T) {
	c := fixture.Start(t)
	s := running(t, c, "skipped", "1.31.0")
	s.want(tagged("1.36.0"))
	s.Expect(s.condition(hyperv1.ValidReleaseImage).Status).To(Equal(metav1.ConditionFalse))
	s.change(func(hc *hyperv1.HostedCluster) {
		metav1.SetMetaDataAnnotation(&hc.ObjectMeta, hyperv1.SkipReleaseImageValidation, "true")
	})
	s.mustPass()
	s.Expect(s.controlPlane().Spec.ReleaseImage).To(Equal(pinned("1.36.0")), "who says so gets five minors at once")
	s.Expect(s.condition(hyperv1.ValidReleaseImage).Status).To(Equal(metav1.ConditionTrue))
}

func TestUpgradeRulesOfTheControlPlanesOwnRelease(t *testing.T) {
	c := fixture.Start(t)
	s := running(t, c, "own-release", "1.33.0")
	own := func(version string) {
		s.change(func(hc *hyperv1.HostedCluster) {
			hc.Spec.ControlPlaneRelease = &hyperv1.Release{Image: tagged(version)}
		})
		_, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
	}
	own("1.36.0")
	s.Expect(s.controlPlane().Spec.ControlPlaneReleaseImage).To(BeNil())
	s.Expect(s.condition(hyperv1.ValidReleaseImage).Message).To(HavePrefix("spec.controlPlaneRelease.image: a control plane is upgraded by one minor version"))
	own("1.34.0")
	s.Expect(s.controlPlane().Spec.ControlPlaneReleaseImage).To(HaveValue(Equal(pinned("1.34.0"))))
	s.Expect(s.condition(hyperv1.HostedClusterProgressing).Message).To(ContainSubstring("Rolling out 1.34.0"))
	s.complete("1.34.0")
	s.mustPass()
	s.Expect(s.condition(hyperv1.ValidReleaseImage).Status).To(Equal(metav1.ConditionTrue), "nodes may be behind")
	s.Expect(s.condition(hyperv1.HostedClusterProgressing).Status).To(Equal(metav1.ConditionFalse))

	s.want(tagged("1.35.0"))
	s.Expect(s.condition(hyperv1.ValidReleaseImage).Message).To(ContainSubstring("spec.release.image: version 1.35.0 is newer than the 1.34.0"))
	s.change(func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = tagged("1.33.0") })
	s.change(func(hc *hyperv1.HostedCluster) { hc.Spec.ControlPlaneRelease = nil })
	_, err := s.pass()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.condition(hyperv1.ValidReleaseImage).Message).To(ContainSubstring("going back from version 1.34.0 to 1.33.0"))
	s.Expect(s.controlPlane().Spec.ControlPlaneReleaseImage).To(HaveValue(Equal(pinned("1.34.0"))))
}

func TestHangingUpgrade(t *testing.T) {
	c := fixture.Start(t)
	s := running(t, c, "hanging", "1.31.0")
	push(s.Releases.(fixture.Releases), tagged("1.32.1"), "1.32.1", "1.32.1")
	s.want(tagged("1.32.0"))
	s.reportVersion("1.32.0", configv1.PartialUpdate)
	s.want(tagged("1.33.0"))
	s.Expect(s.condition(hyperv1.ValidReleaseImage).Message).To(ContainSubstring("1.31.0 to 1.33.0 spans 2"), "only a completed version counts")
	s.want(tagged("1.31.0"))
	s.Expect(s.condition(hyperv1.ValidReleaseImage).Message).To(ContainSubstring("going back"), "API servers of the new version may have written")
	s.want(tagged("1.32.1"))
	s.Expect(s.controlPlane().Spec.ReleaseImage).To(Equal(pinned("1.32.1")), "a patch is the way out")
}

func TestNodesHoldTheControlPlane(t *testing.T) {
	c := fixture.Start(t)
	s := running(t, c, "skew", "1.34.0")
	pool := func(name, kubelet string) *hyperv1.NodePool {
		pool := fixture.NodePool(s.namespace)
		pool.Name = name
		fixture.Create(t, c, pool)
		pool.Status.Version = "1.34.0"
		pool.Status.NodesInfo = &hyperv1.NodePoolNodesInfo{NodeVersions: []hyperv1.NodeVersion{
			{OCPVersion: "1.34.0", KubeletVersion: kubelet, ReadyNodeCount: ptr.To[int32](1), UnreadyNodeCount: ptr.To[int32](0)},
		}}
		s.Expect(c.Status().Update(t.Context(), pool)).To(Succeed())
		return pool
	}
	pool("fresh", "v1.34.0")
	old := pool("old", "v1.31.4")
	s.mustPass()
	s.Expect(s.condition(hyperv1.ClusterVersionUpgradeable)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "NodesTooOld"),
		HaveField("Message", ContainSubstring("old (1.31.4)"))))
	counted := fixture.NewFaulty(c)
	s.Reconciler.Client = counted
	s.mustPass()
	s.Expect(counted.Log).To(BeEmpty(), "the refusal is written once")
	s.Reconciler.Client = c

	s.want(tagged("1.35.0"))
	s.Expect(s.controlPlane().Spec.ReleaseImage).To(Equal(pinned("1.34.0")))
	blocked := s.condition(hyperv1.HostedClusterProgressing)
	s.Expect(blocked.Reason).To(Equal("Blocked"))
	s.Expect(blocked.Message).To(And(ContainSubstring("old (1.31.4)"), Not(ContainSubstring("fresh"))))

	old.Status.NodesInfo.NodeVersions[0].KubeletVersion = "v1.32.0"
	s.Expect(c.Status().Update(t.Context(), old)).To(Succeed())
	s.mustPass()
	s.Expect(s.controlPlane().Spec.ReleaseImage).To(Equal(pinned("1.35.0")), "it goes on by itself")
}

func TestPoolsWithoutNodesHoldTheControlPlane(t *testing.T) {
	c := fixture.Start(t)
	s := running(t, c, "no-nodes", "1.34.0")
	for name, shape := range map[string]func(*hyperv1.NodePool){
		"new":    func(*hyperv1.NodePool) {},
		"shrunk": func(pool *hyperv1.NodePool) { pool.Spec.Replicas, pool.Status.Version = ptr.To[int32](0), "1.31.0" },
		"autoscaled": func(pool *hyperv1.NodePool) {
			pool.Spec.Replicas, pool.Spec.AutoScaling = nil, &hyperv1.NodePoolAutoScaling{Min: ptr.To[int32](1), Max: 3}
		},
		"unreadable": func(pool *hyperv1.NodePool) { pool.Spec.Release.Image = "registry.example/none:1" },
		"fresh":      func(pool *hyperv1.NodePool) { pool.Spec.Release.Image = tagged("1.34.0") },
	} {
		pool := fixture.NodePool(s.namespace)
		pool.Name, pool.Spec.Release.Image = name, tagged("1.31.0")
		shape(pool)
		version := pool.Status.Version
		fixture.Create(t, c, pool)
		pool.Status.Version = version
		s.Expect(c.Status().Update(t.Context(), pool)).To(Succeed())
	}
	s.want(tagged("1.35.0"))
	s.Expect(s.controlPlane().Spec.ReleaseImage).To(Equal(pinned("1.34.0")), "machines that come a minute later would be too old")
	s.Expect(s.condition(hyperv1.HostedClusterProgressing).Message).To(
		ContainSubstring("in the NodePools autoscaled (1.31.0), new (1.31.0), shrunk (1.31.0): upgrade these first"))

	pools := &hyperv1.NodePoolList{}
	s.Expect(c.List(t.Context(), pools, client.InNamespace(s.namespace))).To(Succeed())
	for i := range pools.Items {
		pools.Items[i].Spec.Release.Image = tagged("1.34.0")
		s.Expect(c.Update(t.Context(), &pools.Items[i])).To(Succeed())
		pools.Items[i].Status.Version = "1.34.0"
		s.Expect(c.Status().Update(t.Context(), &pools.Items[i])).To(Succeed())
	}
	s.mustPass()
	s.Expect(s.controlPlane().Spec.ReleaseImage).To(Equal(pinned("1.35.0")))
}
