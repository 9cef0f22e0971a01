// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"embed"
	"io/fs"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/component"
)

//go:embed manifests
var manifests embed.FS

// providerTag is the provider's image in an OpenShift payload. A Kubernetes payload has none.
const providerTag = "cluster-api-provider-kubevirt"

// Provider returns one provider for the hosted control plane namespace. Its image is the one that the cluster names,
// that the installer chose, or that the payload contains. It returns nil while required credentials are missing, since
// the provider would only fail.
func (p *Platform) Provider(cluster platform.Cluster) *component.Component {
	if external(cluster.HostedCluster) != nil && cluster.CredentialsHash == "" {
		return nil
	}
	files, _ := fs.Sub(manifests, "manifests")
	provider := &component.Component{
		Name:      platform.ProviderName,
		Manifests: files,
		Options:   component.Options{ManagementAccess: true, Singleton: true, UserCAs: true, Held: true},
	}
	for _, image := range []string{cluster.HostedCluster.Annotations[hyperv1.ClusterAPIKubeVirtProviderImage], p.providerImage} {
		if image != "" {
			provider.Images = map[string]string{providerTag: image}
			break
		}
	}
	return provider
}
