// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/utils/ptr"

	awsv1 "github.com/openshift/hypershift/api/aws/v1beta2"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/releaseinfo"
)

const givenAMI = "ami-00000000000000001"

// payload returns a payload with an AMI of each architecture for one region.
func payload(t *testing.T, distribution releaseinfo.Distribution) *releaseinfo.ReleaseImage {
	t.Helper()
	images := releaseinfo.BootImages{Architectures: map[string]releaseinfo.BootArchitecture{}}
	for arch, id := range map[string]string{"x86_64": "ami-amd64", "aarch64": "ami-arm64"} {
		var boot releaseinfo.BootArchitecture
		boot.Images.AWS.Regions = map[string]releaseinfo.BootImage{"eu-west-1": {Image: id}}
		images.Architectures[arch] = boot
	}
	intel := images.Architectures["x86_64"]
	intel.Extensions.Windows.Regions = map[string]releaseinfo.BootImage{"eu-west-1": {Image: "ami-windows"}}
	images.Architectures["x86_64"] = intel
	var ten releaseinfo.BootArchitecture
	ten.Images.AWS.Regions = map[string]releaseinfo.BootImage{"eu-west-1": {Image: "ami-ten"}}
	images.Streams = map[string]releaseinfo.BootImages{"rhel-10": {Architectures: map[string]releaseinfo.BootArchitecture{"x86_64": ten}}}
	return releaseinfo.New("release", releaseinfo.Payload{Version: "4.20.1", Distribution: distribution, BootImages: images})
}

func testPool(t *testing.T) platform.Pool {
	t.Helper()
	np := &hyperv1.NodePool{}
	np.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSNodePoolPlatform{
		InstanceType: "m5.large", Subnet: hyperv1.AWSResourceReference{ID: ptr.To("subnet-1")},
	}}
	hc := testCluster().HostedCluster
	hc.Status.Platform = &hyperv1.PlatformStatus{AWS: &hyperv1.AWSPlatformStatus{DefaultWorkerSecurityGroupID: "sg-default"}}
	return platform.Pool{NodePool: np, HostedCluster: hc, Release: payload(t, releaseinfo.OpenShift)}
}

func TestMachineTemplate(t *testing.T) {
	plain := func() awsv1.AWSMachineSpec {
		return awsv1.AWSMachineSpec{
			AMI: awsv1.AMIReference{ID: ptr.To("ami-amd64")}, InstanceType: "m5.large", IAMInstanceProfile: "demo-abcde-worker-profile",
			Subnet: &awsv1.AWSResourceReference{ID: ptr.To("subnet-1")}, RootVolume: &awsv1.Volume{Size: 16},
			AdditionalSecurityGroups: []awsv1.AWSResourceReference{{ID: ptr.To("sg-default")}},
			AdditionalTags:           map[string]string{"kubernetes.io/cluster/demo-abcde": "owned"}, UncompressedUserData: ptr.To(true),
			CloudInit: awsv1.CloudInit{InsecureSkipSecretsManager: true, SecureSecretsBackend: "secrets-manager"},
			InstanceMetadataOptions: &awsv1.InstanceMetadataOptions{
				HTTPEndpoint: "enabled", HTTPProtocolIPv6: "disabled", HTTPPutResponseHopLimit: 2, HTTPTokens: "optional", InstanceMetadataTags: "disabled"},
		}
	}
	filters := []hyperv1.Filter{{Name: "tag:Name", Values: []string{"a", "b"}}}
	for _, tc := range []struct {
		name string
		set  func(np *hyperv1.NodePool, aws *hyperv1.AWSNodePoolPlatform, hc *hyperv1.HostedCluster)
		want func(machine *awsv1.AWSMachineSpec)
	}{
		{"When the pool sets only the minimum, it should use the payload's and the cluster's values",
			func(*hyperv1.NodePool, *hyperv1.AWSNodePoolPlatform, *hyperv1.HostedCluster) {}, func(*awsv1.AWSMachineSpec) {}},
		{"When the architecture is arm64, it should use the arm64 AMI",
			func(np *hyperv1.NodePool, _ *hyperv1.AWSNodePoolPlatform, _ *hyperv1.HostedCluster) {
				np.Spec.Arch = "arm64"
			},
			func(m *awsv1.AWSMachineSpec) { m.AMI.ID = ptr.To("ami-arm64") }},
		{"When the image type is Windows, it should use the Windows AMI",
			func(_ *hyperv1.NodePool, aws *hyperv1.AWSNodePoolPlatform, _ *hyperv1.HostedCluster) {
				aws.ImageType = hyperv1.ImageTypeWindows
			},
			func(m *awsv1.AWSMachineSpec) { m.AMI.ID = ptr.To("ami-windows") }},
		{"When the enable-spot annotation is set, it should add the termination handler's tag without spot options",
			func(np *hyperv1.NodePool, _ *hyperv1.AWSNodePoolPlatform, _ *hyperv1.HostedCluster) {
				np.Annotations = map[string]string{"hypershift.openshift.io/enable-spot": ""}
			},
			func(m *awsv1.AWSMachineSpec) { m.AdditionalTags["aws-node-termination-handler/managed"] = "" }},
		{"When an AMI is set, it should take precedence",
			func(_ *hyperv1.NodePool, aws *hyperv1.AWSNodePoolPlatform, _ *hyperv1.HostedCluster) {
				aws.AMI = givenAMI
			},
			func(m *awsv1.AWSMachineSpec) { m.AMI.ID = ptr.To(givenAMI) }},
		{"When an instance profile is set, it should take precedence",
			func(_ *hyperv1.NodePool, aws *hyperv1.AWSNodePoolPlatform, _ *hyperv1.HostedCluster) {
				aws.InstanceProfile = "mine"
			},
			func(m *awsv1.AWSMachineSpec) { m.IAMInstanceProfile = "mine" }},
		{"When the subnet is selected by filters, it should pass them to the provider",
			func(_ *hyperv1.NodePool, aws *hyperv1.AWSNodePoolPlatform, _ *hyperv1.HostedCluster) {
				aws.Subnet = hyperv1.AWSResourceReference{Filters: filters}
			},
			func(m *awsv1.AWSMachineSpec) {
				m.Subnet = &awsv1.AWSResourceReference{Filters: []awsv1.Filter{{Name: "tag:Name", Values: []string{"a", "b"}}}}
			}},
		{"When security groups are set, it should list them before the cluster's group",
			func(_ *hyperv1.NodePool, aws *hyperv1.AWSNodePoolPlatform, _ *hyperv1.HostedCluster) {
				aws.SecurityGroups = []hyperv1.AWSResourceReference{{ID: ptr.To("sg-1")}, {Filters: filters}}
			},
			func(m *awsv1.AWSMachineSpec) {
				m.AdditionalSecurityGroups = []awsv1.AWSResourceReference{
					{ID: ptr.To("sg-1")}, {Filters: []awsv1.Filter{{Name: "tag:Name", Values: []string{"a", "b"}}}}, {ID: ptr.To("sg-default")}}
			}},
		{"When the root volume is set, it should use its settings",
			func(_ *hyperv1.NodePool, aws *hyperv1.AWSNodePoolPlatform, _ *hyperv1.HostedCluster) {
				aws.RootVolume = &hyperv1.Volume{Size: 200, Type: "io1", IOPS: 3000, Encrypted: ptr.To(true), EncryptionKey: "key"}
			},
			func(m *awsv1.AWSMachineSpec) {
				m.RootVolume = &awsv1.Volume{Size: 200, Type: "io1", IOPS: 3000, Encrypted: ptr.To(true), EncryptionKey: "key"}
			}},
		{"When pool and cluster set the same tag, the cluster's should win unless its override policy is Allow",
			func(_ *hyperv1.NodePool, aws *hyperv1.AWSNodePoolPlatform, hc *hyperv1.HostedCluster) {
				aws.ResourceTags = []hyperv1.AWSNodePoolResourceTag{{Key: "pool", Value: "p"}, {Key: "fixed", Value: "p"}, {Key: "open", Value: "p"}}
				hc.Spec.Platform.AWS.ResourceTags = []hyperv1.AWSResourceTag{
					{Key: "fixed", Value: "c"}, {Key: "open", Value: "c", OverridePolicy: "Allow"}, {Key: "kubernetes.io/cluster/demo-abcde", Value: "shared"}}
			},
			func(m *awsv1.AWSMachineSpec) {
				m.AdditionalTags = map[string]string{"pool": "p", "fixed": "c", "open": "p", "kubernetes.io/cluster/demo-abcde": "shared"}
			}},
		{"When the metadata token annotation is set, it should require session tokens",
			func(np *hyperv1.NodePool, _ *hyperv1.AWSNodePoolPlatform, _ *hyperv1.HostedCluster) {
				np.Annotations = map[string]string{"hypershift.openshift.io/ec2-instance-metadata-http-tokens": "required"}
			},
			func(m *awsv1.AWSMachineSpec) { m.InstanceMetadataOptions.HTTPTokens = "required" }},
		{"When machines get public addresses, it should set PublicIP",
			func(_ *hyperv1.NodePool, _ *hyperv1.AWSNodePoolPlatform, hc *hyperv1.HostedCluster) {
				hc.Annotations = map[string]string{"hypershift.openshift.io/aws-machine-public-ips": "true"}
			},
			func(m *awsv1.AWSMachineSpec) { m.PublicIP = ptr.To(true) }},
		{"When tenancy is dedicated, it should set the tenancy",
			func(_ *hyperv1.NodePool, aws *hyperv1.AWSNodePoolPlatform, _ *hyperv1.HostedCluster) {
				aws.Placement = &hyperv1.PlacementOptions{Tenancy: "dedicated", MarketType: hyperv1.MarketTypeOnDemand}
			},
			func(m *awsv1.AWSMachineSpec) { m.Tenancy, m.MarketType = "dedicated", "OnDemand" }},
		{"When the market type is Spot, it should set the maximum price and the termination handler's tag",
			func(_ *hyperv1.NodePool, aws *hyperv1.AWSNodePoolPlatform, _ *hyperv1.HostedCluster) {
				aws.Placement = &hyperv1.PlacementOptions{MarketType: hyperv1.MarketTypeSpot, Spot: hyperv1.SpotOptions{MaxPrice: "0.5"}}
			},
			func(m *awsv1.AWSMachineSpec) {
				m.SpotMarketOptions = &awsv1.SpotMarketOptions{MaxPrice: ptr.To("0.5")}
				m.AdditionalTags["aws-node-termination-handler/managed"] = ""
			}},
		{"When a capacity reservation is set, it should use the market type CapacityBlock",
			func(_ *hyperv1.NodePool, aws *hyperv1.AWSNodePoolPlatform, _ *hyperv1.HostedCluster) {
				aws.Placement = &hyperv1.PlacementOptions{CapacityReservation: &hyperv1.CapacityReservationOptions{ID: ptr.To("cr-1"), Preference: "CapacityReservationsOnly"}}
			},
			func(m *awsv1.AWSMachineSpec) {
				m.CapacityReservationID, m.CapacityReservationPreference, m.MarketType = ptr.To("cr-1"), "CapacityReservationsOnly", "CapacityBlock"
			}},
		{"When a capacity reservation sets a market type, it should use that one",
			func(_ *hyperv1.NodePool, aws *hyperv1.AWSNodePoolPlatform, _ *hyperv1.HostedCluster) {
				aws.Placement = &hyperv1.PlacementOptions{CapacityReservation: &hyperv1.CapacityReservationOptions{ID: ptr.To("cr-1"), MarketType: hyperv1.MarketTypeOnDemand}}
			},
			func(m *awsv1.AWSMachineSpec) { m.CapacityReservationID, m.MarketType = ptr.To("cr-1"), "OnDemand" }},
		{"When any open capacity reservation may be used, it should set no market type",
			func(_ *hyperv1.NodePool, aws *hyperv1.AWSNodePoolPlatform, _ *hyperv1.HostedCluster) {
				aws.Placement = &hyperv1.PlacementOptions{CapacityReservation: &hyperv1.CapacityReservationOptions{Preference: "Open"}}
			},
			func(m *awsv1.AWSMachineSpec) { m.CapacityReservationPreference = "Open" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := testPool(t)
			tc.set(p.NodePool, p.NodePool.Spec.Platform.AWS, p.HostedCluster)
			want := plain()
			tc.want(&want)
			got := (&Platform{}).MachineTemplate(p).(*awsv1.AWSMachineTemplate)
			if diff := cmp.Diff(want, got.Spec.Template.Spec); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFindings(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(p *platform.Pool)
		want map[string]string
	}{
		{"When an AMI and a security group are found, it should report both", func(*platform.Pool) {},
			map[string]string{"ValidPlatformImage": "ami-amd64", "AWSSecurityGroupAvailable": "sg-default"}},
		{"When a stream is selected, it should report the stream's AMI", func(p *platform.Pool) { p.Stream = "rhel-10" },
			map[string]string{"ValidPlatformImage": "ami-ten", "AWSSecurityGroupAvailable": "sg-default"}},
		{"When the pool sets an AMI, it should not report one", func(p *platform.Pool) { p.NodePool.Spec.Platform.AWS.AMI = givenAMI },
			map[string]string{"AWSSecurityGroupAvailable": "sg-default"}},
		{"When there is no default security group, it should report only the AMI", func(p *platform.Pool) { p.HostedCluster.Status.Platform = nil },
			map[string]string{"ValidPlatformImage": "ami-amd64"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			p := testPool(t)
			tc.set(&p)
			findings := (&Platform{}).Findings(p)
			g.Expect(findings).To(HaveLen(len(tc.want)))
			for _, finding := range findings {
				g.Expect(finding.Message).To(ContainSubstring(tc.want[finding.Condition]), finding.Condition)
				g.Expect(tc.want).To(HaveKey(finding.Condition))
			}
		})
	}
}

func TestTagsRollNothing(t *testing.T) {
	g := NewWithT(t)
	p := testPool(t)
	before := (&Platform{}).RollingTemplate((&Platform{}).MachineTemplate(p))
	p.NodePool.Spec.Platform.AWS.ResourceTags = []hyperv1.AWSNodePoolResourceTag{{Key: "team", Value: "red"}}
	template := (&Platform{}).MachineTemplate(p)
	g.Expect((&Platform{}).RollingTemplate(template)).To(Equal(before))
	g.Expect(template.(*awsv1.AWSMachineTemplate).Spec.Template.Spec.AdditionalTags).To(HaveKeyWithValue("team", "red"), "the template itself has them")
	machine := &awsv1.AWSMachine{}
	(&Platform{}).AdjustMachine(p, machine)
	g.Expect(machine.Spec.AdditionalTags).To(HaveKeyWithValue("team", "red"), "the instance that runs gets them")
	p.HostedCluster = nil
	machine.Spec.AdditionalTags = nil
	(&Platform{}).AdjustMachine(p, machine)
	g.Expect(machine.Spec.AdditionalTags).To(BeEmpty(), "nobody knows the cluster's any more")
}

func TestValidateNodePool(t *testing.T) {
	for _, tc := range []struct {
		name      string
		set       func(p *platform.Pool)
		condition string
		says      string
	}{
		{"When all settings are valid, it should accept the pool", func(*platform.Pool) {}, "", ""},
		{"When the pool's AWS block is missing, it should return an error", func(p *platform.Pool) { p.NodePool.Spec.Platform.AWS = nil }, "", "spec.platform.aws is missing"},
		{"When the cluster's AWS block is missing, it should return an error", func(p *platform.Pool) { p.HostedCluster.Spec.Platform.AWS = nil }, "", "HostedCluster"},
		{"When the subnet is empty, it should return an error",
			func(p *platform.Pool) { p.NodePool.Spec.Platform.AWS.Subnet = hyperv1.AWSResourceReference{} }, "", "spec.platform.aws.subnet"},
		{"When the payload is not known yet, it should accept the pool", func(p *platform.Pool) { p.Release, p.HostedCluster.Status.Platform = nil, nil }, "", ""},
		{"When the payload has no AMI for the region, it should ask for one",
			func(p *platform.Pool) { p.HostedCluster.Spec.Platform.AWS.Region = "mars-1" }, "ValidPlatformImage", "amd64 in region mars-1: set spec.platform.aws.ami"},
		{"When the payload has no Windows AMI for the architecture, it should return an error", func(p *platform.Pool) {
			p.NodePool.Spec.Platform.AWS.ImageType, p.NodePool.Spec.Arch = hyperv1.ImageTypeWindows, "arm64"
		}, "ValidPlatformImage", "no AMI of Windows for architecture arm64 in region eu-west-1"},
		{"When the stream has no AMI for the architecture, it should return an error", func(p *platform.Pool) {
			p.Stream, p.NodePool.Spec.Arch = "rhel-10", "arm64"
		}, "ValidPlatformImage", "no AMI of rhel-10 for architecture arm64"},
		{"When a Windows pool sets an AMI, it should accept the pool", func(p *platform.Pool) {
			p.NodePool.Spec.Platform.AWS.ImageType, p.NodePool.Spec.Platform.AWS.AMI = hyperv1.ImageTypeWindows, givenAMI
		}, "", ""},
		{"When the cluster's provider does not support capacity reservations, it should reject them", func(p *platform.Pool) {
			p.NodePool.Spec.Platform.AWS.Placement = &hyperv1.PlacementOptions{CapacityReservation: &hyperv1.CapacityReservationOptions{Preference: "Open"}}
			p.HostedCluster.Status.Version = &hyperv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{Version: "4.18.30"}}}
		}, "", "needs a cluster of OpenShift 4.19.0 or newer, and this one is of 4.18.30"},
		{"When the cluster's provider supports capacity reservations, it should accept them", func(p *platform.Pool) {
			p.NodePool.Spec.Platform.AWS.Placement = &hyperv1.PlacementOptions{CapacityReservation: &hyperv1.CapacityReservationOptions{Preference: "Open"}}
			p.HostedCluster.Status.Version = &hyperv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{Version: "4.19.0-rc.1"}}}
		}, "", ""},
		{"When the cluster's security group does not exist yet, it should wait",
			func(p *platform.Pool) { p.HostedCluster.Status.Platform = nil }, "AWSSecurityGroupAvailable", "security group"},
		{"When the release creates no security group, it should not wait for one", func(p *platform.Pool) {
			p.HostedCluster.Status.Platform = nil
			p.Release = payload(t, releaseinfo.Kubernetes)
		}, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			p := testPool(t)
			tc.set(&p)
			err := (&Platform{}).ValidateNodePool(p)
			if tc.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
			var fault *platform.Fault
			g.Expect(errors.As(err, &fault)).To(Equal(tc.condition != ""))
			if fault != nil {
				g.Expect(fault.Condition).To(Equal(tc.condition))
			}
		})
	}
}
