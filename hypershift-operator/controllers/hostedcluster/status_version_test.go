// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// TestFollowedImages checks the version status of a control plane whose operator records no history.
func TestFollowedImages(t *testing.T) {
	begun, done := metav1.NewTime(now.Add(-time.Hour)), metav1.NewTime(now.Add(-time.Minute))
	partial := configv1.UpdateHistory{State: configv1.PartialUpdate, StartedTime: begun, Image: "new"}
	completed := configv1.UpdateHistory{State: configv1.CompletedUpdate, StartedTime: begun, CompletionTime: &done, Version: "1.36.3", Image: "new"}
	runs := func(image string, since *metav1.Time) *hyperv1.HostedControlPlane {
		return &hyperv1.HostedControlPlane{Status: hyperv1.HostedControlPlaneStatus{ReleaseImage: image, Version: "1.36.3", LastReleaseImageTransitionTime: since}}
	}
	later := metav1.NewTime(now)
	for name, test := range map[string]struct {
		last configv1.UpdateHistory
		hcp  *hyperv1.HostedControlPlane
		want configv1.UpdateHistory
	}{
		"When there is no control plane, the entry should stay Partial":                                        {partial, nil, partial},
		"When the control plane runs the image, the entry should be Completed with the time of the transition": {partial, runs("new", &done), completed},
		"When the control plane runs another image, the entry should stay Partial":                             {partial, runs("old", &done), partial},
		"When the control plane reports no transition time, the entry should stay Partial":                     {partial, runs("new", nil), partial},
		"When the entry was completed before, it should keep its completion time":                              {completed, runs("new", &later), completed},
	} {
		t.Run(name, func(t *testing.T) {
			want := &hyperv1.ClusterVersionStatus{
				ObservedGeneration: 7, Desired: configv1.Release{Image: "new", Version: test.want.Version}, History: []configv1.UpdateHistory{test.want},
			}
			if diff := cmp.Diff(want, followImages(guestHistory(test.last), 7, "new", test.hcp, now)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	t.Run("When another image is requested, the desired version should be empty until it is known", func(t *testing.T) {
		got := followImages(guestHistory(completed), 8, "newer", runs("new", &done), now)
		want := configv1.UpdateHistory{State: configv1.PartialUpdate, StartedTime: metav1.NewTime(now), Image: "newer"}
		NewWithT(t).Expect(got.Desired).To(Equal(configv1.Release{Image: "newer"}))
		NewWithT(t).Expect(got.History).To(Equal([]configv1.UpdateHistory{want, completed}))
	})
}

func TestLongHistory(t *testing.T) {
	var entries []configv1.UpdateHistory
	for i := range maxHistory {
		entries = append(entries, configv1.UpdateHistory{Image: strconv.Itoa(i), State: configv1.CompletedUpdate})
	}
	t.Run("When the history is full and the image is the same, it should keep all entries", func(t *testing.T) {
		NewWithT(t).Expect(followImages(guestHistory(entries...), 1, "0", nil, now).History).To(Equal(entries))
	})
	t.Run("When the history is full and the image changes, it should drop the oldest entry", func(t *testing.T) {
		got := followImages(guestHistory(entries...), 1, "another", nil, now).History
		NewWithT(t).Expect(got).To(HaveLen(100))
		NewWithT(t).Expect(got[0].Image).To(Equal("another"))
		NewWithT(t).Expect(got[1:]).To(Equal(entries[:99]))
	})
}

// TestWhoseVersion checks whether the history comes from the control plane or from this operator.
func TestWhoseVersion(t *testing.T) {
	named := func(s *scope) { s.images.release, s.HC.Generation = "new", 9 }
	last := guestHistory(went("1.35.0", configv1.CompletedUpdate))
	for name, test := range map[string]struct {
		change func(*scope)
		want   string
	}{
		"When the control plane reports no history, it should follow the image of the control plane": {func(s *scope) { reporting()(s); named(s) }, "new"},
		"When there is no control plane, it should follow the desired image":                         {named, "new"},
		"When the control plane reports a history, it should copy that history": {func(s *scope) {
			reporting()(s)
			named(s)
			s.HCP.Status.VersionStatus = guestHistory(went("theirs", ""))
		}, "theirs"},
		"When no image is set yet, it should keep the last history": {func(s *scope) { s.HC.Status.Version = last }, "1.35.0"},
	} {
		t.Run(name, func(t *testing.T) {
			g, got := NewWithT(t), versionStatus(withScope(test.change))
			g.Expect(got.History[0].Image + got.History[0].Version).To(Equal(test.want))
			if test.want == "new" {
				g.Expect(got.ObservedGeneration).To(BeEquivalentTo(9))
				g.Expect(got.History[0].StartedTime.Time).To(BeTemporally("==", now))
			}
		})
	}
}
