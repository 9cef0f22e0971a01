package maas

import (
	"context"
	"embed"
	"io/fs"
	"net/netip"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/maas"
)

//go:embed manifests
var manifests embed.FS

// providerTag stands for the provider's image in its manifest.
const providerTag = "cluster-api-provider-maas"

// image is the first of: the cluster's annotation, the operator's setting, and the in-tree provider.
func (p *Platform) image(cluster platform.Cluster) string {
	return firstOf(cluster.HostedCluster.Annotations[hyperv1.ClusterAPIProviderMAASImage], p.providerImage, cluster.OperatorImage)
}

// foreign tells that the provider is not the one of this very product, so that it may know nothing of how the product hands
// credentials over.
func (p *Platform) foreign(cluster platform.Cluster) bool {
	return p.image(cluster) != cluster.OperatorImage
}

// Provider is one provider for the hosted namespace. Without credentials there is none: it could only crash.
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
			"role.yaml": component.Adapt(func(_ context.Context, scope *component.Scope, role *rbacv1.Role) error {
				p.adaptRole(role, cluster, scope.HCP.Spec.InfraID)
				return nil
			}),
		},
		Options: component.Options{ManagementAccess: true, Singleton: true, UserCAs: true, Held: true},
	}
}

// adapt says where the credentials are, and which addresses a MAAS may have.
func (p *Platform) adapt(pod *corev1.PodSpec, cluster platform.Cluster) {
	container := &pod.Containers[0]
	set := func(name, value string) {
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
	}
	if p.foreign(cluster) {
		adaptForeign(pod, spec(cluster.HostedCluster).IdentityRef.Name)
	} else {
		// It reads the Secret itself, and sees a change without a restart.
		set("MAAS_CREDENTIALS_SECRET", p.kept(cluster).Name)
		set("MAAS_CREDENTIALS_NAMESPACE", p.namespace)
	}
	set(maas.EnvAllowCIDRs, joined(p.guard.Allow))
	set(maas.EnvRefuseCIDRs, joined(p.guard.Refuse))
	container.Env = append(container.Env, p.logEnv...)
}

// adaptForeign gives a provider that is not ours the credentials as upstream's wants them: in its environment, and the CA of MAAS in a
// folder that SSL_CERT_DIR lists. Mounted, the Secret rolls the pods when it changes: upstream's reads its credentials once.
func adaptForeign(pod *corev1.PodSpec, secret string) {
	const caDir = "/etc/hypershift/maas-ca"
	container := &pod.Containers[0]
	for _, key := range []string{maas.SecretKeyEndpoint, maas.SecretKeyAPIKey, maas.SecretKeyCABundle} {
		ref := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key}
		if key == maas.SecretKeyCABundle {
			ref.Optional = ptr.To(true)
		}
		container.Env = append(container.Env, corev1.EnvVar{Name: key, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: ref}})
	}
	container.Env = append(container.Env,
		corev1.EnvVar{Name: "SSL_CERT_DIR", Value: "/etc/ssl/certs:/etc/pki/tls/certs:" + caDir},
		corev1.EnvVar{Name: "MAAS_CREDENTIALS_SECRET", Value: secret})
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "maas-ca", MountPath: caDir, ReadOnly: true})
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "maas-ca", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret, Optional: ptr.To(true), Items: []corev1.KeyToPath{{Key: maas.SecretKeyCABundle, Path: "ca.crt"}},
	}}})
}

// adaptRole lets the provider read the kubeconfigs for it; the right to user-data comes with each Secret of a NodePool. Which Secrets
// and kinds a provider that is not ours works with is not known.
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

// foreignGroups are those of Cluster API, of infrastructure providers and of the HostedControlPlane.
var foreignGroups = []string{
	"cluster.x-k8s.io", "addons.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io", "exp.cluster.x-k8s.io",
	"exp.infrastructure.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "machines.cluster.x-k8s.io", "hypershift.openshift.io",
}

func joined(prefixes []netip.Prefix) string {
	texts := make([]string, 0, len(prefixes))
	for _, prefix := range prefixes {
		texts = append(texts, prefix.String())
	}
	return strings.Join(texts, ",")
}
