// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Release is a release payload.
type Release struct {
	// image is the payload's pull spec, e.g. "quay.io/openshift-release-dev/ocp-release@sha256:...".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(\[[0-9a-fA-F:]+\]|[a-zA-Z0-9][a-zA-Z0-9_.-]*)(:[0-9]+)?(/[a-zA-Z0-9_][a-zA-Z0-9_.-]*)*(:[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127})?(@[a-z0-9+._-]+:[0-9a-fA-F]{32,128})?$')`,message=`release image must be the pull spec of an image, such as quay.io/openshift-release-dev/ocp-release:4.20.3-x86_64, without white space`
	Image string `json:"image"`
}

// ImageContentSource says where images of one repository may be pulled from instead.
type ImageContentSource struct {
	// source is the repository as image pull specs name it, e.g. "quay.io/openshift-release-dev".
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9*][a-zA-Z0-9*._:/-]*$`
	// +required
	Source string `json:"source"`

	// mirrors are tried in order before source.
	// +kubebuilder:validation:MaxItems=255
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:Pattern=`^[a-zA-Z0-9][a-zA-Z0-9._:/-]*$`
	// +listType=set
	// +optional
	Mirrors []string `json:"mirrors,omitempty"`
}

// AvailabilityPolicy says how often a component runs.
//
// +kubebuilder:validation:Enum=HighlyAvailable;SingleReplica
type AvailabilityPolicy string

const (
	// HighlyAvailable runs a component several times, spread over nodes and zones.
	HighlyAvailable AvailabilityPolicy = "HighlyAvailable"
	// SingleReplica runs a component once.
	SingleReplica AvailabilityPolicy = "SingleReplica"
)

// OLMCatalogPlacement says where the default operator catalogs run.
//
// +kubebuilder:validation:Enum=management;guest
type OLMCatalogPlacement string

const (
	// ManagementOLMCatalogPlacement runs the catalogs beside the control plane.
	ManagementOLMCatalogPlacement OLMCatalogPlacement = "management"
	// GuestOLMCatalogPlacement runs the catalogs on the nodes of the cluster.
	GuestOLMCatalogPlacement OLMCatalogPlacement = "guest"
)

// RetentionPolicy says what becomes of cloud resources when their cluster goes.
//
// +kubebuilder:validation:Enum=Orphan;Prune
type RetentionPolicy string

const (
	// OrphanRetentionPolicy leaves the resources.
	OrphanRetentionPolicy RetentionPolicy = "Orphan"
	// PruneRetentionPolicy deletes the resources.
	PruneRetentionPolicy RetentionPolicy = "Prune"
)

// OptionalCapability is a part of OpenShift that a cluster may do without.
//
// +kubebuilder:validation:Enum=ImageRegistry;openshift-samples;Insights;baremetal;Console;NodeTuning;Ingress
type OptionalCapability string

// The optional capabilities. The names are those of config.openshift.io ClusterVersion.
const (
	ImageRegistryCapability    OptionalCapability = "ImageRegistry"
	OpenShiftSamplesCapability OptionalCapability = "openshift-samples"
	InsightsCapability         OptionalCapability = "Insights"
	BaremetalCapability        OptionalCapability = "baremetal"
	ConsoleCapability          OptionalCapability = "Console"
	NodeTuningCapability       OptionalCapability = "NodeTuning"
	IngressCapability          OptionalCapability = "Ingress"
)

// Capabilities turns optional parts of OpenShift on and off. Both lists are fixed once the cluster is made.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.enabled) || !has(self.disabled) || self.enabled.all(c, !(c in self.disabled))`,message=`a capability must not be both in capabilities.enabled and in capabilities.disabled`
// +kubebuilder:validation:XValidation:rule=`!has(self.disabled) || !('Ingress' in self.disabled) || 'Console' in self.disabled`,message=`capability Ingress can only be disabled together with Console: add Console to capabilities.disabled`
type Capabilities struct {
	// enabled lists capabilities that the release leaves out by default and this cluster has.
	// +kubebuilder:validation:MaxItems=25
	// +listType=atomic
	// +optional
	Enabled []OptionalCapability `json:"enabled,omitempty"`

	// disabled lists capabilities that the release has by default and this cluster leaves out.
	// +kubebuilder:validation:MaxItems=25
	// +listType=atomic
	// +optional
	Disabled []OptionalCapability `json:"disabled,omitempty"`
}

// PayloadArchType is the CPU architecture of a payload.
//
// +kubebuilder:validation:Enum=Multi;ARM64;AMD64;PPC64LE;S390X
type PayloadArchType string

// The architectures of a payload; Multi is a payload that has several.
const (
	Multi   PayloadArchType = "Multi"
	AMD64   PayloadArchType = "AMD64"
	PPC64LE PayloadArchType = "PPC64LE"
	S390X   PayloadArchType = "S390X"
	ARM64   PayloadArchType = "ARM64"
)
