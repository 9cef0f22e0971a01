// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ImageType is the operating system of a pool's image.
//
// +kubebuilder:validation:Enum=Windows;Linux
type ImageType string

// The operating systems.
const (
	ImageTypeLinux   ImageType = "Linux"
	ImageTypeWindows ImageType = "Windows"
)

// AWSNodePoolPlatform shapes the instances of a pool. A change rolls the pool.
type AWSNodePoolPlatform struct {
	// instanceType of EC2.
	//
	// +kubebuilder:validation:MaxLength=255
	// +required
	InstanceType string `json:"instanceType"`

	// instanceProfile of the instances.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	InstanceProfile string `json:"instanceProfile,omitempty"`

	// subnet of the instances.
	//
	// +required
	Subnet AWSResourceReference `json:"subnet"`

	// ami replaces the image of the release payload.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	AMI string `json:"ami,omitempty"`

	// imageType is the operating system.
	//
	// +optional
	ImageType ImageType `json:"imageType,omitempty"`

	// securityGroups of the instances beside the default one.
	//
	// +kubebuilder:validation:MaxItems=50
	// +optional
	SecurityGroups []AWSResourceReference `json:"securityGroups,omitempty"`

	// rootVolume of the instances.
	//
	// +optional
	RootVolume *Volume `json:"rootVolume,omitempty"`

	// resourceTags of the instances beside the cluster's.
	//
	// +kubebuilder:validation:MaxItems=25
	// +optional
	ResourceTags []AWSNodePoolResourceTag `json:"resourceTags,omitempty"`

	// placement of the instances.
	//
	// +optional
	Placement *PlacementOptions `json:"placement,omitempty"`
}

// AWSNodePoolResourceTag is a tag of a pool's instances.
type AWSNodePoolResourceTag struct {
	// key of the tag.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Key string `json:"key"`

	// value of the tag.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Value string `json:"value"`
}

// Volume is a root volume.
type Volume struct {
	// size in GiB.
	//
	// +kubebuilder:validation:Minimum=8
	// +required
	Size int64 `json:"size"`

	// type of the volume.
	//
	// +kubebuilder:validation:MaxLength=255
	// +required
	Type string `json:"type"`

	// iops of the volume.
	//
	// +optional
	IOPS int64 `json:"iops,omitempty"`

	// encrypted specifies whether the volume is encrypted.
	//
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`

	// encryptionKey is the KMS key.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	EncryptionKey string `json:"encryptionKey,omitempty"`
}

// MarketType is how capacity is bought.
type MarketType string

// The ways to buy capacity.
const (
	MarketTypeOnDemand      MarketType = "OnDemand"
	MarketTypeSpot          MarketType = "Spot"
	MarketTypeCapacityBlock MarketType = "CapacityBlocks"
)

// PlacementOptions say where instances run.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.tenancy) || self.tenancy != 'host' || !has(self.capacityReservation)`,message=`placement.capacityReservation is forbidden with tenancy host: AWS reserves no capacity on dedicated hosts`
// +kubebuilder:validation:XValidation:rule=`!has(self.marketType) || self.marketType != 'Spot' || !has(self.capacityReservation)`,message=`placement.capacityReservation is forbidden with marketType Spot: spot instances use no reserved capacity`
// +kubebuilder:validation:XValidation:rule=`!has(self.marketType) || self.marketType != 'Spot' || !has(self.tenancy) || self.tenancy == 'default'`,message=`placement.marketType Spot needs tenancy default, or none`
// +kubebuilder:validation:XValidation:rule=`!has(self.marketType) || self.marketType != 'CapacityBlocks' || has(self.capacityReservation)`,message=`placement.marketType CapacityBlocks needs capacityReservation`
// +kubebuilder:validation:XValidation:rule=`!has(self.spot) || has(self.marketType) && self.marketType == 'Spot'`,message=`placement.spot is forbidden when marketType is not Spot`
type PlacementOptions struct {
	// tenancy of the hardware.
	//
	// +kubebuilder:validation:Enum=default;dedicated;host
	// +optional
	Tenancy string `json:"tenancy,omitempty"`

	// capacityReservation that the instances use.
	//
	// +optional
	CapacityReservation *CapacityReservationOptions `json:"capacityReservation,omitempty"`

	// marketType is how the capacity is bought.
	//
	// +kubebuilder:validation:Enum="";OnDemand;Spot;CapacityBlocks
	// +optional
	MarketType MarketType `json:"marketType,omitempty"`

	// spot shapes instances of the spot market.
	//
	// +optional
	Spot SpotOptions `json:"spot,omitempty,omitzero"`
}

// SpotOptions shape instances of the spot market.
type SpotOptions struct {
	// maxPrice in dollars an hour.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?$`
	// +optional
	MaxPrice string `json:"maxPrice,omitempty"`
}

// CapacityReservationOptions pick reserved capacity.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.id) || !has(self.preference) || !(self.preference in ['None', 'Open'])`,message=`capacityReservation.preference None or Open is forbidden with an id: use CapacityReservationsOnly, or none`
// +kubebuilder:validation:XValidation:rule=`!has(self.marketType) || self.marketType != 'CapacityBlocks' || has(self.id)`,message=`capacityReservation.marketType CapacityBlocks needs the id of a reservation`
type CapacityReservationOptions struct {
	// id of the reservation, e.g. cr-0123456789abcdef0.
	//
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule=`self.matches('^cr-[0-9a-f]{17}$')`,message=`capacityReservation.id is cr- and 17 hexadecimal digits in lower case`
	// +optional
	ID *string `json:"id,omitempty"`

	// marketType of the reservation.
	//
	// +kubebuilder:validation:Enum=OnDemand;CapacityBlocks
	// +optional
	MarketType MarketType `json:"marketType,omitempty"`

	// preference for reserved capacity.
	//
	// +kubebuilder:validation:Enum="";None;CapacityReservationsOnly;Open
	// +optional
	Preference string `json:"preference,omitempty"`
}
