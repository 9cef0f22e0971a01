// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

const (
	// stillConnected is EC2's error code for an endpoint service that cannot be deleted yet, and alreadyGone the one for a
	// missing endpoint service.
	stillConnected = "ExistingVpcEndpointConnections"
	alreadyGone    = "InvalidVpcEndpointService.NotFound"
)

// remove deletes the endpoint services with the owner's tag. waitsFor says what blocks the deletion; it is empty if
// none is left.
func (l *privateLink) remove(ctx context.Context, owner string) (waitsFor string, err error) {
	ctx, cancel := l.looks.bound(ctx)
	defer cancel()
	loaded, err := l.open(ctx)
	if err != nil {
		return "", err
	}
	api := ec2.NewFromConfig(loaded)
	var ids []string
	filter := types.Filter{Name: awssdk.String("tag:" + ownerTag), Values: []string{owner}}
	err = eachService(ctx, api, []types.Filter{filter}, func(s types.ServiceConfiguration) {
		ids = append(ids, awssdk.ToString(s.ServiceId))
	})
	if err != nil || len(ids) == 0 {
		return "", err
	}
	answer, err := api.DeleteVpcEndpointServiceConfigurations(ctx, &ec2.DeleteVpcEndpointServiceConfigurationsInput{ServiceIds: ids})
	if err != nil {
		return "", fmt.Errorf("deleting endpoint service %s: %w", ids[0], said(err))
	}
	for _, item := range answer.Unsuccessful {
		id, code := awssdk.ToString(item.ResourceId), "no reason"
		if item.Error != nil {
			code = awssdk.ToString(item.Error.Code)
		}
		switch code {
		case alreadyGone:
		case stillConnected:
			return "endpoint service " + id + " has connections, which are being cut off", reject(ctx, api, id)
		default:
			return "", fmt.Errorf("deleting endpoint service %s: AWS says %s", id, code)
		}
	}
	return "", nil
}

// reject disconnects all connections of an endpoint service.
func reject(ctx context.Context, api *ec2.Client, id string) error {
	var connected []string
	pages := ec2.NewDescribeVpcEndpointConnectionsPaginator(api, &ec2.DescribeVpcEndpointConnectionsInput{
		Filters: []types.Filter{{Name: awssdk.String("service-id"), Values: []string{id}}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("listing connections of endpoint service %s: %w", id, said(err))
		}
		for _, connection := range page.VpcEndpointConnections {
			if holds(connection.VpcEndpointState) {
				connected = append(connected, awssdk.ToString(connection.VpcEndpointId))
			}
		}
	}
	if len(connected) == 0 {
		return nil
	}
	if _, err := api.RejectVpcEndpointConnections(ctx, &ec2.RejectVpcEndpointConnectionsInput{ServiceId: &id, VpcEndpointIds: connected}); err != nil {
		return fmt.Errorf("cutting off connections of endpoint service %s: %w", id, said(err))
	}
	return nil
}

// holds reports whether a connection blocks the deletion of its service. EC2 capitalizes the states differently than
// its API description does.
func holds(state types.State) bool {
	return slices.ContainsFunc([]types.State{types.StatePendingAcceptance, types.StatePending, types.StateAvailable}, func(s types.State) bool {
		return strings.EqualFold(string(s), string(state))
	})
}
