// SPDX-License-Identifier: Apache-2.0

package guestcomponents

import (
	"cmp"
	"context"

	appsv1 "k8s.io/api/apps/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/infra"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
	"github.com/openshift/hypershift/support/component"
)

// newTunnelAgent runs the agents through which API servers reach pods and Services. It is removed if the release does
// not have them, or if the control plane has no address for them.
func newTunnelAgent() *component.Component {
	return &component.Component{
		Name:      TunnelAgent,
		Manifests: folder(TunnelAgent),
		Enabled: func(_ context.Context, scope *component.Scope) (bool, error) {
			_, has := scope.Images.ComponentImage(kubeapiserver.TunnelImage)
			return has && tunnelled(scope.HCP), nil
		},
		Adapters: map[string]component.Adapter{
			"daemonset.yaml": component.Adapt(func(_ context.Context, scope *component.Scope, set *appsv1.DaemonSet) error {
				container := &set.Spec.Template.Spec.Containers[0]
				container.Args = append(container.Args,
					"--server-name="+cmp.Or(infra.TunnelHost(scope.HCP), infra.TunnelService))
				for _, address := range scope.HCP.Status.TunnelAddresses {
					container.Args = append(container.Args, "--address="+address)
				}
				for _, cidr := range append(clusterNetworks(scope.HCP), serviceNetworks(scope.HCP)...) {
					container.Args = append(container.Args, "--cluster-network="+cidr)
				}
				return nil
			}),
		},
		Options: component.Options{Guest: true},
	}
}

// tunnelled reports whether the control plane publishes its end of the tunnel.
func tunnelled(hcp *hyperv1.HostedControlPlane) bool {
	return len(hcp.Status.TunnelAddresses) > 0
}
