// SPDX-License-Identifier: Apache-2.0

package guestcomponents

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/component"
)

const (
	// dnsAddressIndex is the index of the DNS Service's address in the service network. Kubelets are configured with the
	// same address.
	dnsAddressIndex = 10
	// criticalOnly is the taint of nodes that are reserved for critical components, such as DNS.
	criticalOnly = "CriticalAddonsOnly"
	// passingTaints is the prefix of taints that the control plane sets on a cordoned or unhealthy node and removes when
	// it recovers.
	passingTaints = "node.kubernetes.io/"
)

func newCoreDNS() *component.Component {
	return &component.Component{
		Name:      coreDNS,
		Manifests: folder(coreDNS),
		Adapters: map[string]component.Adapter{
			"50-service.yaml":          component.Adapt(adaptDNSService),
			"60-disruptionbudget.yaml": component.When(func(scope *component.Scope) bool { return dnsReplicas(scope) > 1 }),
			"deployment.yaml":          component.Adapt(adaptCoreDNS),
		},
		Options: component.Options{Guest: true},
	}
}

func adaptDNSService(_ context.Context, scope *component.Scope, service *corev1.Service) error {
	addresses, err := dnsAddresses(scope.HCP)
	if err != nil {
		return err
	}
	service.Spec.ClusterIP, service.Spec.ClusterIPs = addresses[0], addresses
	if len(addresses) > 1 {
		service.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
	}
	return nil
}

func adaptCoreDNS(_ context.Context, scope *component.Scope, deployment *appsv1.Deployment) error {
	deployment.Spec.Replicas = ptr.To(dnsReplicas(scope))
	deployment.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: criticalOnly, Operator: corev1.TolerationOpExists}}
	return nil
}

// dnsAddresses returns the tenth address of each service network.
func dnsAddresses(hcp *hyperv1.HostedControlPlane) ([]string, error) {
	var addresses []string
	for _, network := range hcp.Spec.Networking.ServiceNetwork {
		address, err := pki.NthAddress(network.CIDR.String(), dnsAddressIndex)
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, net.ParseIP(address).String())
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("HostedControlPlane %s has no service network", hcp.Name)
	}
	return addresses, nil
}

func infrastructureReplicas(hcp *hyperv1.HostedControlPlane) int32 {
	if hcp.Spec.InfrastructureAvailabilityPolicy == hyperv1.HighlyAvailable {
		return 2
	}
	return 1
}

// dnsReplicas returns the replicas for the availability policy, but no more than there are nodes for DNS. Two replicas
// on one node would both stay there when the next node joins. Also, a disruption budget for two replicas would block
// the drain of the only node.
func dnsReplicas(scope *component.Scope) int32 {
	replicas := int32(0)
	for i := range scope.GuestNodes {
		if runsDNS(&scope.GuestNodes[i]) {
			replicas++
		}
	}
	return max(1, min(replicas, infrastructureReplicas(scope.HCP)))
}

// runsDNS reports whether DNS may run on a node. It ignores the taints of cordoned and unhealthy nodes: such a node
// recovers, or is deleted.
func runsDNS(node *corev1.Node) bool {
	return !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && taint.Key != criticalOnly && !strings.HasPrefix(taint.Key, passingTaints)
	})
}
