// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/pflag"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/cluster"
)

const (
	infraJSON = `{"region":"eu-west-1","zone":"","infraID":"demo-abcde","machineCIDR":"10.0.0.0/16","vpcID":"vpc-1",
		"zones":[{"name":"eu-west-1a","subnetID":"subnet-a"},{"name":"eu-west-1b","subnetID":"subnet-b"}],"securityGroupID":"sg-1","Name":"demo",
		"baseDomain":"example.org","baseDomainPrefix":"x","publicZoneID":"Z1","privateZoneID":"Z2","localZoneID":"Z3","proxyAddr":""}`
	iamJSON = `{"region":"eu-west-1","profileName":"demo-worker","infraID":"demo-abcde","issuerURL":"https://issuer.example.org/demo-abcde",
		"roles":{"ingressARN":"r1","imageRegistryARN":"r2","storageARN":"r3","networkARN":"r4","kubeCloudControllerARN":"r5","nodePoolManagementARN":"r6",
		"controlPlaneOperatorARN":"r7"},"kmsKeyARN":"","kmsProviderRoleARN":"r8"}`
)

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// complete parses flags. In args, INFRA and IAM are replaced by the paths of files with these contents.
func complete(t *testing.T, infra, iam string, args ...string) (*Cluster, error) {
	t.Helper()
	p := &Cluster{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	p.AddFlags(flags)
	if infra != "" {
		args = append(args, "--infra-json", file(t, "infra.json", infra))
	}
	if iam != "" {
		args = append(args, "--iam-json", file(t, "iam.json", iam))
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return p, p.Complete(t.Context(), cluster.Environment{})
}

func TestClusterRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, infra, iam string
		args             []string
		says             string
	}{
		{"When no file is set, it should require both files", "", "", nil, "--infra-json and --iam-json are required"},
		{"When a file is not JSON, it should name the flag", infraJSON, "nonsense", nil, "--iam-json"},
		{"When the infra file has no infraID, it should say so", `{"region":"eu-west-1"}`, iamJSON, nil, "no infraID"},
		{"When the files belong to different clusters, it should say so", infraJSON, `{"infraID":"other-abcde"}`, nil, "different clusters"},
		{"When the machine CIDR is invalid, it should name the field", `{"infraID":"demo-abcde","vpcID":"v","machineCIDR":"10"}`, iamJSON, nil, "machineCIDR"},
		{"When no region is set, it should require one", `{"infraID":"demo-abcde","vpcID":"v"}`, iamJSON, nil, "--region"},
		{"When the infra file has no zones, it should say so", `{"infraID":"demo-abcde","vpcID":"v","region":"r"}`, iamJSON, nil, "no zones"},
		{"When the zone is not in the infra file, it should list the available zones", infraJSON, iamJSON, []string{"--zones", "eu-west-1c"}, "eu-west-1a, eu-west-1b"},
		{"When the endpoint access is unknown, it should list the valid values", infraJSON, iamJSON, []string{"--endpoint-access", "Secret"}, "PublicAndPrivate"},
		{"When a KMS key has no role, it should require the role", infraJSON, `{"infraID":"demo-abcde"}`, []string{"--kms-key-arn", "key"}, "kmsProviderRoleARN"},
		{"When the API server address would have no effect, it should name the flag that it needs", infraJSON, iamJSON, []string{"--external-api-server-address", "10.0.0.1"}, "--service-publishing-strategy NodePort"},
		{"When the root volume is too small, it should name the flag", infraJSON, iamJSON, []string{"--root-volume-size", "4"}, "--root-volume-size 4"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := complete(t, tc.infra, tc.iam, tc.args...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.says)))
		})
	}
}

func TestCluster(t *testing.T) {
	g := NewWithT(t)
	p, err := complete(t, infraJSON, iamJSON, "--additional-tags", "team=blue,a=b", "--zones", "eu-west-1b", "--kms-key-arn", "key", "--public-only",
		"--endpoint-access", "PublicAndPrivate", "--instance-type", "c5.large", "--root-volume-kms-key", "k")
	g.Expect(err).NotTo(HaveOccurred())
	hc, pool := &hyperv1.HostedCluster{}, &hyperv1.NodePool{}
	p.Apply(hc)
	p.ApplyNodePool(pool)
	g.Expect(hc.Spec.InfraID).To(Equal("demo-abcde"))
	g.Expect(hc.Spec.IssuerURL).To(Equal("https://issuer.example.org/demo-abcde"))
	g.Expect(hc.Spec.DNS).To(Equal(hyperv1.DNSSpec{BaseDomain: "example.org", BaseDomainPrefix: ptr.To("x"), PublicZoneID: "Z1", PrivateZoneID: "Z2"}))
	g.Expect(hc.Spec.Networking.MachineNetwork[0].CIDR.String()).To(Equal("10.0.0.0/16"))
	g.Expect(hc.Spec.SecretEncryption.KMS.AWS).To(Equal(&hyperv1.AWSKMSSpec{
		Region: "eu-west-1", ActiveKey: hyperv1.AWSKMSKeyEntry{ARN: "key"}, Auth: hyperv1.AWSKMSAuthSpec{AWSKMSRoleARN: "r8"}}))
	g.Expect(hc.Annotations).To(HaveKeyWithValue(hyperv1.AWSMachinePublicIPs, "true"))
	want := &hyperv1.AWSPlatformSpec{
		Region: "eu-west-1", EndpointAccess: hyperv1.PublicAndPrivate,
		RolesRef: hyperv1.AWSRolesRef{IngressARN: "r1", ImageRegistryARN: "r2", StorageARN: "r3", NetworkARN: "r4", KubeCloudControllerARN: "r5",
			NodePoolManagementARN: "r6", ControlPlaneOperatorARN: "r7"},
		ResourceTags: []hyperv1.AWSResourceTag{{Key: "kubernetes.io/cluster/demo-abcde", Value: "owned"}, {Key: "a", Value: "b"}, {Key: "team", Value: "blue"}},
		CloudProviderConfig: &hyperv1.AWSCloudProviderConfig{VPC: "vpc-1", Zone: "eu-west-1b",
			Subnet: &hyperv1.AWSResourceReference{ID: ptr.To("subnet-b")}},
	}
	if diff := cmp.Diff(want, hc.Spec.Platform.AWS); diff != "" {
		t.Errorf("cluster: -want +got:\n%s", diff)
	}
	wantPool := &hyperv1.AWSNodePoolPlatform{
		InstanceType: "c5.large", InstanceProfile: "demo-worker", Subnet: hyperv1.AWSResourceReference{ID: ptr.To("subnet-b")},
		SecurityGroups: []hyperv1.AWSResourceReference{{ID: ptr.To("sg-1")}},
		RootVolume:     &hyperv1.Volume{Size: 120, Type: "gp3", Encrypted: ptr.To(true), EncryptionKey: "k"},
	}
	if diff := cmp.Diff(wantPool, pool.Spec.Platform.AWS); diff != "" {
		t.Errorf("pool: -want +got:\n%s", diff)
	}
}

func TestPublishing(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want hyperv1.PublishingStrategyType
	}{
		{"When no flag is set, it should publish the API with a load balancer", nil, hyperv1.LoadBalancer},
		{"When NodePort publishing is set, it should publish the API with NodePort", []string{"--service-publishing-strategy", "NodePort", "--external-api-server-address", "10.0.0.1"}, hyperv1.NodePort},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			p, err := complete(t, infraJSON, iamJSON, tc.args...)
			g.Expect(err).NotTo(HaveOccurred())
			hc := &hyperv1.HostedCluster{}
			p.Apply(hc)
			g.Expect(hc.Spec.Services[0].Service).To(Equal(hyperv1.APIServer))
			g.Expect(hc.Spec.Services[0].ServicePublishingStrategy.Type).To(Equal(tc.want))
		})
	}
}

func TestNetworkOfOthers(t *testing.T) {
	g := NewWithT(t)
	infra := strings.NewReplacer(`"baseDomainPrefix":"x"`, `"baseDomainPrefix":"none"`, `"proxyAddr":""`, `"proxyAddr":"http://10.0.0.2:3128"`).Replace(infraJSON)
	p, err := complete(t, infra, iamJSON)
	g.Expect(err).NotTo(HaveOccurred())
	hc := &hyperv1.HostedCluster{}
	p.Apply(hc)
	g.Expect(hc.Spec.DNS.BaseDomainPrefix).To(Equal(ptr.To("")), "the base domain is used as it is")
	g.Expect(hc.Spec.Configuration.Proxy).To(Equal(&configv1.ProxySpec{HTTPProxy: "http://10.0.0.2:3128", HTTPSProxy: "http://10.0.0.2:3128"}))
	hc.Spec.Configuration.Proxy.HTTPProxy = "http://theirs:3128"
	p.Apply(hc)
	g.Expect(hc.Spec.Configuration.Proxy.HTTPProxy).To(Equal("http://theirs:3128"), "a flag's wins")
}

func TestNodePool(t *testing.T) {
	g := NewWithT(t)
	p, flags := &NodePool{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
	p.AddFlags(flags)
	g.Expect(flags.Parse([]string{"--subnet-id", "subnet-1"})).To(Succeed())
	g.Expect(p.Complete()).To(Succeed())
	for arch, want := range map[string]string{"amd64": "m5.large", "arm64": "m6g.large"} {
		pool := &hyperv1.NodePool{Spec: hyperv1.NodePoolSpec{Arch: arch}}
		p.Apply(pool)
		g.Expect(pool.Spec.Platform.AWS.InstanceType).To(Equal(want))
		g.Expect(pool.Spec.Platform.AWS.SecurityGroups).To(BeEmpty())
	}
}

func TestNodePoolInherits(t *testing.T) {
	subnet := &hyperv1.AWSCloudProviderConfig{Subnet: &hyperv1.AWSResourceReference{ID: ptr.To("subnet-c")}}
	for _, tc := range []struct {
		name            string
		given           NodePool
		cluster         *hyperv1.AWSCloudProviderConfig
		incomplete      bool
		subnet, profile string
		err             string
	}{
		{"When no flag is set, it should use the subnet and instance profile of the cluster", NodePool{}, subnet, true, "subnet-c", "demo-abcde-worker", ""},
		{"When all flags are set, it should keep their values", NodePool{subnet: "subnet-1", profile: "mine"}, subnet, false, "subnet-1", "mine", ""},
		{"When the cluster has no subnet, it should require the flag", NodePool{profile: "mine"}, nil, true, "", "mine", "--subnet-id"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			hc := &hyperv1.HostedCluster{}
			hc.Spec.InfraID, hc.Spec.Platform.AWS = "demo-abcde", &hyperv1.AWSPlatformSpec{CloudProviderConfig: tc.cluster}
			p := tc.given
			g.Expect(p.Incomplete()).To(Equal(tc.incomplete))
			if err := p.Inherit(hc); tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect([]string{p.subnet, p.profile}).To(Equal([]string{tc.subnet, tc.profile}))
		})
	}
}
