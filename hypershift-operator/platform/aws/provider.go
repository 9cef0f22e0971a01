// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"cmp"
	"context"
	"embed"
	"io/fs"
	"strings"

	"github.com/blang/semver/v4"
	appsv1 "k8s.io/api/apps/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/component"
)

//go:embed manifests
var manifests embed.FS

const (
	// providerTag is the payload's image of the provider.
	providerTag = "aws-cluster-api-controllers"
	// minterTag is the payload's image of the control-plane-operator, which also mints the tokens with which roles are
	// assumed.
	minterTag = "hypershift"
	// own is the prefix of the image tags for payloads that do not contain these images.
	own = "own-"
	// publishedImage is the provider image that its project publishes, for such payloads.
	publishedImage = "registry.k8s.io/cluster-api-aws/cluster-api-aws-controller:v2.13.0"
	// firstROSA is the first minor version of OpenShift 4 whose provider has the feature gate ROSA, as in upstream
	// HyperShift.
	firstROSA = 16
	// tokenFolder is the directory of the token of the hosted cluster's service account, which the minter writes.
	tokenFolder = "/var/run/secrets/openshift/serviceaccount"
)

// Provider returns one provider for the hosted control plane namespace. It assumes the role for node pool management
// with a token of the hosted cluster, which its second container mints. AWS trusts the hosted cluster's issuer.
func (p *Platform) Provider(cluster platform.Cluster) *component.Component {
	files, _ := fs.Sub(manifests, "manifests")
	return &component.Component{
		Name:      platform.ProviderName,
		Manifests: files,
		Images:    p.images(cluster),
		Adapters: map[string]component.Adapter{
			"deployment.yaml": component.Adapt(func(_ context.Context, scope *component.Scope, deployment *appsv1.Deployment) error {
				chooseImages(scope, deployment, p.images(cluster))
				gateFeatures(scope.Version, deployment)
				return nil
			}),
		},
		Options: component.Options{ManagementAccess: true, Singleton: true, UserCAs: true, Held: true},
	}
}

// gateFeatures removes the feature gate ROSA for providers that do not know it, because they would not start.
func gateFeatures(version string, deployment *appsv1.Deployment) {
	v, err := semver.ParseTolerant(version)
	if err != nil || v.Major != 4 || v.Minor >= firstROSA {
		return
	}
	manager := &deployment.Spec.Template.Spec.Containers[0]
	for i, arg := range manager.Args {
		manager.Args[i] = strings.TrimSuffix(arg, ",ROSA=false")
	}
}

// images returns the configured images, and the defaults for payloads that contain none.
func (p *Platform) images(cluster platform.Cluster) map[string]string {
	annotations := cluster.HostedCluster.Annotations
	images := map[string]string{own + providerTag: publishedImage, own + minterTag: cluster.OperatorImage}
	if chosen := cmp.Or(annotations[hyperv1.ClusterAPIProviderAWSImage], p.providerImage); chosen != "" {
		images[providerTag] = chosen
	}
	if chosen := annotations[hyperv1.ControlPlaneOperatorImageAnnotation]; chosen != "" {
		images[minterTag] = chosen
	}
	return images
}

// chooseImages uses the default image if neither the payload nor the configuration has one.
func chooseImages(scope *component.Scope, deployment *appsv1.Deployment, chosen map[string]string) {
	containers := deployment.Spec.Template.Spec.Containers
	for i := range containers {
		_, carried := scope.Images.ComponentImage(containers[i].Image)
		if _, named := chosen[containers[i].Image]; !carried && !named {
			containers[i].Image = own + containers[i].Image
		}
	}
}
