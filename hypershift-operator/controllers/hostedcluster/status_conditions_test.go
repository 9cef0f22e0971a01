// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// The conditions that a HostedCluster copies unchanged from its control plane. Some always exist, some exist only
// together with their subject, and some belong to single platforms.
var (
	alwaysRepeated = []string{
		"ClusterVersionProgressing", "ClusterVersionReleaseAccepted", "ClusterVersionUpgradeable", "ClusterVersionAvailable", "Degraded",
		"EtcdAvailable", "KubeAPIServerAvailable", "InfrastructureReady", "ExternalDNSReachable", "ValidHostedControlPlaneConfiguration",
		"ValidReleaseInfo", "ValidIDPConfiguration", "DataPlaneConnectionAvailable", "ControlPlaneConnectionAvailable",
		"ConfigOperatorReconciliationSucceeded",
	}
	sometimesRepeated = []string{
		"ClusterVersionRetrievedUpdates", "HostedClusterRestoredFromBackup", "EtcdBackupSucceeded", "EtcdDataEncryptionUpToDate",
		"KMSPluginAvailable", "CertificatesValid", "SignersUpToDate", "PublishedAddressUpToDate", "EtcdMembersHealthy", "EtcdRecoveryActive",
		"EtcdDiskFast", "EtcdVolumesResized", "ControlPlanePodsScheduled", "CloudResourcesDestroyed",
	}
	ofPlatforms = map[hyperv1.PlatformType][]string{
		hyperv1.AWSPlatform: {
			"ValidAWSIdentityProvider", "ValidAWSKMSConfig", "AWSDefaultSecurityGroupCreated", "AWSDefaultSecurityGroupDeleted",
		},
		hyperv1.KubevirtPlatform: {"ValidKubeVirtInfraNetworkMTU"},
	}
)

func TestRepeatedConditions(t *testing.T) {
	all := append(append([]string{}, alwaysRepeated...), sometimesRepeated...)
	statuses := func(s *scope) map[string]metav1.ConditionStatus {
		found := map[string]metav1.ConditionStatus{}
		conditions := computeStatus(s).Conditions
		for _, conditionType := range all {
			if c := meta.FindStatusCondition(conditions, conditionType); c != nil {
				found[conditionType] = c.Status
			}
		}
		return found
	}
	for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
		t.Run("When all reported conditions are "+string(status)+", the cluster should copy those that are known", func(t *testing.T) {
			var reported []metav1.Condition
			want := map[string]metav1.ConditionStatus{}
			for _, conditionType := range all {
				reported = append(reported, is(hyperv1.ConditionType(conditionType), status, "R", "m"))
				want[conditionType] = status
			}
			if status == metav1.ConditionUnknown {
				for _, conditionType := range sometimesRepeated {
					delete(want, conditionType)
				}
			}
			if diff := cmp.Diff(want, statuses(withScope(reporting(reported...)))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	t.Run("When a phase sets the condition, it should take precedence and keep its transition time", func(t *testing.T) {
		s := withScope(reporting(is("ClusterVersionUpgradeable", "True", "R", "m")), func(s *scope) {
			s.HC.Status.Conditions = []metav1.Condition{is("ClusterVersionUpgradeable", "False", "NodesTooOld", "")}
			s.HC.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-time.Hour))
			s.Reject(hyperv1.ClusterVersionUpgradeable, reasonNodesTooOld, "mend that")
		})
		got := meta.FindStatusCondition(computeStatus(s).Conditions, "ClusterVersionUpgradeable")
		NewWithT(t).Expect(got.Message).To(Equal("mend that"))
		NewWithT(t).Expect(got.LastTransitionTime.Time).To(BeTemporally("==", now.Add(-time.Hour)))
	})
}

// TestConditionsOfPlatforms checks that a cluster has only the conditions of its platform. Some operators report
// conditions of AWS on every platform.
func TestConditionsOfPlatforms(t *testing.T) {
	var reported []metav1.Condition
	for _, conditionTypes := range ofPlatforms {
		for _, conditionType := range conditionTypes {
			reported = append(reported, is(hyperv1.ConditionType(conditionType), metav1.ConditionTrue, "R", "m"))
		}
	}
	platforms := []hyperv1.PlatformType{hyperv1.MAASPlatform, hyperv1.AWSPlatform, hyperv1.KubevirtPlatform}
	for _, platformType := range platforms {
		t.Run("a cluster on "+string(platformType)+" has only the conditions of its platform", func(t *testing.T) {
			s := withScope(reporting(reported...), func(s *scope) {
				s.HC.Spec.Platform.Type = platformType
				s.HC.Status.Conditions = reported // An earlier operator copied them all.
			})
			conditions := computeStatus(s).Conditions
			for of, conditionTypes := range ofPlatforms {
				for _, conditionType := range conditionTypes {
					c := meta.FindStatusCondition(conditions, conditionType)
					NewWithT(t).Expect(c != nil).To(Equal(of == platformType), conditionType)
				}
			}
		})
	}
}

// TestConditionsOfReleases tests conditions that operators report only since some release.
func TestConditionsOfReleases(t *testing.T) {
	later := []string{
		"DataPlaneConnectionAvailable", "ControlPlaneConnectionAvailable", "ConfigOperatorReconciliationSucceeded",
	}
	unknown := func(s *scope) {
		for _, conditionType := range later {
			c := is(hyperv1.ConditionType(conditionType), metav1.ConditionUnknown, "StatusUnknown", "Not reported yet")
			s.HC.Status.Conditions = append(s.HC.Status.Conditions, c)
		}
	}
	settled := func(s *scope) { s.HC.Status.Conditions = []metav1.Condition{is("EtcdAvailable", "True", "R", "m")} }
	one := reporting(is("DataPlaneConnectionAvailable", "True", "R", "m"))
	version := func(version string) func(*scope) {
		return func(s *scope) {
			s.Release = releaseinfo.New("r", releaseinfo.Payload{Version: version, Distribution: releaseinfo.OpenShift})
		}
	}
	for name, tc := range map[string]struct {
		with []func(*scope)
		want []string
	}{
		"4.20 reports none": {[]func(*scope){version("4.20.9")}, nil},
		"4.20 reports none, and earlier conditions are removed": {[]func(*scope){version("4.20.9"), unknown}, nil},
		"4.21 reports one": {[]func(*scope){version("4.21.0-rc.1")}, later[:1]},
		"4.22 reports two": {[]func(*scope){version("4.22.3")}, later[:2]},
		"5.0 reports all":  {[]func(*scope){version("5.0.0")}, later},
		"an operator that reports more conditions than its release is copied": {[]func(*scope){version("4.20.9"), one}, later[:1]},
		"a new cluster whose release is not read has all conditions":          {nil, later},
		"a cluster without the conditions gets none during deletion":          {[]func(*scope){settled}, nil},
		"a cluster with all conditions keeps them during deletion":            {[]func(*scope){unknown}, later},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			conditions := computeStatus(withScope(tc.with...)).Conditions
			for _, conditionType := range later {
				if meta.FindStatusCondition(conditions, conditionType) != nil {
					got = append(got, conditionType)
				}
			}
			NewWithT(t).Expect(got).To(Equal(tc.want))
		})
	}
}

// TestWhyNotAvailable checks the precedence of the reported reasons.
func TestWhyNotAvailable(t *testing.T) {
	missing := is("Available", "False", "StatefulSetNotFound", "no etcd yet")
	badConfig, badRelease := is("ValidHostedControlPlaneConfiguration", "False", "Config", "bad configuration"), is("ValidReleaseInfo", "False", "Release", "bad release")
	fine := func(c metav1.Condition) metav1.Condition {
		c.Status = metav1.ConditionTrue
		return c
	}
	deleted := func(s *scope) { s.HC.DeletionTimestamp, s.deletion = &metav1.Time{Time: now}, "Waiting" }
	for name, test := range map[string]struct {
		scope *scope
		want  string
	}{
		"a component is missing, it should be the reason":     {withScope(reporting(missing)), "StatefulSetNotFound: no etcd yet"},
		"nothing is reported, it should report that it waits": {withScope(reporting()), "WaitingForAvailable: Waiting for the hosted control plane to become available"},
		"the availability is unknown, it should report that it waits": {withScope(reporting(is("Available", "Unknown", "R", "m"))),
			"WaitingForAvailable: Waiting for the hosted control plane to become available"},
		"the configuration is invalid, it should be the reason":                                     {withScope(reporting(missing, badConfig)), "Config: bad configuration"},
		"the release is invalid, it should be the reason":                                           {withScope(reporting(missing, badRelease)), "Release: bad release"},
		"the configuration and the release are invalid, the configuration should be the reason":     {withScope(reporting(missing, badRelease, badConfig)), "Config: bad configuration"},
		"the configuration and the release are valid, the missing component should be the reason":   {withScope(reporting(missing, fine(badRelease), fine(badConfig))), "StatefulSetNotFound: no etcd yet"},
		"the cluster is being deleted, Available should be False":                                   {withScope(reporting(missing), deleted), "WaitingForAvailable: The cluster is being deleted. Waiting"},
		"the cluster is being deleted and the API server still responds, Available should be False": {withScope(reporting(fine(missing)), deleted), "WaitingForAvailable: The cluster is being deleted. Waiting"},
	} {
		t.Run("When "+name, func(t *testing.T) {
			c := available(test.scope.Reported(), test.scope)
			if diff := cmp.Diff("False/"+test.want, string(c.Status)+"/"+c.Reason+": "+c.Message); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestObstacles checks that a condition that this reconcile set to false is reported as an obstacle, and one that it
// set to true is not.
func TestObstacles(t *testing.T) {
	for _, conditionType := range []hyperv1.ConditionType{"SupportedHostedCluster", "ValidConfiguration", "ValidReleaseImage"} {
		t.Run("When "+string(conditionType)+" is false, it should be the obstacle", func(t *testing.T) {
			s := withScope(reporting(is("Available", "False", "R", "m")), func(s *scope) { s.Reject(conditionType, "Why", "what is wrong") })
			NewWithT(t).Expect(available(s.HCP.Status.Conditions, s).Message).To(Equal("what is wrong"))
			NewWithT(t).Expect(progressing(s, nil).Message).To(Equal("what is wrong"))
			s.Accept(conditionType)
			NewWithT(t).Expect(available(s.HCP.Status.Conditions, s).Message).To(Equal("m"))
			NewWithT(t).Expect(progressing(s, nil).Reason).To(Equal("Progressing"))
		})
	}
	t.Run("When another condition is false, it should not block progress", func(t *testing.T) {
		s := withScope(func(s *scope) { s.Reject(hyperv1.PlatformCredentialsFound, "Why", "what is wrong") })
		NewWithT(t).Expect(progressing(s, nil).Reason).To(Equal("Progressing"))
	})
}

func TestClusterVersionSucceeding(t *testing.T) {
	for status, want := range map[metav1.ConditionStatus]metav1.ConditionStatus{"True": "False", "False": "True", "Unknown": "Unknown"} {
		c := clusterVersionSucceeding([]metav1.Condition{is("ClusterVersionFailing", status, "R", "m")})
		NewWithT(t).Expect(c).To(Equal(is("ClusterVersionSucceeding", want, "R", "m")))
	}
}
