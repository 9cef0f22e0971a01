package maas

import (
	"context"
	"embed"
	"io/fs"
	"net/netip"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/component"
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

// Provider is one provider for the hosted namespace. Without credentials there is none: it could only crash.
func (p *Platform) Provider(cluster platform.Cluster) *component.Component {
	if cluster.CredentialsHash == "" {
		return nil
	}
	files, _ := fs.Sub(manifests, "manifests")
	identity := spec(cluster.HostedCluster).IdentityRef.Name
	return &component.Component{
		Name:      platform.ProviderName,
		Manifests: files,
		Images:    map[string]string{providerTag: p.image(cluster)},
		Adapters: map[string]component.Adapter{
			"deployment.yaml": component.Adapt(func(_ context.Context, _ *component.Scope, deployment *appsv1.Deployment) error {
				p.adapt(&deployment.Spec.Template.Spec, identity)
				return nil
			}),
		},
		Options: component.Options{ManagementAccess: true, Singleton: true, UserCAs: true, Held: true},
	}
}

// adapt fills in the name of the Secret with the credentials, and which addresses a MAAS may have.
func (p *Platform) adapt(pod *corev1.PodSpec, secret string) {
	container := &pod.Containers[0]
	for i := range container.Env {
		if from := container.Env[i].ValueFrom; from != nil && from.SecretKeyRef != nil {
			from.SecretKeyRef.Name = secret
		}
	}
	// The in-tree provider reads the Secret itself, and sees a change without a restart.
	container.Env = append(container.Env, corev1.EnvVar{Name: "MAAS_CREDENTIALS_SECRET", Value: secret},
		corev1.EnvVar{Name: maas.EnvAllowCIDRs, Value: joined(p.guard.Allow)}, corev1.EnvVar{Name: maas.EnvRefuseCIDRs, Value: joined(p.guard.Refuse)})
	container.Env = append(container.Env, p.logEnv...)
	for i := range pod.Volumes {
		if volume := &pod.Volumes[i]; volume.Name == "maas-ca" {
			volume.Secret.SecretName = secret
		}
	}
}

func joined(prefixes []netip.Prefix) string {
	texts := make([]string, 0, len(prefixes))
	for _, prefix := range prefixes {
		texts = append(texts, prefix.String())
	}
	return strings.Join(texts, ",")
}
