// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster/clustertest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/condition"
)

var now = clustertest.Now

// withScope returns a scope of the fixture's cluster, modified by the test.
func withScope(mutate ...func(*scope)) *scope {
	s := newScope(fixture.HostedCluster("clusters"))
	s.Now = now
	for _, m := range mutate {
		m(s)
	}
	return s
}

func reporting(conditions ...metav1.Condition) func(*scope) {
	return func(s *scope) {
		s.HCP = &hyperv1.HostedControlPlane{Status: hyperv1.HostedControlPlaneStatus{Conditions: conditions}}
	}
}

func is(conditionType hyperv1.ConditionType, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: string(conditionType), Status: status, Reason: reason, Message: message}
}

func TestConditions(t *testing.T) {
	rejected := func(s *scope) { s.Reject(hyperv1.ValidReleaseImage, hyperv1.InvalidImageReason, "no such image") }
	for _, tc := range []struct {
		name          string
		scope         *scope
		conditionType hyperv1.ConditionType
		status        metav1.ConditionStatus
		reason        string
		message       string
	}{
		{"When there is no control plane yet, Available should be False and wait for it", withScope(),
			hyperv1.HostedClusterAvailable, "False", "WaitingForAvailable", "Waiting for the hosted control plane"},
		{"When the control plane is available, Available should be True", withScope(reporting(is("Available", "True", "AsExpected", ""))),
			hyperv1.HostedClusterAvailable, "True", "AsExpected", "available"},
		{"When the control plane reports why it is not available, Available should report the same", withScope(reporting(is("Available", "False", "EtcdWaitingForQuorum", "1 of 3"))),
			hyperv1.HostedClusterAvailable, "False", "EtcdWaitingForQuorum", "1 of 3"},
		{"When the release cannot be read, Available should report it", withScope(rejected),
			hyperv1.HostedClusterAvailable, "False", "WaitingForAvailable", "no such image"},
		{"When an available cluster gets an invalid release, Available should stay True", withScope(rejected, reporting(is("Available", "True", "AsExpected", ""))),
			hyperv1.HostedClusterAvailable, "True", "AsExpected", ""},
		{"When the control plane cannot read its release, Available should report that instead of a missing component", withScope(reporting(
			is("Available", "False", "StatefulSetNotFound", "no etcd yet"), is("ValidReleaseInfo", "False", "Unreachable", "unknown authority"))),
			hyperv1.HostedClusterAvailable, "False", "Unreachable", "unknown authority"},
		{"When the control plane is being deleted, Available should be False whatever was reported last", withScope(
			reporting(is("Available", "True", "AsExpected", "")), func(s *scope) { s.HCP.DeletionTimestamp = &metav1.Time{Time: now} }),
			hyperv1.HostedClusterAvailable, "False", "WaitingForAvailable", "delete the HostedCluster"},
		{"When the cluster is being deleted, Available should report what the deletion waits for", withScope(func(s *scope) {
			s.HC.DeletionTimestamp = &metav1.Time{Time: now}
			s.deletion = "Waiting for machines"
		}), hyperv1.HostedClusterAvailable, "False", "WaitingForAvailable", "Waiting for machines"},
		{"When an upgrade is blocked, Progressing should report Blocked", withScope(func(s *scope) { s.upgradeBlocked = "not upgradeable" }),
			hyperv1.HostedClusterProgressing, "True", "Blocked", "not upgradeable"},
		{"When the configuration is invalid, Progressing should report Blocked", withScope(func(s *scope) {
			s.Reject(hyperv1.ValidHostedClusterConfiguration, hyperv1.InvalidConfigurationReason, "overlap")
		}), hyperv1.HostedClusterProgressing, "True", "Blocked", "overlap"},
		{"When there is no version history, Progressing should be True", withScope(), hyperv1.HostedClusterProgressing, "True", "Progressing", ""},
		{"When ClusterVersionFailing is True, ClusterVersionSucceeding should be False", withScope(reporting(is("Failing", "True", "X", "bad")), func(s *scope) {
			s.HCP.Status.Conditions[0].Type = string(hyperv1.ClusterVersionFailing)
		}), hyperv1.ClusterVersionSucceeding, "False", "X", "bad"},
		{"When no component reports the cluster version, ClusterVersionSucceeding should be Unknown", withScope(),
			hyperv1.ClusterVersionSucceeding, "Unknown", "StatusUnknown", ""},
		{"When no component reports etcd, EtcdAvailable should be Unknown", withScope(), hyperv1.EtcdAvailable, "Unknown", "StatusUnknown", ""},
		{"When there is no ignition-server, IgnitionEndpointAvailable should report it", withScope(), hyperv1.IgnitionEndpointAvailable, "False", "NotFound", ""},
		{"When the ignition-server is starting, IgnitionEndpointAvailable should be False", withScope(func(s *scope) { s.ignitionServer, s.ignitionEndpoint = &appsv1.Deployment{}, "a.example" }),
			hyperv1.IgnitionEndpointAvailable, "False", "WaitingForAvailable", "not available yet"},
		{"When the ignition-server is running, IgnitionEndpointAvailable should be True", withScope(func(s *scope) {
			s.ignitionEndpoint = "a.example"
			s.ignitionServer = &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: "Available", Status: "True"}}}}
		}), hyperv1.IgnitionEndpointAvailable, "True", "AsExpected", ""},
		{"When the cluster is paused, ReconciliationActive should be False", withScope(func(s *scope) { s.HC.Spec.PausedUntil = ptr.To("true") }),
			hyperv1.ReconciliationActive, "False", "ReconciliationPaused", ""},
		{"When pausedUntil is invalid, ReconciliationActive should report the accepted format", withScope(func(s *scope) { s.HC.Spec.PausedUntil = ptr.To("soon") }),
			hyperv1.ReconciliationActive, "False", "InvalidPausedUntilValue", "RFC 3339"},
		{"When a reconcile fails, ReconciliationSucceeded should report the error", withScope(func(s *scope) { s.failure = errors.New("disk full") }),
			hyperv1.ReconciliationSucceeded, "False", "ReconciliationError", "disk full"},
		{"When a reconcile succeeds, ReconciliationSucceeded should have HyperShift's reason", withScope(),
			hyperv1.ReconciliationSucceeded, "True", "ReconciliatonSucceeded", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			status := computeStatus(tc.scope)
			c := meta.FindStatusCondition(status.Conditions, string(tc.conditionType))
			g.Expect(c).NotTo(BeNil())
			g.Expect(c.Status).To(Equal(tc.status))
			g.Expect(c.Reason).To(Equal(tc.reason))
			g.Expect(c.Message).To(ContainSubstring(tc.message))
		})
	}
	t.Run("When the control plane reports nothing about updates, it should not set the condition", func(t *testing.T) {
		c := meta.FindStatusCondition(computeStatus(withScope()).Conditions, string(hyperv1.ClusterVersionRetrievedUpdates))
		NewWithT(t).Expect(c).To(BeNil())
	})
	t.Run("When conditions are set, each should have the observed generation", func(t *testing.T) {
		s := withScope(func(s *scope) { s.HC.Generation = 7 })
		NewWithT(t).Expect(computeStatus(s).Conditions).To(HaveEach(HaveField("ObservedGeneration", BeEquivalentTo(7))))
	})
}

func TestVersionStatus(t *testing.T) {
	running := &hyperv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "1.35.0", Image: "old"}}}
	t.Run("When a cluster is created, it should start a history", func(t *testing.T) {
		g := NewWithT(t)
		got := followImages(nil, 1, "new", nil, now)
		g.Expect(got.History).To(ConsistOf(configv1.UpdateHistory{State: configv1.PartialUpdate, Image: "new", StartedTime: metav1.NewTime(now)}))
	})
	t.Run("When the image changes, it should add a new entry at the front", func(t *testing.T) {
		g := NewWithT(t)
		got := followImages(running, 1, "new", nil, now)
		g.Expect(got.History).To(HaveLen(2))
		g.Expect(got.History[0].State).To(Equal(configv1.PartialUpdate))
		g.Expect(completedVersion(got)).To(Equal("1.35.0"))
		g.Expect(running.History).To(HaveLen(1), "the last status is not changed")
	})
	t.Run("When the control plane runs the image, it should complete the entry", func(t *testing.T) {
		g := NewWithT(t)
		done := metav1.NewTime(now.Add(time.Minute))
		hcp := &hyperv1.HostedControlPlane{Status: hyperv1.HostedControlPlaneStatus{ReleaseImage: "new", Version: "1.36.3", LastReleaseImageTransitionTime: &done}}
		got := followImages(followImages(running, 1, "new", nil, now), 1, "new", hcp, now)
		g.Expect(got.History[0].State).To(Equal(configv1.CompletedUpdate))
		g.Expect(got.History[0].Version).To(Equal("1.36.3"))
		g.Expect(got.Desired.Version).To(Equal("1.36.3"))
		g.Expect(followImages(got, 1, "new", hcp, now.Add(time.Hour))).To(Equal(got), "it is settled")
	})
	t.Run("When the control plane reports a history, it should copy that history", func(t *testing.T) {
		s := withScope(reporting())
		s.HCP.Status.VersionStatus = running
		NewWithT(t).Expect(versionStatus(s)).To(Equal(running))
	})
	t.Run("When the payload cannot be read, it should keep the last history", func(t *testing.T) {
		s := withScope()
		s.HC.Status.Version = running
		NewWithT(t).Expect(versionStatus(s)).To(Equal(running))
	})
	t.Run("When the history is too long, it should drop the oldest entries", func(t *testing.T) {
		var version *hyperv1.ClusterVersionStatus
		for i := range maxHistory + 5 {
			version = followImages(version, 1, "image-"+string(rune('a'+i%26))+string(rune('a'+i/26)), nil, now)
		}
		NewWithT(t).Expect(version.History).To(HaveLen(maxHistory))
	})
}

func TestUpgradeBlocked(t *testing.T) {
	payloads := fixture.Payloads()
	upgrading := func(mutate func(*scope)) *scope {
		return withScope(reporting(is(hyperv1.ClusterVersionUpgradeable, "False", "AdminAckRequired", "acknowledge first")), func(s *scope) {
			s.HC.Status.Version = &hyperv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "1.35.0", Image: "old"}}}
			s.HCP.Spec.ReleaseImage = "old"
			s.wantedControlPlane = payloads[fixture.ReleaseImage]
			mutate(s)
		})
	}
	for _, tc := range []struct {
		name    string
		mutate  func(*scope)
		blocked bool
	}{
		{"When the cluster is not upgradeable, it should block the upgrade", func(*scope) {}, true},
		{"When the release is the running image, it should not block the upgrade", func(s *scope) { s.HCP.Spec.ReleaseImage = fixture.ReleaseImage }, false},
		{"When the upgrade is a patch version, it should not block the upgrade", func(s *scope) { s.HC.Status.Version.History[0].Version = "1.36.0" }, false},
		{"When no version is completed yet, it should not block the upgrade", func(s *scope) { s.HC.Status.Version = nil }, false},
		{"When the annotation forces the release, it should not block the upgrade", func(s *scope) {
			s.HC.Annotations = map[string]string{hyperv1.ForceUpgradeToAnnotation: fixture.ReleaseImage}
		}, false},
		{"When the annotation forces another release, it should block the upgrade", func(s *scope) {
			s.HC.Annotations = map[string]string{hyperv1.ForceUpgradeToAnnotation: "other"}
		}, true},
		{"When the cluster is upgradeable, it should not block the upgrade", func(s *scope) { s.HCP.Status.Conditions[0].Status = "True" }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(fixture.Scheme()).Build()}
			why, err := r.upgradeBlocked(t.Context(), upgrading(tc.mutate), images{release: fixture.ReleaseImage, releaseSource: fixture.ReleaseImage})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(why != "").To(Equal(tc.blocked))
		})
	}
}

func TestWorse(t *testing.T) {
	for _, tc := range []struct {
		name         string
		condition    metav1.Condition
		wasAvailable bool
		want         bool
	}{
		{"When a new cluster is not available yet, it should not record a warning", condition.False(string(hyperv1.HostedClusterAvailable), "R", ""), false, false},
		{"When a cluster becomes unavailable, it should record a warning", condition.False(string(hyperv1.HostedClusterAvailable), "R", ""), true, true},
		{"When a new cluster has an invalid release, it should record a warning", condition.False(string(hyperv1.ValidReleaseImage), "R", ""), false, true},
		{"When the Deployments of a new cluster are starting, it should not record a warning", condition.True(string(hyperv1.HostedClusterDegraded), "R", ""), false, false},
		{"When an available cluster becomes degraded, it should record a warning", condition.True(string(hyperv1.HostedClusterDegraded), "R", ""), true, true},
		{"When Progressing becomes True, it should not record a warning", condition.True(string(hyperv1.HostedClusterProgressing), "R", ""), true, false},
		{"When Progressing becomes False, it should not record a warning", condition.False(string(hyperv1.HostedClusterProgressing), "R", ""), true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(worse(tc.condition, tc.wasAvailable)).To(Equal(tc.want))
		})
	}
}

// actions records the actions of events.
type actions []string

func (a *actions) Eventf(_, _ runtime.Object, _, _, action, _ string, _ ...any) {
	*a = append(*a, action)
}

func TestAnnounceKeepsConditionsApart(t *testing.T) {
	s := withScope(func(s *scope) {
		s.HC.Status.Conditions = []metav1.Condition{is("Degraded", "True", "AsExpected", ""), is("Available", "True", "AsExpected", "")}
	})
	var made actions
	(&Reconciler{Recorder: &made}).announce(s.HC, nil)
	NewWithT(t).Expect(made).To(ConsistOf("Degraded", "Available"), "the API shows events of one action and reason as one")
}
