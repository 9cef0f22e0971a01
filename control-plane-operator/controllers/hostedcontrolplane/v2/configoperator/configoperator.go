// SPDX-License-Identifier: Apache-2.0

// Package configoperator is the component that runs the hosted-cluster-config-operator, which configures the guest
// cluster through its API.
package configoperator

import (
	"context"
	"embed"
	"io/fs"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/hypershift/support/component"
)

// Name is the component's name.
const Name = "hosted-cluster-config-operator"

//go:embed manifests
var manifests embed.FS

// Config holds the settings that the control-plane-operator passes on.
type Config struct {
	// Image is the operator's own image.
	Image string
	// RegistryOverrides is the flag of the same name, passed on unchanged.
	RegistryOverrides string
	// ImageOverrides is the environment variable OPENSHIFT_IMG_OVERRIDES, passed on unchanged.
	ImageOverrides string
	// Inherited are other environment variables that are passed on.
	Inherited []corev1.EnvVar
}

// New returns the component.
func New(config Config) *component.Component {
	files, _ := fs.Sub(manifests, "manifests")
	return &component.Component{
		Name:      Name,
		Manifests: files,
		Adapters:  map[string]component.Adapter{"deployment.yaml": component.Adapt(config.adapt)},
		Options:   component.Options{ManagementAccess: true, Singleton: true, UserCAs: true, WaitsInPod: true},
	}
}

func (config Config) adapt(_ context.Context, scope *component.Scope, deployment *appsv1.Deployment) error {
	var f component.Flags
	f.Set("initial-ca-file", "/etc/kubernetes/root-ca/ca.crt")
	f.Set("cluster-signer-ca-file", "/etc/kubernetes/cluster-signer-ca/ca.crt")
	f.Set("target-kubeconfig", "/etc/kubernetes/kubeconfig/kubeconfig")
	f.Set("namespace", "$(POD_NAMESPACE)")
	f.Set("platform-type", string(scope.HCP.Spec.Platform.Type))
	f.Set("hosted-control-plane", scope.HCP.Name)
	f.SetUnlessEmpty("registry-overrides", config.RegistryOverrides)

	container := &deployment.Spec.Template.Spec.Containers[0]
	container.Args = f
	env := func(name, value string) {
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
	}
	env("OPENSHIFT_RELEASE_VERSION", scope.Version)
	env("KUBERNETES_VERSION", scope.Version)
	env("OPERATE_ON_RELEASE_IMAGE", scope.HCP.Spec.ReleaseImage)
	env("OPENSHIFT_IMG_OVERRIDES", config.ImageOverrides)
	env("HOSTED_CLUSTER_CONFIG_OPERATOR_IMAGE", config.Image)
	container.Env = append(container.Env, config.Inherited...)
	return nil
}
