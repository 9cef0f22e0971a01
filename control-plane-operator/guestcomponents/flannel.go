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
	flannelConfigKey  = "net-conf.json"
	flannelSubnetFile = "/run/flannel/subnet.env"
)

// flannelVolumes are the volumes of the manifest that only Flannel needs.
var flannelVolumes = []string{"flannel-config", "flannel-run", "xtables-lock"}

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
		pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool { return slices.Contains(flannelVolumes, v.Name) })
		pod.Containers[0].VolumeMounts = slices.DeleteFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
			return slices.Contains(flannelVolumes, m.Name)
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
		agent.Args = append(agent.Args, "--flannel-subnet-file="+flannelSubnetFile)
	}
	return nil
}

// adaptFlannelRole lets Flannel annotate its node and set the node's condition NetworkUnavailable.
func adaptFlannelRole(_ context.Context, scope *component.Scope, role *rbacv1.ClusterRole) error {
	if hasFlannel(scope) {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}})
	}
	return nil
}

func adaptFlannelConfig(_ context.Context, scope *component.Scope, cm *corev1.ConfigMap) error {
	config, err := flannelConfig(scope.HCP)
	cm.Data = map[string]string{flannelConfigKey: config}
	return err
}

// networkConfig is Flannel's network configuration.
type networkConfig struct {
	Network, IPv6Network   string `json:",omitempty"`
	EnableIPv4, EnableIPv6 bool
	Backend                struct{ Type string }
}

// flannelConfig returns Flannel's configuration for the cluster networks.
func flannelConfig(hcp *hyperv1.HostedControlPlane) (string, error) {
	config := networkConfig{}
	config.Backend.Type = "vxlan"
	for _, cidr := range clusterNetworks(hcp) {
		network, err := netip.ParsePrefix(cidr)
		if err != nil {
			return "", fmt.Errorf("rendering the configuration of Flannel: cluster network %q: %w", cidr, err)
		}
		if network.Addr().Is6() {
			config.IPv6Network, config.EnableIPv6 = cidr, true
		} else {
			config.Network, config.EnableIPv4 = cidr, true
		}
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("rendering the configuration of Flannel: %w", err)
	}
	return string(raw), nil
}
