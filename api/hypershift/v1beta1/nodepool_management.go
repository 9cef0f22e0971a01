// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/util/intstr"
)

// UpgradeType says how nodes come to a new version.
//
// +kubebuilder:validation:Enum=Replace;InPlace
type UpgradeType string

// The ways to upgrade.
const (
	// UpgradeTypeReplace makes new machines and drops the old ones.
	UpgradeTypeReplace UpgradeType = "Replace"
	// UpgradeTypeInPlace changes the machines as they are.
	UpgradeTypeInPlace UpgradeType = "InPlace"
)

// UpgradeStrategy says in which order machines are replaced.
//
// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
type UpgradeStrategy string

// The orders of replacing.
const (
	UpgradeStrategyRollingUpdate UpgradeStrategy = "RollingUpdate"
	UpgradeStrategyOnDelete      UpgradeStrategy = "OnDelete"
)

// NodePoolManagement says how nodes are upgraded and repaired.
//
// +kubebuilder:validation:XValidation:rule="!has(self.inPlace) || self.upgradeType == 'InPlace'",message="management.inPlace is forbidden when upgradeType is not InPlace"
type NodePoolManagement struct {
	// upgradeType says how nodes come to a new version.
	//
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="upgradeType is immutable: create a new NodePool to change it"
	// +required
	UpgradeType UpgradeType `json:"upgradeType"`

	// replace shapes upgrades of type Replace.
	//
	// +kubebuilder:default={strategy: "RollingUpdate", rollingUpdate: {maxSurge: 1, maxUnavailable: 0 }}
	// +optional
	Replace *ReplaceUpgrade `json:"replace,omitempty"`

	// inPlace shapes upgrades of type InPlace.
	//
	// +optional
	InPlace *InPlaceUpgrade `json:"inPlace,omitempty"`

	// autoRepair replaces machines whose nodes are not well.
	//
	// +kubebuilder:default=false
	// +optional
	AutoRepair bool `json:"autoRepair"`
}

// ReplaceUpgrade shapes upgrades that replace machines.
//
// +kubebuilder:validation:XValidation:rule="!has(self.rollingUpdate) || !has(self.strategy) || self.strategy == 'RollingUpdate'",message="management.replace.rollingUpdate is forbidden when strategy is not RollingUpdate"
type ReplaceUpgrade struct {
	// strategy is the order of replacing.
	//
	// +optional
	Strategy UpgradeStrategy `json:"strategy,omitempty"`

	// rollingUpdate bounds how many machines are replaced at once.
	//
	// +optional
	RollingUpdate *RollingUpdate `json:"rollingUpdate,omitempty"`
}

// RollingUpdate bounds how many machines are replaced at once.
type RollingUpdate struct {
	// maxUnavailable is how many nodes may be missing during an update, a number or a percentage.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`type(self) == int ? self >= 0 : self.matches(r'^(100|[1-9]?[0-9])%$')`,message=`maxUnavailable must be a number of at least 0 or a percentage from 0% to 100%`
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is how many additional nodes there may be during an update, a number or a percentage.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`type(self) == int ? self >= 0 : self.matches(r'^(100|[1-9]?[0-9])%$')`,message=`maxSurge must be a number of at least 0 or a percentage from 0% to 100%`
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
}

// InPlaceUpgrade shapes upgrades of machines as they are.
type InPlaceUpgrade struct {
	// maxUnavailable is how many nodes may be upgraded at once, a number or a percentage. Absent means 1.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule=`type(self) == int ? self >= 1 : self.matches(r'^(100|[1-9][0-9]?)%$')`,message=`management.inPlace.maxUnavailable must be a number of at least 1 or a percentage from 1% to 100%`
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}
