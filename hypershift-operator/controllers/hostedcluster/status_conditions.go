// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/platforms"
	"github.com/openshift/hypershift/support/releaseversion"
)

// copied are the conditions that the control-plane-operator reports and the HostedCluster copies.
var copied = []hyperv1.ConditionType{
	hyperv1.ClusterVersionProgressing, hyperv1.ClusterVersionReleaseAccepted, hyperv1.ClusterVersionUpgradeable,
	hyperv1.ClusterVersionAvailable, hyperv1.EtcdAvailable, hyperv1.KubeAPIServerAvailable,
	hyperv1.InfrastructureReady, hyperv1.ExternalDNSReachable, hyperv1.ValidHostedControlPlaneConfiguration,
	hyperv1.ValidReleaseInfo, hyperv1.ValidIDPConfiguration, hyperv1.DataPlaneConnectionAvailable,
	hyperv1.ControlPlaneConnectionAvailable, hyperv1.ConfigOperatorReconciliationSucceeded,
}

// conditions computes all conditions of a HostedCluster from the scope and the rest of its status.
func conditions(s *scope, status hyperv1.HostedClusterStatus) []metav1.Condition {
	reported := s.Reported()
	var all []metav1.Condition
	for _, conditionType := range copied {
		if _, set := s.Conditions[string(conditionType)]; set || s.neverReported(conditionType) {
			continue
		}
		all = append(all, condition.Copy(reported, string(conditionType), hyperv1.StatusUnknownReason))
	}
	traits, _ := platforms.Of(s.HC.Spec.Platform.Type)
	for _, optional := range slices.Concat(traits.Conditions, []hyperv1.ConditionType{
		hyperv1.CloudResourcesDestroyed,
		hyperv1.ClusterVersionRetrievedUpdates, hyperv1.HostedClusterRestoredFromBackup, hyperv1.EtcdBackupSucceeded,
		hyperv1.EtcdDataEncryptionUpToDate, hyperv1.KMSPluginAvailable, hyperv1.CertificatesValid, hyperv1.SignersUpToDate,
		hyperv1.PublishedAddressUpToDate,
		hyperv1.EtcdMembersHealthy, hyperv1.EtcdRecoveryActive, hyperv1.EtcdDiskFast, hyperv1.EtcdVolumesResized,
		hyperv1.ControlPlanePodsScheduled,
	}) {
		if c := condition.Copy(reported, string(optional), ""); c.Status != metav1.ConditionUnknown {
			all = append(all, c)
		}
	}
	for _, c := range s.Conditions {
		all = append(all, c)
	}
	return append(all,
		clusterVersionSucceeding(reported),
		available(reported, s),
		degraded(reported, s),
		progressing(s, status.Version),
		ignitionAvailable(s),
		reconciliationActive(s.HC.Spec.PausedUntil, s.Now, s.waitsForTurn),
		reconciliationSucceeded(s.failure),
	)
}

// neverReported reports whether no operator of the control plane's release writes a condition. While the release is
// unknown, as during a deletion, the last status decides.
func (s *scope) neverReported(conditionType hyperv1.ConditionType) bool {
	if meta.FindStatusCondition(s.Reported(), string(conditionType)) != nil {
		return false
	}
	if s.Release != nil {
		first, some := s.Distribution().Reports[conditionType]
		return some && !releaseversion.AtLeast(s.Release.Version(), first)
	}
	last := s.HC.Status.Conditions
	return distributions.ReportedBySome(conditionType) && len(last) > 0 &&
		meta.FindStatusCondition(last, string(conditionType)) == nil
}

// clearUnreported removes conditions that no operator of the release reports, and conditions of other platforms.
func (s *scope) clearUnreported() {
	for _, conditionType := range copied {
		if _, set := s.Conditions[string(conditionType)]; !set && s.neverReported(conditionType) {
			s.Clear(conditionType)
		}
	}
	own, _ := platforms.Of(s.HC.Spec.Platform.Type)
	for _, other := range platforms.Known() {
		traits, _ := platforms.Of(other)
		for _, conditionType := range traits.Conditions {
			if !slices.Contains(own.Conditions, conditionType) {
				s.Clear(conditionType)
			}
		}
	}
}

// clusterVersionSucceeding inverts the control plane's ClusterVersionFailing.
func clusterVersionSucceeding(reported []metav1.Condition) metav1.Condition {
	c := condition.Copy(reported, string(hyperv1.ClusterVersionFailing), hyperv1.StatusUnknownReason)
	c.Type = string(hyperv1.ClusterVersionSucceeding)
	switch c.Status {
	case metav1.ConditionTrue:
		c.Status = metav1.ConditionFalse
	case metav1.ConditionFalse:
		c.Status = metav1.ConditionTrue
	}
	return c
}

func available(reported []metav1.Condition, s *scope) metav1.Condition {
	conditionType := string(hyperv1.HostedClusterAvailable)
	if !s.HC.DeletionTimestamp.IsZero() {
		return condition.False(conditionType, hyperv1.WaitingForAvailableReason, "The cluster is being deleted. "+s.deletion)
	}
	if s.HCP != nil && !s.HCP.DeletionTimestamp.IsZero() {
		// The last report is outdated, and its operators may be gone already.
		return condition.False(conditionType, hyperv1.WaitingForAvailableReason, fmt.Sprintf(
			"The HostedControlPlane is being deleted without its HostedCluster; check what deleted it or namespace %s. "+
				"To delete the cluster, delete the HostedCluster", s.HCP.Namespace))
	}
	c := condition.Copy(reported, string(hyperv1.HostedControlPlaneAvailable), hyperv1.WaitingForAvailableReason)
	if c.Status == metav1.ConditionTrue {
		return condition.True(conditionType, hyperv1.AsExpectedReason, "The hosted control plane is available")
	}
	if blocked, why := obstacle(s); blocked {
		return condition.False(conditionType, hyperv1.WaitingForAvailableReason, why)
	}
	if s.HCP == nil || c.Status == metav1.ConditionUnknown {
		return condition.False(conditionType, hyperv1.WaitingForAvailableReason,
			sentences("Waiting for the hosted control plane to become available", s.whatFails(true)))
	}
	// A missing component is irrelevant if the control plane cannot start at all.
	for _, cause := range []hyperv1.ConditionType{hyperv1.ValidHostedControlPlaneConfiguration, hyperv1.ValidReleaseInfo} {
		if found := condition.Copy(reported, string(cause), ""); found.Status == metav1.ConditionFalse {
			return condition.False(conditionType, found.Reason, found.Message)
		}
	}
	return condition.False(conditionType, c.Reason, sentences(c.Message, s.whatFails(true)))
}

// obstacle returns the first condition of this reconcile that prevents a control plane from starting.
func obstacle(s *scope) (bool, string) {
	for _, conditionType := range []hyperv1.ConditionType{
		hyperv1.SupportedHostedCluster, hyperv1.ValidHostedClusterConfiguration, hyperv1.ValidReleaseImage,
	} {
		if c, set := s.Conditions[string(conditionType)]; set && c.Status == metav1.ConditionFalse {
			return true, c.Message
		}
	}
	return false, ""
}

func progressing(s *scope, version *hyperv1.ClusterVersionStatus) metav1.Condition {
	conditionType := string(hyperv1.HostedClusterProgressing)
	if s.upgradeBlocked != "" {
		return condition.True(conditionType, hyperv1.BlockedReason, s.upgradeBlocked)
	}
	if _, why := obstacle(s); why != "" {
		return condition.True(conditionType, hyperv1.BlockedReason, why)
	}
	if version == nil || len(version.History) == 0 {
		return condition.True(conditionType, "Progressing", "The control plane is being created")
	}
	if change := s.pending(); change != "" {
		return condition.True(conditionType, "Progressing", change)
	}
	if current := version.History[0]; current.State == configv1.PartialUpdate {
		return condition.True(conditionType, "Progressing", fmt.Sprintf("Rolling out %s", cmp.Or(current.Version, current.Image)))
	}
	return condition.False(conditionType, hyperv1.AsExpectedReason, "The cluster runs version "+version.History[0].Version)
}

func reconciliationSucceeded(failure error) metav1.Condition {
	conditionType := string(hyperv1.ReconciliationSucceeded)
	if failure != nil {
		return condition.False(conditionType, hyperv1.ReconciliationErrorReason, failure.Error())
	}
	// The reason is misspelled in the API of upstream HyperShift.
	return condition.True(conditionType, hyperv1.ReconciliationSucceededReason, "Reconciliation completed successfully")
}

func hostPort(host string, port int32) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
