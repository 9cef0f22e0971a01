// SPDX-License-Identifier: Apache-2.0

// Package guestcomponents lists the components of the Kubernetes distribution that run on the nodes of the guest. The
// hosted-cluster-config-operator rolls them out like the components of the control plane. A release counts as rolled
// out only when they are.
package guestcomponents

import (
	"embed"
	"io/fs"

	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubecontrollermanager"
	"github.com/openshift/hypershift/support/component"
)

//go:embed manifests
var manifests embed.FS

// Names of the components, of their images in the payload and of their workloads in the namespace kube-system.
const (
	kubeProxy   = "kube-proxy"
	nodeNetwork = "node-network"
	// flannel is a container of node-network if the payload has its image.
	flannel = "flannel"
	coreDNS = "coredns"
)

// TunnelAgent is the name of the component that connects nodes with the API servers.
const TunnelAgent = "tunnel-agent"

// Kubernetes lists the components.
func Kubernetes() []*component.Component {
	return []*component.Component{newKubeProxy(), newNodeNetwork(), newTunnelAgent(), newCoreDNS(), newMetricsServer()}
}

// OnNodes returns the names of all components.
func OnNodes() []string {
	var names []string
	for _, c := range Kubernetes() {
		names = append(names, c.Name)
	}
	return names
}

// Wanted returns the names of the components that a release waits for. It does not wait for the agents of the tunnel
// and for metrics-server: a cluster without them works as well as before it had them.
func Wanted(hcp *hyperv1.HostedControlPlane) []string {
	if kubecontrollermanager.AllocatesNodeCIDRs(hcp) {
		return []string{coreDNS, kubeProxy, nodeNetwork}
	}
	return []string{coreDNS, kubeProxy}
}

// addons returns the settings of the cluster for its components; zero if it has none.
func addons(hcp *hyperv1.HostedControlPlane) hyperv1.AddonsSpec {
	return ptr.Deref(hcp.Spec.Addons, hyperv1.AddonsSpec{})
}

func folder(name string) fs.FS {
	files, _ := fs.Sub(manifests, "manifests/"+name)
	return files
}
