// SPDX-License-Identifier: Apache-2.0

package guestcomponents

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

const (
	proxyConfigKey = "config.conf"

	// Pods with client-go read the address of the API from these variables.
	apiHostVariable = "KUBERNETES_SERVICE_HOST"
	apiPortVariable = "KUBERNETES_SERVICE_PORT"
)

// reachAPI sets the published address for client-go's in-cluster configuration. This address is reachable before
// kube-proxy runs.
func reachAPI(hcp *hyperv1.HostedControlPlane, container *corev1.Container) {
	endpoint := hcp.Status.ControlPlaneEndpoint
	container.Env = append(container.Env,
		corev1.EnvVar{Name: apiHostVariable, Value: endpoint.Host},
		corev1.EnvVar{Name: apiPortVariable, Value: strconv.Itoa(int(endpoint.Port))},
	)
}

// ReachesAPI returns the host:port that reachAPI set for the pods of a template; empty for pods that use the kubernetes
// Service.
func ReachesAPI(template corev1.PodTemplateSpec) string {
	told := map[string]string{}
	for _, container := range template.Spec.Containers {
		for _, variable := range container.Env {
			told[variable.Name] = variable.Value
		}
	}
	if told[apiHostVariable] == "" {
		return ""
	}
	return net.JoinHostPort(told[apiHostVariable], told[apiPortVariable])
}

func clusterNetworks(hcp *hyperv1.HostedControlPlane) []string {
	var cidrs []string
	for _, entry := range hcp.Spec.Networking.ClusterNetwork {
		cidrs = append(cidrs, entry.CIDR.String())
	}
	return cidrs
}

func serviceNetworks(hcp *hyperv1.HostedControlPlane) []string {
	var cidrs []string
	for _, entry := range hcp.Spec.Networking.ServiceNetwork {
		cidrs = append(cidrs, entry.CIDR.String())
	}
	return cidrs
}

func newKubeProxy() *component.Component {
	return &component.Component{
		Name:      kubeProxy,
		Manifests: folder(kubeProxy),
		Adapters: map[string]component.Adapter{
			"30-config.yaml": component.Adapt(func(_ context.Context, scope *component.Scope, cm *corev1.ConfigMap) error {
				config, err := proxyConfig(scope.HCP)
				cm.Data = map[string]string{proxyConfigKey: config}
				return err
			}),
			"daemonset.yaml": component.Adapt(func(_ context.Context, scope *component.Scope, set *appsv1.DaemonSet) error {
				reachAPI(scope.HCP, &set.Spec.Template.Spec.Containers[0])
				return nil
			}),
		},
		Options: component.Options{Guest: true},
	}
}

// fields is a part of KubeProxyConfiguration. Its Go types would need an additional dependency.
type fields map[string]any

// proxyConfig returns the configuration of kube-proxy. It keeps the connection tracking limits of the machine's image:
// a pod must not change limits of the host, and some machines do not allow it.
func proxyConfig(hcp *hyperv1.HostedControlPlane) (string, error) {
	raw, err := yaml.Marshal(fields{
		"apiVersion":         "kubeproxy.config.k8s.io/v1alpha1",
		"kind":               "KubeProxyConfiguration",
		"mode":               string(cmp.Or(addons(hcp).KubeProxyMode, "iptables")),
		"clusterCIDR":        strings.Join(clusterNetworks(hcp), ","),
		"bindAddress":        "0.0.0.0",
		"healthzBindAddress": "0.0.0.0:10256",
		"conntrack":          fields{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
	})
	if err != nil {
		return "", fmt.Errorf("rendering the configuration of kube-proxy: %w", err)
	}
	return string(raw), nil
}

// newNodeNetwork runs the default network, which needs pod CIDRs from the control plane. It is removed if nodes do not
// get them, since then the user installs a network plugin.
func newNodeNetwork() *component.Component {
	return &component.Component{
		Name:      nodeNetwork,
		Manifests: folder(nodeNetwork),
		Enabled: func(_ context.Context, scope *component.Scope) (bool, error) {
			return slices.Contains(Wanted(scope.HCP), nodeNetwork), nil
		},
		Adapters: map[string]component.Adapter{
			"20-clusterrole.yaml":    component.Adapt(adaptFlannelRole),
			"40-flannel-config.yaml": component.Adapt(adaptFlannelConfig).When(hasFlannel),
			"daemonset.yaml":         component.Adapt(adaptNodeNetwork),
		},
		Options: component.Options{Guest: true},
	}
}
