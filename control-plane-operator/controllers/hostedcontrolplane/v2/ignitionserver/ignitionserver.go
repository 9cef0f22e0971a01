// SPDX-License-Identifier: Apache-2.0

// Package ignitionserver is the component that serves machines their configuration when they first boot.
package ignitionserver

import (
	"context"
	"embed"
	"io/fs"

	routev1 "github.com/openshift/api/route/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/infra"
	"github.com/openshift/hypershift/support/component"
)

// Name is the component's name.
const Name = "ignition-server"

const (
	disableAnnotation = hyperv1.DisableIgnitionServerAnnotation
	certDir           = "/var/secrets/ignition/serving-cert"
	guestKubeconfig   = "/var/secrets/guest/kubeconfig"
)

//go:embed manifests
var manifests embed.FS

// Config holds the settings that the control-plane-operator passes on.
type Config struct {
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
		Enabled:   enabled,
		Adapters: map[string]component.Adapter{
			"deployment.yaml": component.Adapt(config.adapt),
			"role.yaml":       component.Adapt(adaptRole),
			"pdb.yaml":        component.DisruptionBudget().When(component.OfSeveral),
			"service.yaml":    component.Adapt(adaptService),
			"route.yaml":      component.Adapt(adaptRoute).When(publishedBy(hyperv1.Route)),
		},
		Options: component.Options{ManagementAccess: true, MultiZone: true, UserCAs: true},
	}
}

func enabled(_ context.Context, scope *component.Scope) (bool, error) {
	_, disabled := scope.HCP.Annotations[disableAnnotation]
	_, published := infra.Strategy(scope.HCP, hyperv1.Ignition)
	return published && !disabled, nil
}

func publishedBy(strategy hyperv1.PublishingStrategyType) func(*component.Scope) bool {
	return func(scope *component.Scope) bool {
		s, ok := infra.Strategy(scope.HCP, hyperv1.Ignition)
		return ok && s.Type == strategy
	}
}

func (config Config) adapt(_ context.Context, scope *component.Scope, deployment *appsv1.Deployment) error {
	container := &deployment.Spec.Template.Spec.Containers[0]
	var f component.Flags
	f.Set("cert-file", certDir+"/tls.crt")
	f.Set("key-file", certDir+"/tls.key")
	f.Set("guest-kubeconfig", guestKubeconfig)
	f.SetUnlessEmpty("registry-overrides", config.RegistryOverrides)
	f.Set("platform", string(scope.HCP.Spec.Platform.Type))
	container.Args = f
	container.Env = append(container.Env, corev1.EnvVar{Name: "OPENSHIFT_IMG_OVERRIDES", Value: config.ImageOverrides})
	container.Env = append(container.Env, config.Inherited...)
	return nil
}

// adaptRole lets the server read the SSH key of nodes.
func adaptRole(_ context.Context, scope *component.Scope, role *rbacv1.Role) error {
	if key := scope.HCP.Spec.SSHKey.Name; key != "" {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{key}, Verbs: []string{"get"},
		})
	}
	return nil
}

// adaptService publishes the server directly: its certificate names the published host, so that no proxy is needed.
func adaptService(_ context.Context, scope *component.Scope, service *corev1.Service) error {
	service.Spec.Type = corev1.ServiceTypeClusterIP
	strategy, _ := infra.Strategy(scope.HCP, hyperv1.Ignition)
	if strategy.Type != hyperv1.NodePort {
		return nil
	}
	service.Spec.Type = corev1.ServiceTypeNodePort
	service.Spec.Ports[0].NodePort = strategy.NodePort.Port
	return nil
}

func adaptRoute(_ context.Context, scope *component.Scope, route *routev1.Route) error {
	infra.ShapeRoute(route, Name, scope.Infra.Ignition.Host)
	return nil
}
