package maas

import (
	"net/netip"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/maas"
)

const (
	credentialsHashAnnotation = "hypershift.openshift.io/platform-credentials-hash"
	providerLabel             = "capi-provider-controller-manager"
	caDir                     = "/etc/hypershift/maas-ca"
)

// image is the first of: the cluster's annotation, the operator's setting, and the in-tree provider.
func (p *Platform) image(cluster platform.Cluster) string {
	return firstOf(cluster.HostedCluster.Annotations[hyperv1.ClusterAPIProviderMAASImage], p.providerImage, cluster.OperatorImage)
}

// ProviderDeployment is one provider for the hosted namespace. Without credentials there is none: it could only crash.
func (p *Platform) ProviderDeployment(cluster platform.Cluster) *appsv1.DeploymentSpec {
	if cluster.CredentialsHash == "" {
		return nil
	}
	labels := map[string]string{"control-plane": providerLabel, "app": providerLabel}
	return &appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](1),
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		// Two providers at once would wait for one another's lease.
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{
				Labels: labels,
				// An upstream provider reads its credentials once, so new ones have to roll it.
				Annotations: map[string]string{credentialsHashAnnotation: cluster.CredentialsHash},
			},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{p.container(cluster)},
				Volumes: []corev1.Volume{
					{Name: "capi-webhooks-tls", VolumeSource: corev1.VolumeSource{
						Secret: &corev1.SecretVolumeSource{SecretName: naming.CAPIWebhookCert},
					}},
					caVolume(spec(cluster.HostedCluster)),
				},
				TerminationGracePeriodSeconds: ptr.To[int64](10),
			},
		},
	}
}

func (p *Platform) container(cluster platform.Cluster) corev1.Container {
	return corev1.Container{
		Name:            "manager",
		Image:           p.image(cluster),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{"/manager"},
		Args: []string{
			"--namespace=$(MY_NAMESPACE)",
			"--leader-elect",
			"--health-addr=:9440",
			"--metrics-bind-addr=:8080",
			"--v=2",
		},
		Env: p.environment(cluster),
		Ports: []corev1.ContainerPort{
			{Name: "healthz", ContainerPort: 9440, Protocol: corev1.ProtocolTCP},
			{Name: "metrics", ContainerPort: 8080, Protocol: corev1.ProtocolTCP},
		},
		LivenessProbe:  probe("/healthz", 60),
		ReadinessProbe: probe("/readyz", 10),
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
		}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "capi-webhooks-tls", MountPath: "/tmp/k8s-webhook-server/serving-certs", ReadOnly: true},
			{Name: "maas-ca", MountPath: caDir, ReadOnly: true},
		},
	}
}

func (p *Platform) environment(cluster platform.Cluster) []corev1.EnvVar {
	secret := spec(cluster.HostedCluster).IdentityRef.Name
	fromSecret := func(key string, optional bool) corev1.EnvVar {
		return corev1.EnvVar{Name: key, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key, Optional: ptr.To(optional),
		}}}
	}
	namespace := func(name string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
		}}
	}
	return []corev1.EnvVar{
		namespace("MY_NAMESPACE"), namespace("NAMESPACE"),
		// The in-tree provider reads the Secret itself, and sees a change without a restart.
		{Name: "MAAS_CREDENTIALS_SECRET", Value: secret},
		{Name: maas.EnvAllowCIDRs, Value: joined(p.guard.Allow)}, {Name: maas.EnvRefuseCIDRs, Value: joined(p.guard.Refuse)},
		fromSecret(maas.SecretKeyEndpoint, false), fromSecret(maas.SecretKeyAPIKey, false), fromSecret(maas.SecretKeyCABundle, true),
		// Upstream's provider knows no CA bundle of its own, but reads the folders that this lists.
		{Name: "SSL_CERT_DIR", Value: "/etc/ssl/certs:/etc/pki/tls/certs:" + caDir},
	}
}

func joined(prefixes []netip.Prefix) string {
	texts := make([]string, 0, len(prefixes))
	for _, prefix := range prefixes {
		texts = append(texts, prefix.String())
	}
	return strings.Join(texts, ",")
}

func caVolume(maasSpec hyperv1.MAASPlatformSpec) corev1.Volume {
	return corev1.Volume{Name: "maas-ca", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: maasSpec.IdentityRef.Name,
		Items:      []corev1.KeyToPath{{Key: maas.SecretKeyCABundle, Path: "ca.crt"}},
		Optional:   ptr.To(true),
	}}}
}

func probe(path string, period int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("healthz"), Scheme: corev1.URISchemeHTTP}},
		PeriodSeconds:    period,
		TimeoutSeconds:   5,
		SuccessThreshold: 1,
		FailureThreshold: 3,
	}
}
