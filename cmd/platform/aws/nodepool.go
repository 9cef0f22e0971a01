// SPDX-License-Identifier: Apache-2.0

// Package aws implements platform AWS for the commands. Nothing here calls AWS.
package aws

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// leastVolume is the smallest root volume, in GiB, that the API accepts.
const leastVolume = 8

// instanceTypes holds the default instance type of each architecture.
var instanceTypes = map[string]string{"": "m5.large", "amd64": "m5.large", "arm64": "m6g.large"}

// NodePool is platform AWS for `create nodepool`, and the part of `create cluster` that is about machines.
type NodePool struct {
	instanceType, profile, subnet, securityGroup string
	ami                                          string
	volume                                       hyperv1.Volume
}

// Type implements nodepool.Platform.
func (*NodePool) Type() hyperv1.PlatformType { return hyperv1.AWSPlatform }

// Example implements nodepool.Platform.
func (*NodePool) Example() string {
	return "--instance-type m5.xlarge"
}

// AddFlags implements nodepool.Platform.
func (p *NodePool) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&p.subnet, "subnet-id", "", "subnet of the machines (default: the cluster's)")
	flags.StringVar(&p.securityGroup, "securitygroup-id", "", "security group of the machines beside the cluster's")
	flags.StringVar(&p.profile, "instance-profile", "", "instance profile of the machines (default: <infra id>-worker, as `create iam aws` of the compatible product makes it)")
	p.addMachineFlags(flags)
}

func (p *NodePool) addMachineFlags(flags *pflag.FlagSet) {
	flags.StringVar(&p.instanceType, "instance-type", "", "instance type of EC2 (default: m5.large, and m6g.large for arm64)")
	flags.StringVar(&p.ami, "ami", "", "AMI that machines start from (default: the release payload's for region and architecture)")
	flags.StringVar(&p.volume.Type, "root-volume-type", "gp3", "type of the root volume")
	flags.Int64Var(&p.volume.Size, "root-volume-size", 120, "size of the root volume in GiB, 8 or more")
	flags.Int64Var(&p.volume.IOPS, "root-volume-iops", 0, "IOPS of the root volume, for types with provisioned IOPS")
	flags.StringVar(&p.volume.EncryptionKey, "root-volume-kms-key", "", "ID or ARN of the key that the root volume is encrypted with")
}

// Complete implements nodepool.Platform.
func (p *NodePool) Complete() error {
	if p.volume.Size < leastVolume {
		return fmt.Errorf("--root-volume-size %d: use %d or more", p.volume.Size, leastVolume)
	}
	return nil
}

// Incomplete implements nodepool.Inheritor.
func (p *NodePool) Incomplete() bool { return p.subnet == "" || p.profile == "" }

// Inherit implements nodepool.Inheritor. It takes the first NodePool's subnet, and the profile that was created with
// the cluster's roles.
func (p *NodePool) Inherit(hc *hyperv1.HostedCluster) error {
	if p.profile == "" {
		p.profile = hc.Spec.InfraID + "-worker"
	}
	if p.subnet != "" {
		return nil
	}
	if aws := hc.Spec.Platform.AWS; aws != nil && aws.CloudProviderConfig != nil && aws.CloudProviderConfig.Subnet != nil {
		p.subnet = ptr.Deref(aws.CloudProviderConfig.Subnet.ID, "")
	}
	if p.subnet == "" {
		return errors.New("--subnet-id is required: the HostedCluster names no subnet in spec.platform.aws.cloudProviderConfig")
	}
	return nil
}

// Apply implements nodepool.Platform.
func (p *NodePool) Apply(pool *hyperv1.NodePool) {
	aws := &hyperv1.AWSNodePoolPlatform{
		InstanceType: p.instanceType, InstanceProfile: p.profile, AMI: p.ami,
		Subnet: hyperv1.AWSResourceReference{ID: ptr.To(p.subnet)}, RootVolume: ptr.To(p.volume),
	}
	if aws.InstanceType == "" {
		aws.InstanceType = instanceTypes[pool.Spec.Arch]
	}
	if p.volume.EncryptionKey != "" {
		aws.RootVolume.Encrypted = ptr.To(true)
	}
	if p.securityGroup != "" {
		aws.SecurityGroups = []hyperv1.AWSResourceReference{{ID: ptr.To(p.securityGroup)}}
	}
	pool.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.AWSPlatform, AWS: aws}
}
