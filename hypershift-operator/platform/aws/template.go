// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/openshift/hypershift/api/aws/v1beta2"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseversion"
)

const (
	// defaultVolumeSize in GiB and defaultVolumeType are the defaults of upstream HyperShift.
	defaultVolumeSize = 16
	defaultVolumeType = "gp3"
	// metadataHops allows pods to reach the metadata of their instance, which needs one hop more than from the instance
	// itself.
	metadataHops = 2
	// firstReservations is the first release of OpenShift whose provider supports capacity reservations, as in
	// upstream HyperShift.
	firstReservations = "4.19.0"
)

func pool(p platform.Pool) hyperv1.AWSNodePoolPlatform {
	if p.NodePool.Spec.Platform.AWS == nil {
		return hyperv1.AWSNodePoolPlatform{}
	}
	return *p.NodePool.Spec.Platform.AWS
}

// ValidateNodePool rejects a pool without settings. Once the payload is known, it also reports what the instances wait
// for.
func (*Platform) ValidateNodePool(p platform.Pool) error {
	if p.NodePool.Spec.Platform.AWS == nil {
		return errors.New("spec.platform.aws is missing: say the instance type and the subnet")
	}
	if p.HostedCluster.Spec.Platform.AWS == nil {
		return errors.New("spec.platform.aws of the HostedCluster is missing: it says the region")
	}
	subnet := pool(p).Subnet
	if ptr.Deref(subnet.ID, "") == "" && len(subnet.Filters) == 0 {
		return errors.New("spec.platform.aws.subnet is empty: give its id, or filters that it is found by")
	}
	if err := reservable(p); err != nil {
		return err
	}
	if p.Release == nil {
		return nil
	}
	if _, err := ami(p); err != nil {
		return &platform.Fault{Condition: hyperv1.NodePoolValidPlatformImageType, Reason: hyperv1.NodePoolValidationFailedReason, Message: err.Error()}
	}
	if p.Distribution() == releaseinfo.OpenShift && defaultSecurityGroup(p.HostedCluster) == "" {
		return &platform.Fault{
			Condition: hyperv1.NodePoolAWSSecurityGroupAvailableConditionType, Reason: hyperv1.DefaultAWSSecurityGroupNotReadyReason,
			Message: "The control-plane-operator has not made the security group of the cluster's workers yet",
		}
	}
	return nil
}

// reservable checks that the provider of the cluster's release supports capacity reservations. It accepts the pool
// while the release is unknown.
func reservable(p platform.Pool) error {
	placement, version := pool(p).Placement, p.HostedCluster.Status.Version
	if placement == nil || placement.CapacityReservation == nil || version == nil || len(version.History) == 0 || p.Distribution() == releaseinfo.Kubernetes {
		return nil
	}
	if runs := version.History[0].Version; runs != "" && !releaseversion.AtLeast(runs, firstReservations) {
		return fmt.Errorf("spec.platform.aws.placement.capacityReservation needs a cluster of OpenShift %s or newer, and this one is of %s: upgrade it, or leave the reservation out",
			firstReservations, runs)
	}
	return nil
}

// ami returns the AMI that the pool names, or else the payload's for the pool's architecture and the cluster's region.
func ami(p platform.Pool) (string, error) {
	if id := pool(p).AMI; id != "" {
		return id, nil
	}
	region, arch := spec(p.HostedCluster).Region, p.NodePool.Spec.Arch
	id, found := p.Release.AMI(p.Stream, arch, region)
	what := "AMI"
	if pool(p).ImageType == hyperv1.ImageTypeWindows {
		id, found = p.Release.WindowsAMI(arch, region)
		what = "AMI of Windows"
	} else if p.Stream != "" {
		what += " of " + p.Stream
	}
	if !found {
		return "", fmt.Errorf("the release image names no %s for architecture %s in region %s: set spec.platform.aws.ami", what, cmp.Or(arch, "amd64"), region)
	}
	return id, nil
}

// Findings returns the payload's AMI and the cluster's security group.
func (*Platform) Findings(p platform.Pool) []platform.Finding {
	var findings []platform.Finding
	if pool(p).AMI == "" {
		if id, err := ami(p); err == nil {
			findings = append(findings, platform.Finding{Condition: hyperv1.NodePoolValidPlatformImageType, Message: fmt.Sprintf("Machines start from the release image's AMI %s", id)})
		}
	}
	if id := defaultSecurityGroup(p.HostedCluster); id != "" {
		findings = append(findings, platform.Finding{
			Condition: hyperv1.NodePoolAWSSecurityGroupAvailableConditionType, Message: "The cluster's security group of workers is " + id,
		})
	}
	return findings
}

// defaultSecurityGroup returns the security group that the control-plane-operator of an OpenShift payload creates for
// all workers of a cluster.
func defaultSecurityGroup(hc *hyperv1.HostedCluster) string {
	if hc.Status.Platform == nil || hc.Status.Platform.AWS == nil {
		return ""
	}
	return hc.Status.Platform.AWS.DefaultWorkerSecurityGroupID
}

// MachineTemplate returns a template for instances as the pool specifies. The pool must be valid.
func (*Platform) MachineTemplate(p platform.Pool) client.Object {
	aws := pool(p)
	template := &awsv1.AWSMachineTemplate{}
	machine := &template.Spec.Template.Spec
	if p.Release != nil || aws.AMI != "" {
		if id, err := ami(p); err == nil {
			machine.AMI.ID = &id
		}
	}
	machine.InstanceType = aws.InstanceType
	machine.IAMInstanceProfile = cmp.Or(aws.InstanceProfile, p.HostedCluster.Spec.InfraID+"-worker-profile")
	machine.Subnet = ptr.To(reference(aws.Subnet))
	machine.AdditionalSecurityGroups = securityGroups(p)
	machine.RootVolume = rootVolume(aws.RootVolume)
	machine.AdditionalTags = tags(p)
	machine.InstanceMetadataOptions = metadataOptions(p.NodePool)
	// The user-data refers to the ignition-server and contains a token that expires. EC2 itself provides it to the
	// instance, unchanged.
	machine.UncompressedUserData = ptr.To(true)
	machine.CloudInit = awsv1.CloudInit{InsecureSkipSecretsManager: true, SecureSecretsBackend: "secrets-manager"}
	if publicMachines(p.HostedCluster) {
		machine.PublicIP = ptr.To(true)
	}
	place(machine, aws.Placement)
	return template
}

func reference(ref hyperv1.AWSResourceReference) awsv1.AWSResourceReference {
	out := awsv1.AWSResourceReference{ID: ref.ID}
	for _, filter := range ref.Filters {
		out.Filters = append(out.Filters, awsv1.Filter{Name: filter.Name, Values: filter.Values})
	}
	return out
}

func securityGroups(p platform.Pool) []awsv1.AWSResourceReference {
	var groups []awsv1.AWSResourceReference
	for _, group := range pool(p).SecurityGroups {
		groups = append(groups, reference(group))
	}
	if id := defaultSecurityGroup(p.HostedCluster); id != "" {
		groups = append(groups, awsv1.AWSResourceReference{ID: &id})
	}
	return groups
}

func rootVolume(volume *hyperv1.Volume) *awsv1.Volume {
	if volume == nil {
		return &awsv1.Volume{Size: defaultVolumeSize}
	}
	return &awsv1.Volume{
		Size: max(volume.Size, defaultVolumeSize/2), Type: cmp.Or(volume.Type, defaultVolumeType), IOPS: volume.IOPS,
		Encrypted: volume.Encrypted, EncryptionKey: volume.EncryptionKey,
	}
}

// metadataOptions sets all fields, so that the API server adds no defaults.
func metadataOptions(np *hyperv1.NodePool) *awsv1.InstanceMetadataOptions {
	options := &awsv1.InstanceMetadataOptions{
		HTTPEndpoint: "enabled", HTTPProtocolIPv6: "disabled", HTTPPutResponseHopLimit: metadataHops, HTTPTokens: "optional", InstanceMetadataTags: "disabled",
	}
	if np.Annotations[hyperv1.EC2InstanceMetadataHTTPTokens] == "required" {
		options.HTTPTokens = "required"
	}
	return options
}

// tags returns the tags of the pool and of the cluster. The cluster's take precedence unless it lets pools override
// them. The cloud provider finds the cluster's instances by the tag kubernetes.io/cluster/<infraID>.
func tags(p platform.Pool) map[string]string {
	all := map[string]string{}
	for _, tag := range pool(p).ResourceTags {
		all[tag.Key] = tag.Value
	}
	for _, tag := range spec(p.HostedCluster).ResourceTags {
		if _, set := all[tag.Key]; !set || tag.OverridePolicy != "Allow" {
			all[tag.Key] = tag.Value
		}
	}
	if owned := "kubernetes.io/cluster/" + p.HostedCluster.Spec.InfraID; all[owned] == "" {
		all[owned] = "owned"
	}
	if spot(p.NodePool) {
		all["aws-node-termination-handler/managed"] = ""
	}
	return all
}

// spot reports whether EC2 may reclaim instances, so that they must be drained in time. The annotation enables the
// same handling in tests with instances that EC2 does not reclaim.
func spot(np *hyperv1.NodePool) bool {
	if _, tried := np.Annotations[hyperv1.EnableSpotAnnotation]; tried {
		return true
	}
	aws := np.Spec.Platform.AWS
	return aws != nil && aws.Placement != nil && aws.Placement.MarketType == hyperv1.MarketTypeSpot
}

// place sets the tenancy, and how the capacity is bought.
func place(machine *awsv1.AWSMachineSpec, placement *hyperv1.PlacementOptions) {
	if placement == nil {
		return
	}
	machine.Tenancy = placement.Tenancy
	reservation := ptr.Deref(placement.CapacityReservation, hyperv1.CapacityReservationOptions{})
	machine.CapacityReservationID, machine.CapacityReservationPreference = reservation.ID, reservation.Preference
	market := placement.MarketType
	if market == "" {
		market = reservation.MarketType
	}
	// A reservation by ID is a capacity block unless the pool says otherwise. Dedicated hosts cannot be in a capacity
	// block.
	if market == "" && reservation.ID != nil && placement.Tenancy != "host" {
		market = hyperv1.MarketTypeCapacityBlock
	}
	switch market {
	case hyperv1.MarketTypeSpot:
		machine.SpotMarketOptions = &awsv1.SpotMarketOptions{}
		if price := placement.Spot.MaxPrice; price != "" {
			machine.SpotMarketOptions.MaxPrice = &price
		}
	case hyperv1.MarketTypeCapacityBlock:
		machine.MarketType = "CapacityBlock"
	case hyperv1.MarketTypeOnDemand:
		machine.MarketType = "OnDemand"
	}
}

// RollingTemplate omits tags, because the provider updates them on running instances.
func (*Platform) RollingTemplate(template client.Object) client.Object {
	rolling, ok := template.DeepCopyObject().(*awsv1.AWSMachineTemplate)
	if !ok {
		return template
	}
	rolling.Spec.Template.Spec.AdditionalTags = nil
	return rolling
}

// AdjustMachine sets the pool's tags on an instance.
func (*Platform) AdjustMachine(p platform.Pool, obj client.Object) {
	if machine, ok := obj.(*awsv1.AWSMachine); ok && p.HostedCluster != nil {
		machine.Spec.AdditionalTags = tags(p)
	}
}

// MachineTemplates returns an empty AWSMachineTemplateList.
func (*Platform) MachineTemplates() client.ObjectList { return &awsv1.AWSMachineTemplateList{} }

// MachineCapacity returns the capacity of the instance type, as the provider reports it.
func (*Platform) MachineCapacity(obj client.Object) platform.MachineCapacity {
	template, ok := obj.(*awsv1.AWSMachineTemplate)
	if !ok {
		return platform.MachineCapacity{}
	}
	return platform.MachineCapacity{Resources: template.Status.Capacity}
}
