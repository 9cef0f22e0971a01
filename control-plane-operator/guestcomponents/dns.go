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
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/guestcomponents/dnssize"
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

	corefileKey = "Corefile"
	// nodesUpstreams begins the block of the Corefile that forwards to the name servers of the nodes.
	nodesUpstreams = "forward . /etc/resolv.conf {"
)

func newCoreDNS() *component.Component {
	return &component.Component{
		Name:      coreDNS,
		Manifests: folder(coreDNS),
		Adapters: map[string]component.Adapter{
			"40-config.yaml":           component.Adapt(adaptCorefile),
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

func adaptCoreDNS(ctx context.Context, scope *component.Scope, deployment *appsv1.Deployment) error {
	pod := &deployment.Spec.Template.Spec
	deployment.Spec.Replicas = ptr.To(dnsReplicas(scope))
	pod.Tolerations = []corev1.Toleration{{Key: criticalOnly, Operator: corev1.TolerationOpExists}}
	live := &appsv1.Deployment{}
	if err := scope.Guest.Client.Get(ctx, client.ObjectKeyFromObject(deployment), live); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Deployment %s: %w", client.ObjectKeyFromObject(deployment), err)
	}
	running := firstContainer(live)
	image, _ := scope.Images.ComponentImage(coreDNS)
	if running.Image == image && unsized(running) {
		return nil
	}
	resources := &pod.Containers[0].Resources
	request, limit := dnssize.Memory(len(scope.GuestNodes), running.Resources.Limits[corev1.ResourceMemory])
	resources.Requests[corev1.ResourceMemory], resources.Limits[corev1.ResourceMemory] = request, limit
	return nil
}

// unsized reports whether a container has the memory that the operator of version 0.1.0 gave it, for any number of
// nodes. Such pods keep their memory until their image changes, so that an upgrade of the operator restarts none.
func unsized(container corev1.Container) bool {
	return container.Resources.Requests.Memory().Cmp(resource.MustParse("50Mi")) == 0
}

func firstContainer(deployment *appsv1.Deployment) corev1.Container {
	for _, container := range deployment.Spec.Template.Spec.Containers {
		return container
	}
	return corev1.Container{}
}

func adaptCorefile(_ context.Context, scope *component.Scope, cm *corev1.ConfigMap) error {
	cm.Data[corefileKey] = corefile(cm.Data[corefileKey], addons(scope.HCP).DNS)
	return nil
}

// corefile adds the user's name servers to a Corefile. Without any it returns the Corefile as it is, since CoreDNS
// restarts when it changes.
func corefile(base string, dns hyperv1.DNSAddon) string {
	text := base
	if len(dns.Upstreams) > 0 {
		text = strings.Replace(text, nodesUpstreams, "forward . "+servers(dns.Upstreams)+" {", 1)
	}
	for _, stub := range dns.StubDomains {
		text += fmt.Sprintf("%s:53 {\n    errors\n    cache 30\n    forward . %s {\n        policy sequential\n    }\n}\n",
			stub.Domain, servers(stub.Servers))
	}
	return text
}

func servers(all []hyperv1.DNSServer) string {
	words := make([]string, 0, len(all))
	for _, server := range all {
		words = append(words, string(server))
	}
	return strings.Join(words, " ")
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

// dnsReplicas returns the replicas for the number of nodes and the availability policy, but no more than there are nodes
// for DNS. Two replicas on one node would both stay there when the next node joins. Also, a disruption budget for two
// replicas would block the drain of the only node.
func dnsReplicas(scope *component.Scope) int32 {
	usable := int32(0)
	for i := range scope.GuestNodes {
		if runsDNS(&scope.GuestNodes[i]) {
			usable++
		}
	}
	return max(1, min(usable, max(infrastructureReplicas(scope.HCP), dnssize.Replicas(len(scope.GuestNodes)))))
}

// runsDNS reports whether DNS may run on a node. It ignores the taints of cordoned and unhealthy nodes: such a node
// recovers, or is deleted.
func runsDNS(node *corev1.Node) bool {
	return !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && taint.Key != criticalOnly && !strings.HasPrefix(taint.Key, passingTaints)
	})
}
