// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/finalizer"
	"github.com/openshift/hypershift/support/upsert"
)

// payloadFinalizer is the control-plane-operator's finalizer. That operator removes the endpoint and its DNS names from
// the network of the nodes.
const payloadFinalizer = "hypershift.openshift.io/control-plane-operator-finalizer"

// mostSubnets is the maximum number of subnets that the API accepts.
const mostSubnets = 10

// private reports whether nodes reach their control plane through an endpoint.
func private(hc *hyperv1.HostedCluster) bool {
	access := spec(hc).EndpointAccess
	return access == hyperv1.Private || access == hyperv1.PublicAndPrivate
}

// Connect updates the AWSEndpointServices that the payload's control-plane-operator created. It sets the subnets of all
// pools, in which that operator creates endpoints, and the endpoint service that these connect to. It returns a summary
// of their progress.
func (p *Platform) Connect(ctx context.Context, c client.Client, cluster platform.Cluster) (platform.Connection, error) {
	services, err := endpointServices(ctx, c, cluster)
	if err != nil {
		return platform.Connection{}, err
	}
	failures := []error{p.releaseDeleted(ctx, c, cluster, services)}
	if !private(cluster.HostedCluster) {
		gone := []hyperv1.ConditionType{hyperv1.AWSEndpointServiceAvailable, hyperv1.AWSEndpointAvailable}
		return platform.Connection{Gone: gone}, errors.Join(failures...)
	}
	subnets, err := endpointSubnets(cluster.NodePools)
	if err != nil {
		return platform.Connection{}, err
	}
	var connection platform.Connection
	for i := range services {
		service := &services[i]
		if !service.DeletionTimestamp.IsZero() {
			continue
		}
		name, told, again, err := p.offer(ctx, c, cluster, service)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if again > 0 && (connection.CheckAgain == 0 || again < connection.CheckAgain) {
			connection.CheckAgain = again
		}
		failures = append(failures,
			upsert.Patch(ctx, c, service, func() { service.Spec.SubnetIDs = subnets }),
			upsert.StatusLatest(ctx, c, service, func() {
				service.Status.EndpointServiceName = cmp.Or(name, service.Status.EndpointServiceName)
				meta.SetStatusCondition(&service.Status.Conditions, told)
			}),
		)
	}
	connection.Conditions = []metav1.Condition{sumUp(services, hyperv1.AWSEndpointServiceAvailable), sumUp(services, hyperv1.AWSEndpointAvailable)}
	return connection, errors.Join(failures...)
}

// withoutPath returns a role ARN without its path, which is the format of PrivateLink's allowed principals.
func withoutPath(role string) string {
	account, path, _ := strings.Cut(role, ":role/")
	return account + ":role/" + path[strings.LastIndex(path, "/")+1:]
}

func endpointServices(ctx context.Context, c client.Reader, cluster platform.Cluster) ([]hyperv1.AWSEndpointService, error) {
	list := &hyperv1.AWSEndpointServiceList{}
	if err := c.List(ctx, list, client.InNamespace(cluster.Namespace)); err != nil {
		return nil, fmt.Errorf("listing AWSEndpointServices of namespace %s: %w", cluster.Namespace, err)
	}
	slices.SortFunc(list.Items, func(a, b hyperv1.AWSEndpointService) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// endpointSubnets returns the subnets of all pools, in which endpoints are created.
func endpointSubnets(pools []hyperv1.NodePool) ([]string, error) {
	subnets := subnetsOf(pools)
	if len(subnets) > mostSubnets {
		return nil, fmt.Errorf("the NodePools of the cluster are in %d subnets, but an endpoint of AWS PrivateLink can be in %d; "+
			"use fewer subnets", len(subnets), mostSubnets)
	}
	return subnets, nil
}

// subnetsOf returns the subnets that the pools name by ID, sorted and without duplicates.
func subnetsOf(pools []hyperv1.NodePool) []string {
	var subnets []string
	for _, pool := range pools {
		if aws := pool.Spec.Platform.AWS; aws != nil && aws.Subnet.ID != nil {
			subnets = append(subnets, *aws.Subnet.ID)
		}
	}
	slices.Sort(subnets)
	return slices.Compact(subnets)
}

// sumUp combines the conditions of all AWSEndpointServices into one.
func sumUp(services []hyperv1.AWSEndpointService, conditionType hyperv1.ConditionType) metav1.Condition {
	var wrong, waiting []string
	for _, service := range services {
		switch c := meta.FindStatusCondition(service.Status.Conditions, string(conditionType)); {
		case c == nil || c.Status == metav1.ConditionUnknown:
			waiting = append(waiting, service.Name)
		case c.Status == metav1.ConditionFalse:
			wrong = append(wrong, service.Name+": "+c.Message)
		}
	}
	switch {
	case len(services) == 0:
		return condition.Unknown(string(conditionType), hyperv1.StatusUnknownReason, "The control-plane-operator has not asked for an endpoint yet")
	case len(wrong) > 0:
		return condition.False(string(conditionType), hyperv1.AWSErrorReason, "AWSEndpointService "+strings.Join(wrong, "; "))
	case len(waiting) > 0:
		return condition.Unknown(string(conditionType), hyperv1.StatusUnknownReason, "Nothing is known yet of AWSEndpointService "+strings.Join(waiting, ", "))
	}
	return condition.True(string(conditionType), hyperv1.AWSSuccessReason, hyperv1.AllIsWellMessage)
}

// Disconnect deletes the AWSEndpointServices while the control-plane-operator still runs, because that operator cleans
// up the network of the nodes. If the operator can no longer do that, Disconnect removes its finalizer.
func (p *Platform) Disconnect(ctx context.Context, c client.Client, cluster platform.Cluster) (string, error) {
	services, err := endpointServices(ctx, c, cluster)
	if err != nil {
		return "", err
	}
	var waitsFor []string
	for i := range services {
		service := &services[i]
		if service.DeletionTimestamp.IsZero() {
			err = errors.Join(err, client.IgnoreNotFound(c.Delete(ctx, service)))
		} else if cluster.ControlPlane == nil || !known(cluster.HostedCluster) {
			err = errors.Join(err, finalizer.Remove(ctx, c, service, payloadFinalizer))
		}
		why, failure := p.release(ctx, c, cluster, service)
		err = errors.Join(err, failure)
		waitsFor = append(waitsFor, stays(service)+why)
	}
	if len(waitsFor) == 0 || err != nil {
		return "", err
	}
	return "Waiting for AWSEndpointService " + strings.Join(waitsFor, "; "), nil
}

// stays describes which part of a service still has to be deleted.
func stays(service *hyperv1.AWSEndpointService) string {
	why := service.Name
	if service.Status.EndpointID != "" {
		why += ", endpoint " + service.Status.EndpointID
	}
	if c := meta.FindStatusCondition(service.Status.Conditions, string(hyperv1.AWSEndpointAvailable)); c != nil && c.Status == metav1.ConditionFalse {
		why += ": " + c.Message
	}
	return why
}
