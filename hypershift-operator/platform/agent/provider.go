// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"embed"
	"io/fs"

	appsv1 "k8s.io/api/apps/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/component"
)

//go:embed manifests
var manifests embed.FS

const (
	// providerTag is the placeholder for the provider's image in its manifest.
	providerTag = "cluster-api-provider-agent"
	// namespaceArg is the provider's flag for the namespace of its agents.
	namespaceArg = "--agent-namespace"
	// publishedImage is the provider image that its project publishes, used unless a different image is configured.
	publishedImage = "quay.io/edge-infrastructure/cluster-api-provider-agent:latest"
)

func (p *Platform) image(cluster platform.Cluster) string {
	if image := cluster.HostedCluster.Annotations[hyperv1.ClusterAPIAgentProviderImage]; image != "" {
		return image
	}
	if p.providerImage != "" {
		return p.providerImage
	}
	return publishedImage
}

// Provider returns one provider for the hosted control plane namespace. Its agents are in a different namespace.
func (p *Platform) Provider(cluster platform.Cluster) *component.Component {
	files, _ := fs.Sub(manifests, "manifests")
	return &component.Component{
		Name:      platform.ProviderName,
		Manifests: files,
		Images:    map[string]string{providerTag: p.image(cluster)},
		Adapters: map[string]component.Adapter{
			"deployment.yaml": component.Adapt(func(_ context.Context, _ *component.Scope, deployment *appsv1.Deployment) error {
				container := &deployment.Spec.Template.Spec.Containers[0]
				container.Args = append(container.Args, namespaceArg, agentNamespace(cluster.HostedCluster))
				return nil
			}),
		},
		Options: component.Options{ManagementAccess: true, Singleton: true, UserCAs: true, Held: true},
	}
}
