// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// went returns an entry of a history.
func went(version string, state configv1.UpdateState) configv1.UpdateHistory {
	return configv1.UpdateHistory{Version: version, State: state}
}

func guestHistory(entries ...configv1.UpdateHistory) *hyperv1.ClusterVersionStatus {
	return &hyperv1.ClusterVersionStatus{History: entries}
}

// TestCourse checks which version a control plane has completed and which it has started; the newest entry comes first.
func TestCourse(t *testing.T) {
	const done, partial = configv1.CompletedUpdate, configv1.PartialUpdate
	type versions struct{ Reached, Started string }
	own := func(entries ...configv1.UpdateHistory) []hyperv1.ControlPlaneUpdateHistory {
		var all []hyperv1.ControlPlaneUpdateHistory
		for _, e := range entries {
			all = append(all, hyperv1.ControlPlaneUpdateHistory{Version: e.Version, State: e.State})
		}
		return all
	}
	for name, test := range map[string]struct {
		own       []hyperv1.ControlPlaneUpdateHistory
		guest     *hyperv1.ClusterVersionStatus
		available bool
		want      versions
	}{
		"no rollout has started":                                             {nil, nil, false, versions{}},
		"the first rollout has started":                                      {own(went("1.35.0", partial)), nil, false, versions{}},
		"the first rollout has started, and the API server is available":     {own(went("1.35.0", partial)), nil, true, versions{"1.35.0", "1.35.0"}},
		"the first rollout is complete":                                      {own(went("1.35.0", done)), nil, false, versions{"1.35.0", "1.35.0"}},
		"the second rollout has started":                                     {own(went("1.36.0", partial), went("1.35.0", done)), nil, true, versions{"1.35.0", "1.36.0"}},
		"a third rollout has started before the second is complete":          {own(went("1.37.0", partial), went("1.36.0", partial), went("1.35.0", done)), nil, true, versions{"1.35.0", "1.37.0"}},
		"the next rollout has no version yet":                                {own(went("", partial), went("1.35.0", done)), nil, true, versions{"1.35.0", "1.35.0"}},
		"the version was downgraded":                                         {own(went("1.35.0", done), went("1.36.0", done)), nil, true, versions{"1.35.0", "1.35.0"}},
		"an older operator reports only the history of the guest":            {nil, guestHistory(went("4.21.0", partial), went("4.20.1", done)), true, versions{"4.20.1", "4.21.0"}},
		"the history of the control plane takes precedence over the guest's": {own(went("4.21.0", done)), guestHistory(went("4.20.1", done)), true, versions{"4.21.0", "4.21.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			for where, s := range map[string]*scope{
				"of the control plane": withScope(reporting(), func(s *scope) {
					s.HCP.Status.ControlPlaneVersion.History, s.HCP.Status.VersionStatus = test.own, test.guest
				}),
				"of a control plane that is gone": withScope(func(s *scope) {
					s.HC.Status.ControlPlaneVersion.History, s.HC.Status.Version = test.own, test.guest
				}),
			} {
				if test.available {
					cluster.Annotate(s.HC, hyperv1.HasBeenAvailableAnnotation, "true")
				}
				got := s.course()
				if diff := cmp.Diff(test.want, versions{got.reached, got.started}); diff != "" {
					t.Errorf("%s: -want +got\n%s", where, diff)
				}
			}
		})
	}
}

// TestPending checks the message about a rollout that the control plane has not reported yet.
func TestPending(t *testing.T) {
	payloads := fixture.Payloads()
	ours, openshift := payloads[fixture.ReleaseImage], payloads[fixture.OCPImage]
	at := func(version, image string) configv1.Release { return configv1.Release{Version: version, Image: image} }
	running := func(release *releaseinfo.ReleaseImage, image string, reported, guest configv1.Release) func(*scope) {
		return func(s *scope) {
			s.Release, s.wanted, s.images = release, release, images{release: image}
			s.HCP.Status.ControlPlaneVersion.Desired = reported
			s.HCP.Status.VersionStatus = &hyperv1.ClusterVersionStatus{Desired: guest}
		}
	}
	taken := func(source, own string) func(*scope) {
		return func(s *scope) {
			s.HCP.Spec.ReleaseImage = "registry.example/release@sha256:1"
			cluster.Annotate(s.HCP, hyperv1.ReleaseImageSourceAnnotation, source)
			if own != "" {
				s.HC.Spec.ControlPlaneRelease = &hyperv1.Release{Image: own}
			}
		}
	}
	for name, test := range map[string]struct {
		change func(*scope)
		want   string
	}{
		"the desired version is reported everywhere":        {running(ours, "a", at("1.36.3", "a"), at("1.36.3", "a")), ""},
		"nothing is reported yet":                           {running(ours, "a", at("", ""), at("", "")), ""},
		"the control plane reports another version":         {running(ours, "a", at("1.35.0", "a"), at("1.36.3", "a")), "Rolling out 1.36.3 (a)"},
		"the nodes report another version":                  {running(ours, "a", at("1.36.3", "a"), at("1.35.0", "a")), "Rolling out 1.36.3 (a)"},
		"the guest reports no version of its own":           {func(s *scope) { running(ours, "a", at("1.36.3", "a"), at("", ""))(s); s.HCP.Status.VersionStatus = nil }, ""},
		"a Kubernetes release is identified by its image":   {running(ours, "b", at("1.36.3", "a"), at("1.36.3", "b")), "Rolling out 1.36.3 (b)"},
		"an OpenShift payload is identified by its version": {running(openshift, "b", at("4.20.1", "a"), at("4.20.1", "a")), ""},
		"the desired release is resolved":                   {taken(fixture.ReleaseImage, ""), ""},
		"the desired release is not resolved":               {taken("registry.example/other", ""), "Release " + fixture.ReleaseImage + " is not rolled out yet"},
		"controlPlaneRelease is not resolved":               {taken(fixture.ReleaseImage, "registry.example/own"), "Release registry.example/own is not rolled out yet"},
		"the cluster is being deleted, Available should be False": {func(s *scope) {
			taken("registry.example/other", "")(s)
			s.HC.DeletionTimestamp = ptr.To(metav1.NewTime(now))
		}, ""},
		"there is no control plane, it should not be blocked": {func(s *scope) { s.HCP = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := withScope(reporting(), test.change).pending()
			if test.want == "" {
				NewWithT(t).Expect(got).To(BeEmpty())
				return
			}
			NewWithT(t).Expect(got).To(HavePrefix(test.want))
		})
	}
}

func TestProgressing(t *testing.T) {
	payload := fixture.Payloads()[fixture.ReleaseImage]
	current := func(s *scope) { s.Release, s.wanted, s.images = payload, payload, images{release: "a"} }
	for name, test := range map[string]struct {
		change  func(*scope)
		version *hyperv1.ClusterVersionStatus
		want    string
	}{
		"no version":                 {func(*scope) {}, nil, "True/Progressing: The control plane is being created"},
		"no history":                 {func(*scope) {}, guestHistory(), "True/Progressing: The control plane is being created"},
		"done":                       {current, guestHistory(went("1.36.3", configv1.CompletedUpdate)), "False/AsExpected: The cluster runs version 1.36.3"},
		"the upgrade is in progress": {current, guestHistory(went("1.36.3", configv1.PartialUpdate)), "True/Progressing: Rolling out 1.36.3"},
		"the upgrade is in progress, and its version is not known": {current, guestHistory(configv1.UpdateHistory{State: configv1.PartialUpdate, Image: "a"}), "True/Progressing: Rolling out a"},
		"the upgrade is blocked": {func(s *scope) { current(s); s.upgradeBlocked = "nodes are too old" },
			guestHistory(went("1.36.3", configv1.CompletedUpdate)), "True/Blocked: nodes are too old"},
		"the platform is not served": {func(s *scope) {
			current(s)
			s.Reject(hyperv1.SupportedHostedCluster, hyperv1.UnsupportedHostedClusterReason, "no CRDs")
		}, guestHistory(went("1.36.3", configv1.CompletedUpdate)), "True/Blocked: no CRDs"},
		"the upgrade has not started yet": {func(s *scope) {
			current(s)
			s.HCP.Status.ControlPlaneVersion.Desired = configv1.Release{Version: "1.35.0", Image: "old"}
		}, guestHistory(went("1.35.0", configv1.CompletedUpdate)), "True/Progressing: Rolling out 1.36.3 (a)"},
	} {
		t.Run(name, func(t *testing.T) {
			c := progressing(withScope(reporting(), test.change), test.version)
			if diff := cmp.Diff(test.want, string(c.Status)+"/"+c.Reason+": "+c.Message); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
