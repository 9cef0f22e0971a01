// SPDX-License-Identifier: Apache-2.0

// Package aws is the plugin of the platform AWS. Worker nodes are EC2 instances. The Cluster API provider creates the
// instances. The release payload's control-plane-operator creates the other resources, with roles that the
// HostedCluster names.
//
// This package itself calls AWS in two cases. If the installer configured a bucket, it publishes the documents by which
// AWS verifies the issuer of a cluster's tokens. If the installer granted access to the management cluster's account,
// it creates endpoint services, through which the nodes of private clusters reach their control plane.
package aws

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/openshift/hypershift/api/aws/v1beta2"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/crds"
)

// Options implements platform.Options.
type Options struct {
	bucket bucket
	link   privateLink
}

// AddFlags adds the flags for the bucket of issuer documents, and for the endpoint services of private clusters.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.bucket.addFlags(flags)
	o.link.addFlags(flags)
}

// New creates the plugin.
func (o *Options) New(env platform.Environment) (platform.Platform, error) {
	return &Platform{providerImage: env.ProviderImage, bucket: &o.bucket, link: &o.link}, errors.Join(o.bucket.check(), o.link.check())
}

// Platform implements platform.Platform.
type Platform struct {
	// providerImage is the image that the installer chose; if empty, the payload's is used.
	providerImage string
	// bucket stores the issuer documents.
	bucket *bucket
	// link creates endpoint services.
	link *privateLink
}

var (
	_ platform.Platform        = &Platform{}
	_ platform.IssuerPublisher = &Platform{}
	_ platform.Connector       = &Platform{}
	_ platform.OperatorAdapter = &Platform{}
	_ platform.Finder          = &Platform{}
)

// AddToScheme registers the provider's kinds.
func (*Platform) AddToScheme(scheme *runtime.Scheme) error { return awsv1.AddToScheme(scheme) }

// CRDs returns the provider's CRDs, and the one that the payload's control-plane-operator uses.
func (*Platform) CRDs() []string {
	return append(crds.Names(crds.AWS), "awsendpointservices.hypershift.openshift.io")
}

// Watched returns the provider's kinds, and the one that the payload's control-plane-operator creates.
func (*Platform) Watched() []client.Object {
	return []client.Object{&awsv1.AWSCluster{}, &awsv1.AWSMachine{}, &awsv1.AWSMachineTemplate{}, &hyperv1.AWSEndpointService{}}
}

func spec(hc *hyperv1.HostedCluster) hyperv1.AWSPlatformSpec {
	if hc.Spec.Platform.AWS == nil {
		return hyperv1.AWSPlatformSpec{}
	}
	return *hc.Spec.Platform.AWS
}

var roleARN = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/\S+$`)

// ValidateHostedCluster requires the platform's block, and valid role ARNs.
func (*Platform) ValidateHostedCluster(hc *hyperv1.HostedCluster) error {
	if hc.Spec.Platform.AWS == nil {
		return errors.New("spec.platform.aws is missing: say the region and the roles of the cluster's operators")
	}
	var problems []error
	for _, role := range roles(hc) {
		if !roleARN.MatchString(role.arn) {
			problems = append(problems, fmt.Errorf("%s is %q: give the ARN of an IAM role, e.g. arn:aws:iam::123456789012:role/demo", role.field, role.arn))
		}
	}
	return errors.Join(problems...)
}

// InfraCluster returns the AWSCluster, or nil until the API server has an address. Its network exists already, so the
// provider does not manage it.
func (*Platform) InfraCluster(cluster platform.Cluster) *platform.Object {
	if cluster.ControlPlane == nil || cluster.ControlPlane.Status.ControlPlaneEndpoint.Host == "" {
		return nil
	}
	endpoint, aws := cluster.ControlPlane.Status.ControlPlaneEndpoint, spec(cluster.HostedCluster)
	infra := &awsv1.AWSCluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.HostedCluster.Name}}
	return &platform.Object{
		Object: infra,
		Mutate: func() error {
			metav1.SetMetaDataAnnotation(&infra.ObjectMeta, clusterv1.ManagedByAnnotation, "external")
			infra.Spec.Region = aws.Region
			if aws.CloudProviderConfig != nil {
				infra.Spec.Network.VPC.ID = aws.CloudProviderConfig.VPC
			}
			if publicMachines(cluster.HostedCluster) {
				infra.Spec.Network.Subnets = publicSubnets(cluster.NodePools)
			}
			infra.Spec.AdditionalTags = clusterTags(aws)
			infra.Spec.ControlPlaneEndpoint = awsv1.APIEndpoint{Host: endpoint.Host, Port: endpoint.Port}
			return nil
		},
		MutateStatus: func() { infra.Status.Ready = true },
	}
}

// publicMachines reports whether machines get public addresses.
func publicMachines(hc *hyperv1.HostedCluster) bool {
	return hc.Annotations[hyperv1.AWSMachinePublicIPs] == "true"
}

// publicSubnets returns the pools' subnets. The provider assigns a public address only in subnets that the AWSCluster
// marks as public.
func publicSubnets(pools []hyperv1.NodePool) []awsv1.SubnetSpec {
	var subnets []awsv1.SubnetSpec
	for _, id := range subnetsOf(pools) {
		subnets = append(subnets, awsv1.SubnetSpec{ID: id, IsPublic: true})
	}
	return subnets
}

func clusterTags(aws hyperv1.AWSPlatformSpec) map[string]string {
	if len(aws.ResourceTags) == 0 {
		return nil
	}
	tags := map[string]string{}
	for _, tag := range aws.ResourceTags {
		tags[tag.Key] = tag.Value
	}
	return tags
}
