// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/finalizer"
)

// operatorFinalizer is on an AWSEndpointService from before its endpoint service is created until the endpoint service
// is deleted. Upstream HyperShift uses the same finalizer.
const operatorFinalizer = "hypershift.openshift.io/hypershift-operator-finalizer"

// offer ensures the endpoint service of a load balancer. The operator creates it if it has access to the management
// cluster's account; otherwise the condition says what the user must create. name is empty if it is unknown.
func (p *Platform) offer(ctx context.Context, c client.Client, cluster platform.Cluster, service *hyperv1.AWSEndpointService) (
	name string, told metav1.Condition, again time.Duration, err error,
) {
	if !p.link.configured() {
		return "", askedFor(cluster.HostedCluster, service), 0, nil
	}
	if why, err := foreign(ctx, c, service); err != nil || why != "" {
		return "", unavailable(why), failedFor, err
	}
	if err := finalizer.Add(ctx, c, service, operatorFinalizer, nil); err != nil {
		return "", metav1.Condition{}, 0, err
	}
	wanted := wantedOffer(cluster.HostedCluster, service)
	name, again, failure := p.link.looks.once(wanted.Owner, wanted, func() (string, error) { return p.link.make(ctx, wanted) })
	if failure != nil {
		return "", unavailable(failure.Error()), again, nil
	}
	return name, condition.True(string(hyperv1.AWSEndpointServiceAvailable), hyperv1.AWSSuccessReason, hyperv1.AllIsWellMessage), again, nil
}

func unavailable(why string) metav1.Condition {
	return condition.False(string(hyperv1.AWSEndpointServiceAvailable), hyperv1.AWSErrorReason, why)
}

// askedFor reports whether a user has created the endpoint service of a load balancer, if the operator has no access to
// its account.
func askedFor(hc *hyperv1.HostedCluster, service *hyperv1.AWSEndpointService) metav1.Condition {
	if service.Status.EndpointServiceName != "" {
		return condition.True(string(hyperv1.AWSEndpointServiceAvailable), hyperv1.AWSSuccessReason, hyperv1.AllIsWellMessage)
	}
	return unavailable(fmt.Sprintf(
		"create an endpoint service for the network load balancer %s that accepts connections of %s automatically, "+
			"and write its name into status.endpointServiceName of AWSEndpointService %s/%s",
		service.Spec.NetworkLoadBalancerName, strings.Join(principals(hc), ", "), service.Namespace, service.Name))
}

// principals returns the roles that may connect: the control-plane-operator's, and those that the cluster names.
func principals(hc *hyperv1.HostedCluster) []string {
	return append([]string{withoutPath(spec(hc).RolesRef.ControlPlaneOperatorARN)}, spec(hc).AdditionalAllowedPrincipals...)
}

// foreign rejects a load balancer that belongs to no Service in the namespace. Otherwise a tenant could connect its
// nodes to another cluster's load balancer.
func foreign(ctx context.Context, c client.Reader, service *hyperv1.AWSEndpointService) (string, error) {
	services := &corev1.ServiceList{}
	if err := c.List(ctx, services, client.InNamespace(service.Namespace)); err != nil {
		return "", fmt.Errorf("listing Services of namespace %s: %w", service.Namespace, err)
	}
	for _, s := range services.Items {
		for _, ingress := range s.Status.LoadBalancer.Ingress {
			// AWS derives the host name from the load balancer's name: name-0123456789abcdef.elb.eu-west-1.amazonaws.com.
			if rest, ours := strings.CutPrefix(ingress.Hostname, service.Spec.NetworkLoadBalancerName+"-"); ours && !strings.Contains(before(rest, "."), "-") {
				return "", nil
			}
		}
	}
	return fmt.Sprintf("no Service of namespace %s has the load balancer %s", service.Namespace, service.Spec.NetworkLoadBalancerName), nil
}

func before(text, mark string) string {
	first, _, _ := strings.Cut(text, mark)
	return first
}

func wantedOffer(hc *hyperv1.HostedCluster, service *hyperv1.AWSEndpointService) offer {
	may := principals(hc)
	slices.Sort(may)
	token := sha256.Sum256([]byte(string(service.UID) + "/" + service.Status.EndpointServiceName))
	return offer{
		Owner: owner(hc, service), Token: hex.EncodeToString(token[:])[:32], LoadBalancer: service.Spec.NetworkLoadBalancerName,
		Principals: slices.Compact(may), Tags: service.Spec.ResourceTags,
	}
}

// owner identifies an endpoint service in an AWS account that several clusters and management clusters may use.
func owner(hc *hyperv1.HostedCluster, service *hyperv1.AWSEndpointService) string {
	return hc.Spec.ClusterID + "/" + service.Namespace + "/" + service.Name
}

// releaseDeleted releases the services that the control-plane-operator deletes, for example if a cluster is no longer
// private.
func (p *Platform) releaseDeleted(ctx context.Context, c client.Client, cluster platform.Cluster, services []hyperv1.AWSEndpointService) error {
	var failures []error
	for i := range services {
		if !services[i].DeletionTimestamp.IsZero() {
			_, err := p.release(ctx, c, cluster, &services[i])
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// release deletes the endpoint service that the operator created, and then removes the operator's finalizer. why says
// what blocks the deletion.
func (p *Platform) release(ctx context.Context, c client.Client, cluster platform.Cluster, service *hyperv1.AWSEndpointService) (why string, err error) {
	if !controllerutil.ContainsFinalizer(service, operatorFinalizer) {
		return "", nil
	}
	mine := owner(cluster.HostedCluster, service)
	if !p.link.configured() {
		return fmt.Sprintf(": the operator no longer has access to delete its endpoint service; run `hypershift install` with "+
			"--private-platform AWS, or delete the endpoint service with the tag %s=%s by hand and then the finalizer %s", ownerTag, mine, operatorFinalizer), nil
	}
	_, _, failure := p.link.looks.once("removal of "+mine, nil, func() (string, error) {
		waitsFor, err := p.link.remove(ctx, mine)
		if err == nil && waitsFor != "" {
			err = errors.New(waitsFor)
		}
		return "", err
	})
	if why := sentence(failure); why != "" {
		return ": " + why, nil
	}
	p.link.looks.forget(mine)
	p.link.looks.forget("removal of " + mine)
	return "", finalizer.Remove(ctx, c, service, operatorFinalizer)
}

// sentence returns the text of an error; empty for nil.
func sentence(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
