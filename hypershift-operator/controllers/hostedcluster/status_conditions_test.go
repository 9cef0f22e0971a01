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
)

// repeated are the conditions that a HostedCluster has as its control plane reports them: those that are always there, and those that
// come with what they tell of.
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
		"EtcdDiskFast", "EtcdVolumesResized", "ControlPlanePodsScheduled", "ValidKubeVirtInfraNetworkMTU", "ValidAWSIdentityProvider",
		"ValidAWSKMSConfig", "AWSDefaultSecurityGroupCreated", "AWSDefaultSecurityGroupDeleted",
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
		t.Run("When all are "+string(status)+", all that are known should be repeated", func(t *testing.T) {
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
	t.Run("When a phase knows better, its word should count, and be no change at each pass", func(t *testing.T) {
		s := withScope(reporting(is("ClusterVersionUpgradeable", "True", "R", "m")), func(s *scope) {
			s.hc.Status.Conditions = []metav1.Condition{is("ClusterVersionUpgradeable", "False", "NodesTooOld", "")}
			s.hc.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-time.Hour))
			s.reject(hyperv1.ClusterVersionUpgradeable, reasonNodesTooOld, "mend that")
		})
		got := meta.FindStatusCondition(computeStatus(s).Conditions, "ClusterVersionUpgradeable")
		NewWithT(t).Expect(got.Message).To(Equal("mend that"))
		NewWithT(t).Expect(got.LastTransitionTime.Time).To(BeTemporally("==", now.Add(-time.Hour)))
	})
}

// TestWhyNotAvailable has the order in which reasons are told.
func TestWhyNotAvailable(t *testing.T) {
	missing := is("Available", "False", "StatefulSetNotFound", "no etcd yet")
	badConfig, badRelease := is("ValidHostedControlPlaneConfiguration", "False", "Config", "bad configuration"), is("ValidReleaseInfo", "False", "Release", "bad release")
	fine := func(c metav1.Condition) metav1.Condition {
		c.Status = metav1.ConditionTrue
		return c
	}
	deleted := func(s *scope) { s.hc.DeletionTimestamp, s.deletion = &metav1.Time{Time: now}, "Waiting" }
	for name, test := range map[string]struct {
		scope *scope
		want  string
	}{
		"a component is missing": {withScope(reporting(missing)), "StatefulSetNotFound: no etcd yet"},
		"nothing is reported":    {withScope(reporting()), "WaitingForAvailable: Waiting for the hosted control plane to become available"},
		"it is not known": {withScope(reporting(is("Available", "Unknown", "R", "m"))),
			"WaitingForAvailable: Waiting for the hosted control plane to become available"},
		"the configuration is bad":       {withScope(reporting(missing, badConfig)), "Config: bad configuration"},
		"the release is bad":             {withScope(reporting(missing, badRelease)), "Release: bad release"},
		"both are":                       {withScope(reporting(missing, badRelease, badConfig)), "Config: bad configuration"},
		"neither is":                     {withScope(reporting(missing, fine(badRelease), fine(badConfig))), "StatefulSetNotFound: no etcd yet"},
		"the cluster is being deleted":   {withScope(reporting(missing), deleted), "WaitingForAvailable: The cluster is being deleted. Waiting"},
		"it is, though it still answers": {withScope(reporting(fine(missing)), deleted), "WaitingForAvailable: The cluster is being deleted. Waiting"},
	} {
		t.Run("When "+name, func(t *testing.T) {
			c := available(reportedBy(test.scope.hcp), test.scope)
			if diff := cmp.Diff("False/"+test.want, string(c.Status)+"/"+c.Reason+": "+c.Message); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestObstacles: what this pass has found out keeps a control plane from coming up, and what it accepted does not.
func TestObstacles(t *testing.T) {
	for _, conditionType := range []hyperv1.ConditionType{"SupportedHostedCluster", "ValidConfiguration", "ValidReleaseImage"} {
		t.Run("When "+string(conditionType)+" is false, it should be told", func(t *testing.T) {
			s := withScope(reporting(is("Available", "False", "R", "m")), func(s *scope) { s.reject(conditionType, "Why", "what is wrong") })
			NewWithT(t).Expect(available(s.hcp.Status.Conditions, s).Message).To(Equal("what is wrong"))
			NewWithT(t).Expect(progressing(s, nil).Message).To(Equal("what is wrong"))
			s.accept(conditionType)
			NewWithT(t).Expect(available(s.hcp.Status.Conditions, s).Message).To(Equal("m"))
			NewWithT(t).Expect(progressing(s, nil).Reason).To(Equal("Progressing"))
		})
	}
	t.Run("When another is false, it should keep nothing", func(t *testing.T) {
		s := withScope(func(s *scope) { s.reject(hyperv1.PlatformCredentialsFound, "Why", "what is wrong") })
		NewWithT(t).Expect(progressing(s, nil).Reason).To(Equal("Progressing"))
	})
}

func TestClusterVersionSucceeding(t *testing.T) {
	for status, want := range map[metav1.ConditionStatus]metav1.ConditionStatus{"True": "False", "False": "True", "Unknown": "Unknown"} {
		c := clusterVersionSucceeding([]metav1.Condition{is("ClusterVersionFailing", status, "R", "m")})
		NewWithT(t).Expect(c).To(Equal(is("ClusterVersionSucceeding", want, "R", "m")))
	}
}
