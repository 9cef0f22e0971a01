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
	// providerTag is the payload's provider.
	providerTag = "aws-cluster-api-controllers"
	// minterTag is the payload's control-plane-operator, which also mints the tokens that roles are assumed with.
	minterTag = "hypershift"
	// own stands before the tags of images for payloads that have none of their own.
	own = "own-"
	// publishedImage is the provider that its project publishes, for such payloads.
	publishedImage = "registry.k8s.io/cluster-api-aws/cluster-api-aws-controller:v2.13.0"
	// firstROSA is the first minor version of OpenShift 4 whose provider has the feature gate ROSA, as the compatible product has it.
	firstROSA = 16
	// tokenFolder is where the minter puts the token of the guest's service account.
	tokenFolder = "/var/run/secrets/openshift/serviceaccount"
)

// Provider is one provider for the hosted namespace. It assumes the role of the pools' management with a token of the guest, which
// its second container mints: AWS trusts the guest's issuer.
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

// gateFeatures leaves out the gate of a feature that providers before do not know: they would not start.
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

// images are those that somebody chose, and those for payloads without.
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

// chooseImages takes ours where neither the payload nor anybody else has one.
func chooseImages(scope *component.Scope, deployment *appsv1.Deployment, chosen map[string]string) {
	containers := deployment.Spec.Template.Spec.Containers
	for i := range containers {
		_, carried := scope.Images.ComponentImage(containers[i].Image)
		if _, named := chosen[containers[i].Image]; !carried && !named {
			containers[i].Image = own + containers[i].Image
		}
	}
}
