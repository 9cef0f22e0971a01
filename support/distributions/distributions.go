// SPDX-License-Identifier: Apache-2.0

// Package distributions holds what differs between the distributions of release payloads as data, as package platforms does
// for platforms. Code that has to know "who reads node configurations?" asks a row of this table and compares no distribution itself.
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
	// Minors are the minor versions that are known, newest first.
	Minors []string
	// Versions are those that the distribution has at all, of any age.
	Versions semver.Range
	// OwnOperators tells whether a payload brings its own control-plane-operator and ignition-server. Then reading node configurations,
	// updating nodes in place, and deciding which upgrades they can do is theirs; else it is ours.
	OwnOperators bool
	// ReleaseByDigest tells whether a release is handed on by its digest. Operators of a payload compare the release's image
	// with what the user wrote.
	ReleaseByDigest bool
	// MaxPods is how many pods a node takes, where its configuration says nothing else.
	MaxPods int32
	// NodeReserves is what the kubelet keeps of a node for the system besides its eviction thresholds, where its configuration says nothing else.
	NodeReserves corev1.ResourceList
	// PreflightChecksGate, CRDMigrationPhases and TLSFlags are the first releases whose Cluster API manager is given these flags.
	PreflightChecksGate, CRDMigrationPhases, TLSFlags string
	// OSStreams is the first release with a choice of operating system streams; empty means none.
	OSStreams string
	// NodeTLSProfile is the first release whose nodes are configured with the TLS profile of the cluster's API server, so that another
	// one must replace them; empty means none.
	NodeTLSProfile string
	// Reports are the first releases whose operators report a condition of the HostedControlPlane, for those that not all
	// releases report.
	Reports map[hyperv1.ConditionType]string
	// NodeVersion is the version of a node that is compared with the control plane's.
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
		NodeTLSProfile:      "4.23.0", // the same
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

// Of returns the traits of a distribution. One that nobody knows has none: releaseinfo reads every payload as one of the table.
func Of(distribution releaseinfo.Distribution) Traits { return table[distribution] }

// ReportedBySome reports whether there are releases whose operators do not report a condition.
func ReportedBySome(conditionType hyperv1.ConditionType) bool {
	for _, traits := range table {
		if _, some := traits.Reports[conditionType]; some {
			return true
		}
	}
	return false
}

// Newest is the first version of the newest minor that is known; the zero version of a distribution that nobody knows.
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
