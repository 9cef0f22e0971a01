// SPDX-License-Identifier: Apache-2.0

package v1beta1

// MetricsSet is which metrics of the control plane are kept.
//
// +kubebuilder:validation:Enum=Telemetry;SRE;All
type MetricsSet string

const (
	// MetricsSetTelemetry keeps the few metrics that telemetry needs.
	MetricsSetTelemetry MetricsSet = "Telemetry"
	// MetricsSetSRE keeps what the ConfigMap of the people who run the management cluster lists.
	MetricsSetSRE MetricsSet = "SRE"
	// MetricsSetAll keeps all.
	MetricsSetAll MetricsSet = "All"
)

// MetricsForwardingMode specifies whether the guest cluster gets metrics of its control plane.
//
// +kubebuilder:validation:Enum=Forward;None
type MetricsForwardingMode string

const (
	// MetricsForwardingModeForward forwards them.
	MetricsForwardingModeForward MetricsForwardingMode = "Forward"
	// MetricsForwardingModeNone does not.
	MetricsForwardingModeNone MetricsForwardingMode = "None"
)

// MonitoringSpec says which metrics of the control plane are kept and forwarded.
//
// +kubebuilder:validation:MinProperties=1
type MonitoringSpec struct {
	// metricsSet is which metrics the management cluster keeps. Empty means what the operator was installed with.
	// +optional
	MetricsSet MetricsSet `json:"metricsSet,omitempty"`

	// metricsForwarding specifies whether the guest cluster gets metrics of its control plane.
	// +optional
	MetricsForwarding MetricsForwardingSpec `json:"metricsForwarding,omitzero"`
}

// MetricsForwardingSpec specifies whether the guest cluster gets metrics of its control plane, and which.
type MetricsForwardingSpec struct {
	// mode specifies whether metrics are forwarded.
	// +required
	Mode MetricsForwardingMode `json:"mode"`

	// metricsSet says which. Empty means the set that the management cluster keeps.
	// +optional
	MetricsSet MetricsSet `json:"metricsSet,omitempty"`
}
