// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/platforms"
)

// Conditions that count as failures, with their values of the label "condition": "not_Available" is a failure, and so
// is "Degraded".
var (
	clusterFailures = failures(
		[]hyperv1.ConditionType{
			hyperv1.HostedClusterAvailable, hyperv1.InfrastructureReady, hyperv1.KubeAPIServerAvailable, hyperv1.IgnitionEndpointAvailable,
			hyperv1.EtcdAvailable, hyperv1.UnmanagedEtcdAvailable, hyperv1.ValidReleaseInfo, hyperv1.ValidHostedClusterConfiguration,
			hyperv1.ValidHostedControlPlaneConfiguration, hyperv1.SupportedHostedCluster, hyperv1.ValidReleaseImage,
			hyperv1.ValidProxyConfiguration, hyperv1.ValidIDPConfiguration, hyperv1.PlatformCredentialsFound, hyperv1.ReconciliationActive,
			hyperv1.ReconciliationSucceeded, hyperv1.ConfigOperatorReconciliationSucceeded, hyperv1.ClusterVersionSucceeding,
			hyperv1.ClusterVersionAvailable, hyperv1.ClusterVersionReleaseAccepted, hyperv1.ClusterVersionUpgradeable,
			hyperv1.ExternalDNSReachable, hyperv1.DataPlaneConnectionAvailable, hyperv1.ControlPlaneConnectionAvailable,
			hyperv1.EtcdDataEncryptionUpToDate, hyperv1.KMSPluginAvailable, hyperv1.EtcdBackupSucceeded, hyperv1.CertificatesValid,
			hyperv1.ControlPlaneDataRetained,
		},
		hyperv1.HostedClusterProgressing, hyperv1.HostedClusterDegraded, hyperv1.ClusterVersionFailing, hyperv1.ClusterVersionProgressing)
	poolFailures = failures(
		[]hyperv1.ConditionType{
			hyperv1.NodePoolReadyConditionType, hyperv1.NodePoolAllMachinesReadyConditionType, hyperv1.NodePoolAllNodesHealthyConditionType,
			hyperv1.NodePoolValidPlatformConfigConditionType, hyperv1.NodePoolValidReleaseImageConditionType,
			hyperv1.NodePoolSupportedVersionSkewConditionType, hyperv1.NodePoolValidArchPlatform, hyperv1.NodePoolValidMachineConfigConditionType,
			hyperv1.NodePoolValidGeneratedPayloadConditionType, hyperv1.NodePoolUpdateManagementEnabledConditionType,
			hyperv1.NodePoolAllFieldsHonoredConditionType, hyperv1.NodePoolReconciliationActiveConditionType,
			hyperv1.NodePoolReachedIgnitionEndpoint, hyperv1.NodePoolIgnitionEndpointAvailableConditionType,
			hyperv1.NodePoolPodRangesSufficientConditionType,
		},
		hyperv1.NodePoolUpdatingConfigConditionType, hyperv1.NodePoolUpdatingVersionConditionType,
		hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType)
)

// failure is the normal status of a condition, and the label value if it has a different status.
type failure struct {
	want metav1.ConditionStatus
	name string
}

func failures(goodWhenTrue []hyperv1.ConditionType, goodWhenFalse ...hyperv1.ConditionType) map[string]failure {
	all := map[string]failure{}
	for _, condition := range goodWhenTrue {
		all[string(condition)] = failure{metav1.ConditionTrue, "not_" + string(condition)}
	}
	for _, condition := range goodWhenFalse {
		all[string(condition)] = failure{metav1.ConditionFalse, string(condition)}
	}
	return all
}

// startAtZero creates a series for each failure and platform, so that an alert detects the first increase.
func startAtZero(byPlatform, byFailure *prometheus.GaugeVec, known map[string]failure) {
	for _, platform := range platforms.Known() {
		byPlatform.WithLabelValues(string(platform)).Set(0)
		for _, f := range known {
			byFailure.WithLabelValues(string(platform), f.name).Set(0)
		}
	}
}

func countFailures(byFailure *prometheus.GaugeVec, known map[string]failure, platform hyperv1.PlatformType, conditions []metav1.Condition) {
	for i := range conditions {
		if f, ok := known[conditions[i].Type]; ok && conditions[i].Status != f.want {
			byFailure.WithLabelValues(string(platform), f.name).Inc()
		}
	}
}
