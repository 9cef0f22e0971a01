// SPDX-License-Identifier: Apache-2.0

// Package distributions holds the differences between the distributions of release payloads as data, as package
// platforms does for platforms. Code reads a row of this table, for example to learn which operator reads node
// configurations, and does not compare distributions itself.
package distributions

import (
	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// Traits are the facts about one distribution.
type Traits struct {
	// Oldest is the oldest version that a control plane may run.
	Oldest semver.Version
	// Minors lists the known minor versions, newest first.
	Minors []string
	// Versions is the range of all versions of the distribution, of any age.
	Versions semver.Range
	// OwnOperators reports whether a payload has its own control-plane-operator and ignition-server. These then read node
	// configurations, update nodes in place, and decide which upgrades they support; otherwise the operators of this
	// product do.
	OwnOperators bool
	// ReleaseByDigest reports whether the release image is passed on by its digest. The operators of a payload compare the
	// release image with the one that the user specified.
	ReleaseByDigest bool
	// MaxPods is the maximum number of pods on a node, unless its configuration sets a different number.
	MaxPods int32
	// NodeReserves is what the kubelet reserves for the system in addition to its eviction thresholds, unless its
	// configuration sets a different value.
	NodeReserves corev1.ResourceList
	// PreflightChecksGate, CRDMigrationPhases and TLSFlags are the first releases whose Cluster API manager gets these
	// flags.
	PreflightChecksGate, CRDMigrationPhases, TLSFlags string
	// OSStreams is the first release with a choice of operating system streams; empty means none.
	OSStreams string
	// NodeTLSProfile is the first release that configures its nodes with the TLS profile of the cluster's API server. A
	// change of the profile must then replace the nodes. Empty means none.
	NodeTLSProfile string
	// Reports maps condition types of the HostedControlPlane to the first release whose operators report the condition.
	// It lists only conditions that not all releases report.
	Reports map[hyperv1.ConditionType]string
	// NodeVersion returns the version of a node to compare with the control plane's version.
	NodeVersion func(hyperv1.NodeVersion) string
}

var table = map[releaseinfo.Distribution]Traits{
	releaseinfo.OpenShift: {
		Oldest: semver.MustParse("4.14.0"),
		Minors: []string{
			"5.1", "5.0", "4.23", "4.22", "4.21", "4.20", "4.19", "4.18", "4.17", "4.16", "4.15", "4.14",
		},
		Versions:            semver.MustParseRange(">=4.0.0"),
		OwnOperators:        true,
		MaxPods:             250,
		NodeReserves:        corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi")},
		PreflightChecksGate: "4.19.0", // Cluster API v1.9, of openshift/hypershift release-4.19
		CRDMigrationPhases:  "4.20.0", // Cluster API v1.10, of openshift/hypershift release-4.20
		TLSFlags:            "4.23.0", // openshift/hypershift main of August 2026, which calls itself 5.1
		NodeTLSProfile:      "4.23.0", // as TLSFlags
		OSStreams:           "5.0.0",  // openshift/enhancements hypershift/dual-stream-rhel-nodepool
		// control-plane-operator/ of openshift/hypershift release-4.14 to release-5.1, August 2026
		Reports: map[hyperv1.ConditionType]string{
			hyperv1.DataPlaneConnectionAvailable:          "4.21.0",
			hyperv1.ControlPlaneConnectionAvailable:       "4.22.0",
			hyperv1.ConfigOperatorReconciliationSucceeded: "4.23.0",
		},
		NodeVersion: func(v hyperv1.NodeVersion) string { return v.OCPVersion },
	},
	releaseinfo.Kubernetes: {
		Oldest:              semver.MustParse("1.31.0"),
		Minors:              []string{"1.36", "1.35", "1.34", "1.33", "1.32", "1.31"},
		Versions:            semver.MustParseRange("<4.0.0"),
		PreflightChecksGate: "1.31.0",
		CRDMigrationPhases:  "1.31.0",
		TLSFlags:            "1.31.0",
		ReleaseByDigest:     true,
		MaxPods:             110,
		NodeVersion:         func(v hyperv1.NodeVersion) string { return v.KubeletVersion },
	},
}

// Of returns the traits of a distribution. An unknown distribution has none: releaseinfo assigns each payload a
// distribution of the table.
func Of(distribution releaseinfo.Distribution) Traits { return table[distribution] }

// ReportedBySome reports whether some releases report a condition and others do not.
func ReportedBySome(conditionType hyperv1.ConditionType) bool {
	for _, traits := range table {
		if _, some := traits.Reports[conditionType]; some {
			return true
		}
	}
	return false
}

// Newest returns the first version of the newest known minor; the zero version for an unknown distribution.
func (t Traits) Newest() semver.Version {
	if len(t.Minors) == 0 {
		return semver.Version{}
	}
	return semver.MustParse(t.Minors[0] + ".0")
}

// Known lists the distributions of the table in a fixed order.
func Known() []releaseinfo.Distribution {
	return []releaseinfo.Distribution{releaseinfo.Kubernetes, releaseinfo.OpenShift}
}
