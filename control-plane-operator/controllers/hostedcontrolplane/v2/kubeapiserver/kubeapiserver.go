// SPDX-License-Identifier: Apache-2.0

// Package kubeapiserver is the component that runs the hosted cluster's API server.
package kubeapiserver

import (
	"context"
	"embed"
	"io/fs"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/etcd"
	"github.com/openshift/hypershift/support/component"
)

// Name is the component's name.
const Name = "kube-apiserver"

// tuned lists the environment variables that a user may set, each with its annotation, in the container's order.
var tuned = []struct{ variable, annotation string }{
	{"GOGC", hyperv1.KubeAPIServerGOGCAnnotation},
	{"GOMEMLIMIT", hyperv1.KubeAPIServerGOMemoryLimitAnnotation},
}

//go:embed manifests
var manifests embed.FS

// New returns the component.
func New() *component.Component {
	files, _ := fs.Sub(manifests, "manifests")
	return &component.Component{
		Name:         Name,
		Manifests:    files,
		Dependencies: []string{etcd.Name},
		Adapters: map[string]component.Adapter{
			"deployment.yaml":            component.Adapt(adapt),
			"audit-policy.yaml":          component.Adapt(adaptAuditPolicy),
			"encryption-config.yaml":     component.Adapt(adaptEncryption).When(encrypts),
			"authentication-config.yaml": component.Adapt(adaptAuthentication).When(hasProviders),
			"client-signers.yaml":        component.Adapt(adaptClientSigners).When(hasUserSigners),
			"webhooks.yaml":              component.Adapt(adaptWebhooks).When(hasWebhooks),
			"egress-selector.yaml":       component.When(hasTunnel),
			"podmonitor.yaml":            component.When(hasTunnel),
			"pdb.yaml":                   component.DisruptionBudget(),
		},
		Options: component.Options{
			RequestServing: true, MultiZone: true, HighlyAvailableReplicas: 3, Priority: component.PriorityAPICritical,
			WaitsFor: etcdReady, WaitsInPod: true,
		},
	}
}

// etcdReady is the port of etcd, whose Service has an endpoint as soon as a member serves. An API server exits if etcd
// does not answer within 20 s. An etcd that the user provides is expected to run.
func etcdReady(hcp *hyperv1.HostedControlPlane) string {
	if hcp.Spec.Etcd.ManagementType == hyperv1.Unmanaged {
		return ""
	}
	return "tcp://etcd-client:2379"
}

func adapt(ctx context.Context, scope *component.Scope, deployment *appsv1.Deployment) error {
	webhooks, _, err := acceptedWebhooks(ctx, scope.Client, scope.HCP)
	if err != nil {
		return err
	}
	pod := &deployment.Spec.Template.Spec
	pod.TerminationGracePeriodSeconds = ptr.To(shutdownOf(scope.HCP).grace)
	container := &pod.Containers[0]
	container.Args = args(scope.HCP, New().Replicas(scope.HCP), webhooks)
	setEnv(scope.HCP, container)
	mountOptional(scope, pod)
	if hasTunnel(scope) {
		runTunnel(scope, pod)
	}
	if !encrypts(scope) {
		return nil
	}
	if err := runPlugins(ctx, scope, pod); err != nil {
		return err
	}
	return annotateEncryption(ctx, scope, &deployment.Spec.Template)
}

func setEnv(hcp *hyperv1.HostedControlPlane, container *corev1.Container) {
	for _, t := range tuned {
		if value := hcp.Annotations[t.annotation]; value != "" {
			container.Env = append(container.Env, corev1.EnvVar{Name: t.variable, Value: value})
		}
	}
}

// mountOptional adds the volumes that only some clusters need.
func mountOptional(scope *component.Scope, pod *corev1.PodSpec) {
	secret := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}
	}
	configMap := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
	}
	if encrypts(scope) {
		mount(pod, encryptionVolume, encryptionDir, secret(EncryptionSecret))
	}
	if hasProviders(scope) {
		mount(pod, "auth-config", authenticationDir, configMap(authenticationConfigMap))
	}
	if hasUserSigners(scope) {
		mount(pod, "client-signers", clientSignersDir, configMap(clientSignersConfigMap))
	}
	if hasWebhooks(scope) {
		mount(pod, "webhooks", webhooksDir, secret(webhooksSecret))
	}
	for i, named := range namedCertificates(scope.HCP) {
		mount(pod, namedVolume(i), namedDir(i), secret(named.ServingCertificate.Name))
	}
}

func mount(pod *corev1.PodSpec, name, path string, source corev1.VolumeSource) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: true})
}
