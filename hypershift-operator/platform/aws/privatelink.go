// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/smithy-go"
	"github.com/spf13/pflag"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// ownerTag is the tag of an endpoint service that contains its owner.
const ownerTag = "hypershift.openshift.io/aws-endpoint-service"

// privateLink creates endpoint services in the management cluster's account, if the installer granted access to it. nil
// and the zero value create none.
type privateLink struct {
	platform, region, endpoint string
	// credentials is the path of a credentials file for AWS's client libraries. The file may change at any time.
	credentials string

	looks looks
}

// offer is a desired endpoint service.
type offer struct {
	// Owner identifies it among all endpoint services of the account.
	Owner string
	// Token is the same for each attempt to create it. It changes if the endpoint service was created and then deleted.
	Token string `json:"-"`
	// LoadBalancer is the name of the network load balancer behind it.
	LoadBalancer string
	// Principals are the roles that may connect to it, sorted.
	Principals []string
	// Tags are set on it in addition to the owner's tag.
	Tags []hyperv1.AWSResourceTag
}

// service is an existing endpoint service.
type service struct{ id, name, owner string }

func (l *privateLink) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&l.platform, "private-platform", string(hyperv1.NonePlatform), "platform whose private clusters the operator makes endpoint services for: AWS or None")
	flags.StringVar(&l.region, "aws-private-region", "", "region of AWS that the management cluster is in")
	flags.StringVar(&l.credentials, "aws-private-creds", "", "AWS credentials file that may make endpoint services for the management cluster's load balancers")
	flags.StringVar(&l.endpoint, "aws-private-endpoint", "", "URL of a server with the APIs of EC2 and its load balancers, instead of AWS's own in the region")
}

// check reports whether the flags are consistent.
func (l *privateLink) check() error {
	switch {
	case !l.configured() && cmp.Or(l.platform, string(hyperv1.NonePlatform)) != string(hyperv1.NonePlatform):
		return fmt.Errorf("--private-platform %q: use AWS or None", l.platform)
	case l.configured() && (l.region == "" || l.credentials == ""):
		return errors.New("--private-platform AWS needs --aws-private-region and --aws-private-creds")
	}
	return nil
}

func (l *privateLink) configured() bool {
	return l != nil && l.platform == string(hyperv1.AWSPlatform)
}

// open reads the credentials again, because they may have been rotated.
func (l *privateLink) open(ctx context.Context) (awssdk.Config, error) {
	options := []func(*config.LoadOptions) error{
		config.WithRegion(l.region), config.WithSharedCredentialsFiles([]string{l.credentials}), config.WithSharedConfigFiles(nil),
		config.WithSharedConfigProfile("default"),
	}
	if l.endpoint != "" {
		options = append(options, config.WithBaseEndpoint(l.endpoint))
	}
	//nolint:forbidigo // The file is the administrator's, named by a flag.
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return awssdk.Config{}, errors.New("the file of --aws-private-creds is not an AWS credentials file with a profile [default]")
	}
	return loaded, nil
}

// make finds or creates the endpoint service, allows the principals to connect, and returns its name.
func (l *privateLink) make(ctx context.Context, wanted offer) (string, error) {
	ctx, cancel := l.looks.bound(ctx)
	defer cancel()
	loaded, err := l.open(ctx)
	if err != nil {
		return "", err
	}
	balancer, err := loadBalancer(ctx, elb.NewFromConfig(loaded), wanted.LoadBalancer)
	if err != nil {
		return "", err
	}
	api := ec2.NewFromConfig(loaded)
	found, err := serviceOf(ctx, api, balancer)
	if err == nil && found == nil {
		found, err = create(ctx, api, balancer, wanted)
	}
	if err != nil {
		return "", err
	}
	if err := mark(ctx, api, found, wanted.Owner); err != nil {
		return "", err
	}
	return found.name, admit(ctx, api, found.id, wanted.Principals)
}

// loadBalancer returns the ARN of a load balancer that is active.
func loadBalancer(ctx context.Context, api *elb.Client, name string) (string, error) {
	answer, err := api.DescribeLoadBalancers(ctx, &elb.DescribeLoadBalancersInput{Names: []string{name}})
	if err != nil {
		return "", fmt.Errorf("looking for load balancer %s: %w", name, said(err))
	}
	if len(answer.LoadBalancers) == 0 || answer.LoadBalancers[0].LoadBalancerArn == nil {
		return "", fmt.Errorf("there is no load balancer %s in the management cluster's account", name)
	}
	balancer := answer.LoadBalancers[0]
	if balancer.State == nil || balancer.State.Code != elbtypes.LoadBalancerStateEnumActive {
		return "", fmt.Errorf("waiting for load balancer %s to become active", name)
	}
	return *balancer.LoadBalancerArn, nil
}

// serviceOf returns the endpoint service of a load balancer, of which there can be only one; nil for none.
func serviceOf(ctx context.Context, api *ec2.Client, balancer string) (*service, error) {
	var found *service
	err := eachService(ctx, api, nil, func(s types.ServiceConfiguration) {
		if slices.Contains(s.NetworkLoadBalancerArns, balancer) {
			found = of(&s)
		}
	})
	return found, err
}

func eachService(ctx context.Context, api *ec2.Client, filters []types.Filter, visit func(types.ServiceConfiguration)) error {
	pages := ec2.NewDescribeVpcEndpointServiceConfigurationsPaginator(api, &ec2.DescribeVpcEndpointServiceConfigurationsInput{Filters: filters})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("listing endpoint services: %w", said(err))
		}
		for _, s := range page.ServiceConfigurations {
			visit(s)
		}
	}
	return nil
}

func of(s *types.ServiceConfiguration) *service {
	found := &service{id: awssdk.ToString(s.ServiceId), name: awssdk.ToString(s.ServiceName)}
	for _, tag := range s.Tags {
		if awssdk.ToString(tag.Key) == ownerTag {
			found.owner = awssdk.ToString(tag.Value)
		}
	}
	return found
}

// create creates the endpoint service. With the same token, a repeated request returns the result of the first one,
// whose response was lost.
func create(ctx context.Context, api *ec2.Client, balancer string, wanted offer) (*service, error) {
	tags := []types.Tag{{Key: awssdk.String(ownerTag), Value: awssdk.String(wanted.Owner)}}
	for _, tag := range wanted.Tags {
		tags = append(tags, types.Tag{Key: awssdk.String(tag.Key), Value: awssdk.String(tag.Value)})
	}
	made, err := api.CreateVpcEndpointServiceConfiguration(ctx, &ec2.CreateVpcEndpointServiceConfigurationInput{
		AcceptanceRequired: awssdk.Bool(false), NetworkLoadBalancerArns: []string{balancer}, ClientToken: awssdk.String(wanted.Token),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeVpcEndpointService, Tags: tags}},
	})
	if err != nil {
		return nil, fmt.Errorf("making an endpoint service for load balancer %s: %w", wanted.LoadBalancer, said(err))
	}
	return of(made.ServiceConfiguration), nil
}

// mark tags an endpoint service that has no owner, because a user or upstream HyperShift created it.
func mark(ctx context.Context, api *ec2.Client, found *service, owner string) error {
	switch found.owner {
	case owner:
		return nil
	case "":
		_, err := api.CreateTags(ctx, &ec2.CreateTagsInput{
			Resources: []string{found.id}, Tags: []types.Tag{{Key: awssdk.String(ownerTag), Value: awssdk.String(owner)}},
		})
		if err != nil {
			return fmt.Errorf("marking endpoint service %s as the cluster's: %w", found.id, said(err))
		}
		return nil
	}
	return fmt.Errorf("endpoint service %s of this load balancer is marked as %s's: remove it, or its tag %s", found.id, found.owner, ownerTag)
}

// admit allows exactly the given principals to connect.
func admit(ctx context.Context, api *ec2.Client, id string, principals []string) error {
	var admitted []string
	pages := ec2.NewDescribeVpcEndpointServicePermissionsPaginator(api, &ec2.DescribeVpcEndpointServicePermissionsInput{ServiceId: &id})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("reading the allowed principals of endpoint service %s: %w", id, said(err))
		}
		for _, principal := range page.AllowedPrincipals {
			admitted = append(admitted, awssdk.ToString(principal.Principal))
		}
	}
	change := &ec2.ModifyVpcEndpointServicePermissionsInput{ServiceId: &id, AddAllowedPrincipals: without(principals, admitted), RemoveAllowedPrincipals: without(admitted, principals)}
	if len(change.AddAllowedPrincipals)+len(change.RemoveAllowedPrincipals) == 0 {
		return nil
	}
	if _, err := api.ModifyVpcEndpointServicePermissions(ctx, change); err != nil {
		return fmt.Errorf("setting the allowed principals of endpoint service %s: %w", id, said(err))
	}
	return nil
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

// said returns AWS's error code only, because the full message contains a request ID that changes with each attempt.
func said(err error) error {
	var answer smithy.APIError
	if errors.As(err, &answer) {
		return errors.New("AWS says " + answer.ErrorCode())
	}
	return errors.New("AWS did not answer, or the credentials of --aws-private-creds cannot be used")
}
