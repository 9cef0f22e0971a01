// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/managementnetwork"
)

//go:embed manifests
var manifests embed.FS

// providerTag is the placeholder for the provider's image in its manifest.
const providerTag = "cluster-api-provider-maas"

// image returns the cluster's annotation, the operator's setting, or the in-tree provider, in this order.
func (p *Platform) image(cluster platform.Cluster) string {
	return cmp.Or(cluster.HostedCluster.Annotations[hyperv1.ClusterAPIProviderMAASImage], p.providerImage, cluster.OperatorImage)
}

// Provider returns one provider for the hosted control plane namespace. It returns nil without credentials, since the
// provider would only crash.
func (p *Platform) Provider(cluster platform.Cluster) *component.Component {
	if cluster.CredentialsHash == "" {
		return nil
	}
	files, _ := fs.Sub(manifests, "manifests")
	return &component.Component{
		Name:      platform.ProviderName,
		Manifests: files,
		Images:    map[string]string{providerTag: p.image(cluster)},
		Adapters: map[string]component.Adapter{
			"deployment.yaml": component.Adapt(func(_ context.Context, _ *component.Scope, deployment *appsv1.Deployment) error {
				p.adapt(&deployment.Spec.Template.Spec, cluster)
				return nil
			}),
			// It is not known how a third-party provider serves its metrics.
			"service.yaml":        component.When(func(*component.Scope) bool { return !p.foreign(cluster) }),
			"servicemonitor.yaml": component.When(func(*component.Scope) bool { return !p.foreign(cluster) }),
			"role.yaml": component.Adapt(func(_ context.Context, scope *component.Scope, role *rbacv1.Role) error {
				p.adaptRole(role, cluster, scope.HCP.Spec.InfraID)
				return nil
			}),
		},
		Options: component.Options{ManagementAccess: true, Singleton: true, UserCAs: true, Held: true},
	}
}

// adapt sets where the credentials are, and which addresses a MAAS may have.
func (p *Platform) adapt(pod *corev1.PodSpec, cluster platform.Cluster) {
	container := &pod.Containers[0]
	set := func(name, value string) {
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
	}
	if p.foreign(cluster) {
		adaptForeign(pod, thirdPartyOf(p.image(cluster)), mirrorName(cluster.HostedCluster))
		addNamespaceProxy(pod, cluster.OperatorImage)
	} else {
		// The provider reads the Secret itself, and notices a change without a restart.
		set("MAAS_CREDENTIALS_SECRET", p.kept(cluster).Name)
		set("MAAS_CREDENTIALS_NAMESPACE", p.namespace)
		managementnetwork.Mount(pod)
	}
	set(maas.EnvAllowCIDRs, joined(p.guard.Allow))
	set(maas.EnvRefuseCIDRs, joined(p.guard.Refuse))
	if p.own != nil && p.foreign(cluster) {
		// The provider's NetworkPolicy already blocks pods and Services. The provider must reach the API server, but
		// must not call it as the MAAS of a tenant.
		set(maas.EnvRefuseAddresses, joined(p.own.API()))
	}
	container.Env = append(container.Env, p.logEnv...)
}

// adaptRole allows the provider to read its kubeconfigs. Access to user-data is granted with each Secret of a NodePool.
// A third-party provider gets broad rights, because the Secrets and kinds that it uses are unknown.
func (p *Platform) adaptRole(role *rbacv1.Role, cluster platform.Cluster, infraID string) {
	if p.foreign(cluster) {
		role.Rules = append(role.Rules,
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps", "events"}, Verbs: []string{rbacv1.VerbAll}},
			rbacv1.PolicyRule{APIGroups: foreignGroups, Resources: []string{rbacv1.ResourceAll}, Verbs: []string{rbacv1.VerbAll}})
		return
	}
	role.Rules = append(role.Rules, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"},
		ResourceNames: []string{hosted.ProviderKubeconfig(infraID), hosted.ClusterAPIKubeconfig(infraID)},
	})
}

func joined[T fmt.Stringer](values []T) string {
	texts := make([]string, 0, len(values))
	for _, value := range values {
		texts = append(texts, value.String())
	}
	return strings.Join(texts, ",")
}
