// SPDX-License-Identifier: Apache-2.0

package guestcomponents

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

const (
	flannelConfigKey = "net-conf.json"
	// flannelPort is the UDP port of VXLAN between nodes.
	flannelPort = 8472
)

// flannelVolumes are the volumes of the manifest that only Flannel needs.
var flannelVolumes = []string{"flannel-config", "xtables-lock"}

// hasFlannel reports whether the payload has Flannel. Payloads of 0.1.0 do not.
func hasFlannel(scope *component.Scope) bool {
	_, ok := scope.Images.ComponentImage(flannel)
	return ok
}

// adaptNodeNetwork removes Flannel for a payload without it. The DaemonSet then equals the one of 0.1.0, so that an
// upgrade of the operator restarts no pod.
func adaptNodeNetwork(_ context.Context, scope *component.Scope, set *appsv1.DaemonSet) error {
	pod := &set.Spec.Template.Spec
	if !hasFlannel(scope) {
		pod.Containers = slices.DeleteFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == flannel })
		pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool {
			return slices.Contains(flannelVolumes, v.Name)
		})
	}
	for i := range pod.Containers {
		reachAPI(scope.HCP, &pod.Containers[i])
	}
	agent := &pod.Containers[0]
	for _, cidr := range clusterNetworks(scope.HCP) {
		agent.Args = append(agent.Args, "--cluster-network="+cidr)
	}
	if hasFlannel(scope) {
		agent.Args = append(agent.Args, "--flannel")
		return adaptFlannelArgs(scope.HCP, &pod.Containers[1])
	}
	return nil
}

// adaptFlannelArgs tells Flannel that the address of the node is one of IPv6, which it otherwise does not expect in a
// cluster of both families.
func adaptFlannelArgs(hcp *hyperv1.HostedControlPlane, container *corev1.Container) error {
	config, err := newNetworkConfig(hcp)
	if err != nil {
		return err
	}
	if config.EnableIPv4 && config.EnableIPv6 && clusterNetworks(hcp)[0] == config.IPv6Network {
		container.Args = append(container.Args, "--public-ipv6=$(HOST_IP)")
	}
	return nil
}

// adaptFlannelRole lets Flannel annotate its node and set the node's condition NetworkUnavailable.
func adaptFlannelRole(_ context.Context, scope *component.Scope, role *rbacv1.ClusterRole) error {
	if hasFlannel(scope) {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"},
		})
	}
	return nil
}

func adaptFlannelConfig(_ context.Context, scope *component.Scope, cm *corev1.ConfigMap) error {
	config, err := newNetworkConfig(scope.HCP)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("rendering the configuration of Flannel: %w", err)
	}
	cm.Data = map[string]string{flannelConfigKey: string(raw)}
	return nil
}

// networkConfig is Flannel's network configuration.
type networkConfig struct {
	Network, IPv6Network   string `json:",omitempty"`
	EnableIPv4, EnableIPv6 bool
	Backend                vxlan
}

// vxlan configures Flannel's backend VXLAN.
type vxlan struct {
	Type string
	// DirectRouting sends packets to nodes in the same layer 2 network without VXLAN.
	DirectRouting bool
	Port          int
}

// newNetworkConfig returns Flannel's configuration for the cluster networks.
func newNetworkConfig(hcp *hyperv1.HostedControlPlane) (networkConfig, error) {
	config := networkConfig{Backend: vxlan{Type: "vxlan", DirectRouting: true, Port: flannelPort}}
	for _, cidr := range clusterNetworks(hcp) {
		network, err := netip.ParsePrefix(cidr)
		if err != nil {
			return networkConfig{}, fmt.Errorf("rendering the configuration of Flannel: cluster network %q: %w", cidr, err)
		}
		if network.Addr().Is6() {
			config.IPv6Network, config.EnableIPv6 = cidr, true
		} else {
			config.Network, config.EnableIPv4 = cidr, true
		}
	}
	return config, nil
}
