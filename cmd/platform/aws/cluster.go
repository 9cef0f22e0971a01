// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/pflag"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/cmd/cluster"
	"github.com/openshift/hypershift/cmd/publish"
)

// Cluster is platform AWS for `create cluster`. It creates nothing in AWS.
type Cluster struct {
	pool                NodePool
	publishing          publish.Strategy
	infraFile, iamFile  string
	region, access      string
	issuerURL, kmsKey   string
	zone                string
	tags                map[string]string
	multiArch, publicIP bool
	infra               infrastructure
	iam                 identities
	machines            *ipnet.IPNet
}

// noPrefix is the value in --infra-json for a base domain that has no prefix.
const noPrefix = "none"

// Type implements cluster.Platform.
func (*Cluster) Type() hyperv1.PlatformType { return hyperv1.AWSPlatform }

// Example implements cluster.Platform.
func (*Cluster) Example() string {
	return "--infra-json infra.json --iam-json iam.json"
}

// AddFlags implements cluster.Platform.
func (p *Cluster) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&p.infraFile, "infra-json", "", "file with the network that the cluster is in, as `create infra aws` of the compatible product writes it (required)")
	flags.StringVar(&p.iamFile, "iam-json", "", "file with the roles of the cluster's operators, as `create iam aws` of the compatible product writes it (required)")
	flags.StringVar(&p.region, "region", "", "region of AWS (default: that of --infra-json)")
	flags.StringVar(&p.zone, "zones", "", "availability zone of the first NodePool's machines (default: the first of --infra-json)")
	flags.StringVar(&p.access, "endpoint-access", string(hyperv1.Public), "from where the API is reached: Public, PublicAndPrivate or Private")
	flags.StringVar(&p.issuerURL, "oidc-issuer-url", "", "issuer of the cluster's service accounts, which AWS knows (default: that of --iam-json)")
	flags.StringVar(&p.kmsKey, "kms-key-arn", "", "key of AWS that Secrets are encrypted with in etcd; --iam-json must name the role for it (default: that of --iam-json)")
	flags.StringToStringVar(&p.tags, "additional-tags", nil, "tags of all that is made in AWS, e.g. team=blue")
	flags.BoolVar(&p.multiArch, "multi-arch", false, "permit NodePools of other architectures")
	flags.BoolVar(&p.publicIP, "public-only", false, "give machines public addresses: their subnet has no way out without one")
	p.publishing.AddFlags(flags)
	p.pool.addMachineFlags(flags)
}

// Complete implements cluster.Platform.
func (p *Cluster) Complete(ctx context.Context, env cluster.Environment) error {
	if err := p.read(); err != nil {
		return err
	}
	if p.region == "" {
		p.region = p.infra.Region
	}
	if p.region == "" {
		return errors.New("--region is required: --infra-json names none")
	}
	if !slices.Contains([]string{string(hyperv1.Public), string(hyperv1.PublicAndPrivate), string(hyperv1.Private)}, p.access) {
		return fmt.Errorf("--endpoint-access %q: use Public, PublicAndPrivate or Private", p.access)
	}
	if p.issuerURL == "" {
		p.issuerURL = p.iam.IssuerURL
	}
	if p.kmsKey == "" {
		p.kmsKey = p.iam.KMSKeyARN
	}
	if p.kmsKey != "" && p.iam.KMSProviderRoleARN == "" {
		return errors.New("--kms-key-arn needs kmsProviderRoleARN in --iam-json: the role that may use the key")
	}
	subnet, err := p.infra.subnet(p.zone)
	if err != nil {
		return err
	}
	p.pool.subnet, p.pool.securityGroup, p.pool.profile = subnet.SubnetID, p.infra.SecurityGroupID, p.iam.ProfileName
	p.zone = subnet.Name
	if err := p.pool.Complete(); err != nil {
		return err
	}
	return p.publishing.Complete(ctx, env.Client, env.Stderr)
}

func (p *Cluster) read() error {
	if p.infraFile == "" || p.iamFile == "" {
		return errors.New("--infra-json and --iam-json are required: network and roles must exist, nothing is made in AWS")
	}
	if err := read("--infra-json", p.infraFile, &p.infra); err != nil {
		return err
	}
	if err := read("--iam-json", p.iamFile, &p.iam); err != nil {
		return err
	}
	if p.infra.InfraID == "" || p.infra.VPCID == "" {
		return errors.New("--infra-json has no infraID or no vpcID: it is not of `create infra aws`")
	}
	if p.iam.InfraID != "" && p.iam.InfraID != p.infra.InfraID {
		return fmt.Errorf("--iam-json is of infraID %s and --infra-json of %s: they are of different clusters", p.iam.InfraID, p.infra.InfraID)
	}
	if p.infra.MachineCIDR == "" {
		p.infra.MachineCIDR = p.infra.ComputeCIDR
	}
	if p.infra.MachineCIDR == "" {
		return nil
	}
	var err error
	if p.machines, err = ipnet.ParseCIDR(p.infra.MachineCIDR); err != nil {
		return fmt.Errorf("--infra-json: machineCIDR: %w", err)
	}
	return nil
}

// Apply implements cluster.Platform.
func (p *Cluster) Apply(hc *hyperv1.HostedCluster) {
	hc.Spec.InfraID, hc.Spec.IssuerURL = p.infra.InfraID, p.issuerURL
	hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: p.platform()}
	hc.Spec.Services = p.publishing.Services()
	if p.infra.BaseDomain != "" {
		hc.Spec.DNS.BaseDomain = p.infra.BaseDomain
	}
	if prefix := p.infra.BaseDomainPrefix; prefix == noPrefix {
		hc.Spec.DNS.BaseDomainPrefix = ptr.To("")
	} else if prefix != "" {
		hc.Spec.DNS.BaseDomainPrefix = ptr.To(prefix)
	}
	p.applyProxy(hc)
	hc.Spec.DNS.PublicZoneID, hc.Spec.DNS.PrivateZoneID = p.infra.PublicZoneID, p.infra.PrivateZoneID
	if p.machines != nil && len(hc.Spec.Networking.MachineNetwork) == 0 {
		hc.Spec.Networking.MachineNetwork = []hyperv1.MachineNetworkEntry{{CIDR: *p.machines}}
	}
	if p.kmsKey != "" {
		hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{Provider: hyperv1.AWS, AWS: &hyperv1.AWSKMSSpec{
			Region: p.region, ActiveKey: hyperv1.AWSKMSKeyEntry{ARN: p.kmsKey}, Auth: hyperv1.AWSKMSAuthSpec{AWSKMSRoleARN: p.iam.KMSProviderRoleARN},
		}}}
	}
	if p.publicIP {
		if hc.Annotations == nil {
			hc.Annotations = map[string]string{}
		}
		hc.Annotations[hyperv1.AWSMachinePublicIPs] = "true"
	}
}

// applyProxy configures the proxy of the network for the nodes, unless a flag names another proxy.
func (p *Cluster) applyProxy(hc *hyperv1.HostedCluster) {
	if p.infra.ProxyAddr == "" {
		return
	}
	if hc.Spec.Configuration == nil {
		hc.Spec.Configuration = &hyperv1.ClusterConfiguration{}
	}
	if hc.Spec.Configuration.Proxy == nil {
		hc.Spec.Configuration.Proxy = &configv1.ProxySpec{HTTPProxy: p.infra.ProxyAddr, HTTPSProxy: p.infra.ProxyAddr}
	}
}

// platform returns the cluster's AWS platform spec. The tag that identifies the cluster's resources comes first.
func (p *Cluster) platform() *hyperv1.AWSPlatformSpec {
	tags := []hyperv1.AWSResourceTag{{Key: "kubernetes.io/cluster/" + p.infra.InfraID, Value: "owned"}}
	for _, key := range slices.Sorted(maps.Keys(p.tags)) {
		tags = append(tags, hyperv1.AWSResourceTag{Key: key, Value: p.tags[key]})
	}
	spec := &hyperv1.AWSPlatformSpec{
		Region: p.region, RolesRef: p.iam.Roles, EndpointAccess: hyperv1.AWSEndpointAccessType(p.access), ResourceTags: tags, MultiArch: p.multiArch,
		CloudProviderConfig: &hyperv1.AWSCloudProviderConfig{
			VPC: p.infra.VPCID, Zone: p.zone, Subnet: &hyperv1.AWSResourceReference{ID: ptr.To(p.pool.subnet)},
		},
	}
	if p.iam.SharedIngressRoleARN != "" && p.iam.SharedControlPlaneRoleARN != "" {
		spec.SharedVPC = &hyperv1.AWSSharedVPC{LocalZoneID: p.infra.LocalZoneID, RolesRef: hyperv1.AWSSharedVPCRolesRef{
			IngressARN: p.iam.SharedIngressRoleARN, ControlPlaneARN: p.iam.SharedControlPlaneRoleARN,
		}}
	}
	return spec
}

// ApplyNodePool implements cluster.Platform.
func (p *Cluster) ApplyNodePool(pool *hyperv1.NodePool) { p.pool.Apply(pool) }

// Objects implements cluster.Platform.
func (*Cluster) Objects(string, string) []client.Object { return nil }
