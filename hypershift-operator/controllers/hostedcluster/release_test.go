// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/support/phase"
)

// shop returns a fixture with a registry that contains the minor versions of Kubernetes from 1.31 to 1.36.
func shop(objects ...client.Object) *desk {
	releases := fixture.Payloads()
	for _, version := range []string{"1.31.0", "1.32.0", "1.33.0", "1.34.0", "1.35.0", "1.36.0"} {
		push(releases, tagged(version), version, version)
	}
	d := newDesk(objects...)
	d.Releases = releases
	return d
}

// wanting returns a scope of a cluster with a desired release and a pull secret for registries.
func wanting(image, own string, mutate ...func(*scope)) *scope {
	return withScope(append([]func(*scope){func(s *scope) {
		s.inputs.PullSecret = []byte("{}")
		s.HC.Spec.Release.Image = image
		if own != "" {
			s.HC.Spec.ControlPlaneRelease = &hyperv1.Release{Image: own}
		}
	}}, mutate...)...)
}

// at135 sets a control plane that has completed 1.35.0.
func at135(s *scope) {
	reporting()(s)
	s.HCP.Spec.ReleaseImage = pinned("1.35.0")
	cluster.Annotate(s.HCP, hyperv1.ReleaseImageSourceAnnotation, tagged("1.35.0"))
	s.HCP.Status.ControlPlaneVersion.History = []hyperv1.ControlPlaneUpdateHistory{{Version: "1.35.0", State: configv1.CompletedUpdate}}
}

func TestNamedReleases(t *testing.T) {
	current := images{release: pinned("1.35.0"), releaseSource: tagged("1.35.0")}
	notUpgradeable := func(s *scope) {
		s.HCP.Status.Conditions = append(s.HCP.Status.Conditions, is("ClusterVersionUpgradeable", "False", "R", "etcd is small."))
	}
	for name, test := range map[string]struct {
		scope   *scope
		want    images
		finds   string
		again   time.Duration
		stops   bool
		blocked bool
	}{
		"a new cluster requests one release, it should pin the release": {wanting(tagged("1.36.0"), ""), images{release: pinned("1.36.0"), releaseSource: tagged("1.36.0")}, "True/AsExpected", 0, false, false},
		"a new cluster requests two releases, it should pin both": {wanting(tagged("1.35.0"), tagged("1.36.0")),
			images{release: pinned("1.35.0"), releaseSource: tagged("1.35.0"), controlPlane: pinned("1.36.0"), controlPlaneSource: tagged("1.36.0")}, "True/AsExpected", 0, false, false},
		"the control plane release is empty, it should pin the release of the nodes":                             {wanting(tagged("1.36.0"), "", func(s *scope) { s.HC.Spec.ControlPlaneRelease = &hyperv1.Release{} }), images{release: pinned("1.36.0"), releaseSource: tagged("1.36.0")}, "True/AsExpected", 0, false, false},
		"the release is OpenShift, it should keep the pull spec":                                                 {wanting(fixture.OCPImage, ""), images{release: fixture.OCPImage, releaseSource: fixture.OCPImage}, "True/AsExpected", 0, false, false},
		"the release does not exist, it should stop and retry":                                                   {wanting(tagged("1.99.0"), ""), images{}, "False/InvalidImage", 20 * time.Second, true, false},
		"the control plane release does not exist, it should stop and retry":                                     {wanting(tagged("1.36.0"), tagged("1.99.0")), images{}, "False/InvalidImage", 20 * time.Second, true, false},
		"the release can never be used, it should keep the current release":                                      {wanting(tagged("1.31.0"), "", at135), current, "False/InvalidImage", 0, false, false},
		"a running cluster requests a release that does not exist, it should keep the current release and retry": {wanting(tagged("1.99.0"), "", at135), current, "False/InvalidImage", 20 * time.Second, false, false},
		"a running cluster is upgraded, it should use the new release":                                           {wanting(tagged("1.36.0"), "", at135), images{release: pinned("1.36.0"), releaseSource: tagged("1.36.0")}, "True/AsExpected", 0, false, false},
		"the upgrade of a running cluster is blocked, it should keep the current release":                        {wanting(tagged("1.36.0"), "", at135, notUpgradeable), current, "True/AsExpected", 0, false, true},
	} {
		t.Run("When "+name, func(t *testing.T) {
			g, s := NewWithT(t), test.scope
			result, err := shop().reconcileRelease(t.Context(), s)
			g.Expect(errors.Is(err, phase.ErrStop)).To(Equal(test.stops))
			g.Expect(err != nil).To(Equal(test.stops))
			g.Expect(result.RequeueAfter).To(Equal(test.again))
			if diff := cmp.Diff(test.want, s.images, cmp.AllowUnexported(images{})); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			c := s.Conditions["ValidReleaseImage"]
			g.Expect(string(c.Status) + "/" + c.Reason).To(Equal(test.finds))
			g.Expect(s.upgradeBlocked != "").To(Equal(test.blocked))
		})
	}
	t.Run("When the NodePools cannot be listed, it should return an error and set no images", func(t *testing.T) {
		d, s := shop(), wanting(tagged("1.36.0"), "", at135)
		d.Refuse = "list v1beta1.NodePoolList"
		_, err := d.reconcileRelease(t.Context(), s)
		NewWithT(t).Expect(err).To(MatchError(errNotNow))
		NewWithT(t).Expect(s.images).To(Equal(images{}))
	})
}

// TestMovedTags checks that a release stays pinned to its digest after its tag was moved.
func TestMovedTags(t *testing.T) {
	d := shop()
	push(d.Releases.(fixture.Releases), tagged("1.35.0"), "1.35.1", "moved")
	for name, test := range map[string]struct {
		scope         *scope
		want, version string
	}{
		"When the cluster has no release yet, it should resolve the tag":  {wanting(tagged("1.35.0"), ""), pinned("moved"), "1.35.1"},
		"When the release was resolved before, it should keep the digest": {wanting(tagged("1.35.0"), "", at135), pinned("1.35.0"), "1.35.0"},
	} {
		t.Run(name, func(t *testing.T) {
			payload, image, err := d.take(t.Context(), test.scope, tagged("1.35.0"))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(image).To(Equal(test.want))
			NewWithT(t).Expect(payload.Version()).To(Equal(test.version))
		})
	}
	t.Run("When the pinned release no longer exists, it should return an error", func(t *testing.T) {
		delete(d.Releases.(fixture.Releases), pinned("1.35.0"))
		_, _, err := d.take(t.Context(), wanting(tagged("1.35.0"), "", at135), tagged("1.35.0"))
		NewWithT(t).Expect(err).To(HaveOccurred())
	})
}

func TestWantedPayloads(t *testing.T) {
	for name, test := range map[string]struct{ own, want string }{
		"When there is one release, it should be used for nodes and control plane":       {"", "1.35.0"},
		"When there are two releases, nodes and control plane should each use their own": {tagged("1.36.0"), "1.36.0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := wanting(tagged("1.35.0"), test.own)
			_, err := shop().resolve(t.Context(), s)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(s.wanted.Version()).To(Equal("1.35.0"))
			NewWithT(t).Expect(s.wantedControlPlane.Version()).To(Equal(test.want))
		})
	}
}

func TestImagesOf(t *testing.T) {
	spec := hyperv1.HostedControlPlaneSpec{ReleaseImage: "nodes@1", ControlPlaneReleaseImage: ptr.To("own@2")}
	for name, test := range map[string]struct {
		hcp     *hyperv1.HostedControlPlane
		sources []string
		want    images
		running string
	}{
		"there is no control plane, it should return no images":                     {nil, nil, images{}, ""},
		"there is one release, it should return it for nodes and control plane":     {&hyperv1.HostedControlPlane{Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: "nodes@1"}}, nil, images{release: "nodes@1", releaseSource: "nodes@1"}, "nodes@1"},
		"there are two releases, it should return both":                             {&hyperv1.HostedControlPlane{Spec: spec}, nil, images{release: "nodes@1", releaseSource: "nodes@1", controlPlane: "own@2", controlPlaneSource: "own@2"}, "own@2"},
		"annotations name the sources of both images, it should return the sources": {&hyperv1.HostedControlPlane{Spec: spec}, []string{"nodes:a", "own:b"}, images{release: "nodes@1", releaseSource: "nodes:a", controlPlane: "own@2", controlPlaneSource: "own:b"}, "own@2"},
	} {
		t.Run("When "+name, func(t *testing.T) {
			if test.sources != nil {
				cluster.Annotate(test.hcp, hyperv1.ReleaseImageSourceAnnotation, test.sources[0])
				cluster.Annotate(test.hcp, hyperv1.ControlPlaneReleaseImageSourceAnnotation, test.sources[1])
			}
			if diff := cmp.Diff(test.want, imagesOf(test.hcp), cmp.AllowUnexported(images{})); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			NewWithT(t).Expect(imagesOf(test.hcp).running()).To(Equal(test.running))
		})
	}
}

func TestReadPayload(t *testing.T) {
	t.Run("When the payload exists, it should read the release of the control plane", func(t *testing.T) {
		s := wanting("", "", func(s *scope) { s.images = images{release: tagged("1.35.0"), controlPlane: tagged("1.36.0")} })
		result, err := shop().readPayload(t.Context(), s)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(result).To(BeZero())
		NewWithT(t).Expect(s.Release.Version()).To(Equal("1.36.0"))
		NewWithT(t).Expect(s.Conditions).To(BeEmpty())
	})
	t.Run("When the payload does not exist, it should set the condition to false and retry", func(t *testing.T) {
		s := wanting("", "", func(s *scope) { s.images = images{release: tagged("1.99.0")} })
		result, err := shop().readPayload(t.Context(), s)
		NewWithT(t).Expect(err).To(MatchError(phase.ErrStop))
		NewWithT(t).Expect(result.RequeueAfter).To(Equal(20 * time.Second))
		NewWithT(t).Expect(s.Conditions["ValidReleaseImage"]).To(And(HaveField("Status", BeEquivalentTo("False")), HaveField("Reason", "InvalidImage")))
	})
	t.Run("When the NodePools cannot be listed, it should return an error", func(t *testing.T) {
		s := wanting("", "", reporting(is("ClusterVersionUpgradeable", "True", "R", "")), func(s *scope) { s.images = images{release: tagged("1.35.0")} })
		d := shop()
		d.Refuse = "list v1beta1.NodePoolList"
		_, err := d.readPayload(t.Context(), s)
		NewWithT(t).Expect(err).To(MatchError(errNotNow))
	})
}

func TestRegistryAccess(t *testing.T) {
	s := withScope(func(s *scope) {
		s.inputs.PullSecret, s.inputs.TrustBundle = []byte("p"), []byte("t")
		s.HC.Spec.ImageContentSources = []hyperv1.ImageContentSource{{Source: "a", Mirrors: []string{"b"}}}
	})
	want := release.Access{PullSecret: []byte("p"), TrustBundle: []byte("t"), Mirrors: s.HC.Spec.ImageContentSources}
	if diff := cmp.Diff(want, s.registryAccess()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
