// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/dataguard"
	"github.com/openshift/hypershift/support/management"
	"github.com/openshift/hypershift/support/namespaceguard"
	"github.com/openshift/hypershift/support/nodelabels"
	"github.com/openshift/hypershift/support/objectstore"
	"github.com/openshift/hypershift/support/operatorwebhook"
	"github.com/openshift/hypershift/support/protected"
	"github.com/openshift/hypershift/support/skew"
	"github.com/openshift/hypershift/support/supportedversions"
)

const (
	operatorName    = "operator"
	roleName        = "hypershift-operator"
	componentLabel  = "hypershift.openshift.io/component"
	operatorLabel   = hyperv1.OperatorComponentLabel
	pullSecretName  = "pull-secret"
	trustBundleName = "user-ca-bundle"
	trustBundleKey  = "ca-bundle.crt"
	trustBundleDir  = "/etc/hypershift/trust"

	operatorPriorityClass = "hypershift-operator"

	metricsPort = 9000
	healthPort  = 8081
)

// priorityClasses keep control planes running when a management cluster is short of resources.
func priorityClasses() []client.Object {
	class := func(name string, value int32, description string) client.Object {
		return &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, Description: description,
		}
	}
	return []client.Object{
		class("hypershift-control-plane", 100000000, "Control planes of hosted clusters."),
		class("hypershift-api-critical", 100001000, "What the API of a hosted cluster cannot do without."),
		class("hypershift-etcd", 100002000, "etcd of hosted clusters."),
		class(operatorPriorityClass, 100003000, "The operator that makes hosted clusters."),
	}
}

// resources returns all objects except the CRDs, in the order in which they are applied.
func (o *Options) resources() []client.Object {
	objs := priorityClasses()
	objs = append(objs, o.ownNamespace())
	if len(o.pullSecret) > 0 {
		objs = append(objs, o.pullSecretIn(o.namespace))
	}
	if len(o.trustBundle) > 0 {
		objs = append(objs, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: trustBundleName},
			Data:       map[string]string{trustBundleKey: string(o.trustBundle)},
		})
	}
	if o.apis.Has(management.Configuration) {
		objs = append(objs, o.platformTrust())
	}
	objs = append(objs, namespaceguard.Objects()...)
	objs = append(objs, protected.Objects()...)
	objs = append(objs, nodelabels.Objects()...)
	if !o.development {
		// An operator on a developer's machine has no service account by which the policy could know it.
		objs = append(objs, dataguard.Objects(o.namespace)...)
	}
	objs = append(objs, o.limits.Objects()...)
	objs = append(objs, o.addition.Objects...)
	objs = append(objs, o.serviceAccount())
	objs = append(objs, o.rbac()...)
	objs = append(objs, skew.Objects(o.namespace)...)
	if o.defaultRelease != "" {
		// The operator writes the same. Commands find the release here before the operator runs.
		objs = append(objs, supportedversions.ConfigMap(o.namespace, o.defaultRelease))
	}
	objs = append(objs, o.deployment(), o.service(), o.networkPolicy())
	objs = append(objs, o.disruptionBudget()...)
	objs = append(objs, o.monitors()...)
	objs = append(objs, o.virtualIPObjects()...)
	if o.alerting.on && len(o.virtualIP.addresses) > 0 {
		objs = append(objs, o.labeled(o.virtualIPMonitors())...)
	}
	if o.servesWebhook() {
		objs = append(objs, operatorwebhook.Configuration(o.namespace))
	}
	return objs
}

func (o *Options) pullSecretIn(namespace string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pullSecretName},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: o.pullSecret},
	}
}

// servesWebhook reports whether a pod serves the webhook.
func (o *Options) servesWebhook() bool { return o.defaultingWebhook && !o.development }

func (o *Options) deployment() *appsv1.Deployment {
	labels := map[string]string{"name": operatorName, "app": operatorName, operatorLabel: operatorName}
	replicas := o.replicas
	if o.development {
		replicas = 0
	}
	pod := corev1.PodSpec{
		ServiceAccountName: operatorName,
		PriorityClassName:  operatorPriorityClass,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: o.user(),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Affinity:       spread(labels),
		InitContainers: []corev1.Container{o.container("init-environment", "init")},
		Containers:     []corev1.Container{o.operatorContainer()},
	}
	for _, t := range o.trusted() {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: t.volume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: t.configMap}, Optional: t.optional,
		}}})
	}
	for _, secret := range o.addition.Secrets {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: secret.Name, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: secret.Name}}})
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.namespace, Name: operatorName, Labels: labels,
			Annotations: map[string]string{skew.Annotation: skew.Version},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": operatorName}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
}

// disruptionBudget allows one of several operator pods to be evicted at a time, so that a drain of many nodes leaves
// one that answers webhooks.
func (o *Options) disruptionBudget() []client.Object {
	if o.replicas < 2 || o.development {
		return nil
	}
	return []client.Object{&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: operatorName},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable:             ptr.To(intstr.FromInt32(1)),
			Selector:                   &metav1.LabelSelector{MatchLabels: map[string]string{"name": operatorName}},
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		},
	}}
}

// spread prefers different nodes for several operator pods.
func spread(labels map[string]string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100,
			PodAffinityTerm: corev1.PodAffinityTerm{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
			},
		}},
	}}
}

// container returns what both containers of the operator have in common.
func (o *Options) container(name string, args ...string) corev1.Container {
	c := corev1.Container{
		Name:            name,
		Image:           o.image,
		ImagePullPolicy: corev1.PullPolicy(o.pullPolicy),
		Command:         []string{"/usr/bin/hypershift-operator"},
		Args:            args,
		Env:             o.environment(),
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("150Mi"),
		}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false),
			ReadOnlyRootFilesystem:   ptr.To(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	for _, t := range o.trusted() {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: t.volume, MountPath: t.dir, ReadOnly: true})
	}
	return c
}

func (o *Options) operatorContainer() corev1.Container {
	args := []string{"run", "--namespace=$(MY_NAMESPACE)", "--pod-name=$(MY_NAME)", "--metrics-addr=:9000", "--health-probe-addr=:8081"}
	if o.registryOverrides != "" {
		args = append(args, "--registry-overrides="+o.registryOverrides)
	}
	args = append(args, o.addition.Args...)
	if o.egressBlocks != "" {
		args = append(args, "--hcp-egress-block-cidrs="+o.egressBlocks)
	}
	if o.dnsServers != "" {
		args = append(args, "--hcp-egress-dns-cidrs="+o.dnsServers)
	}
	if o.storeAllow != "" {
		args = append(args, objectstore.AllowFlag+"="+o.storeAllow)
	}
	if o.refuseNodes {
		args = append(args, "--refuse-node-addresses")
	}
	args = append(args, o.limits.Args()...)
	if o.cpoImage != "" {
		args = append(args, "--control-plane-operator-image="+o.cpoImage)
	}
	if o.defaultRelease != "" {
		args = append(args, "--"+supportedversions.DefaultReleaseFlag+"="+o.defaultRelease)
	}
	if o.ciDebugOutput {
		args = append(args, "--enable-ci-debug-output")
	}
	if o.monitoring == monitorAll {
		args = append(args, "--enable-ocp-cluster-monitoring")
	}
	if o.loosestLevel != baselineLevel {
		args = append(args, "--"+loosestLevelFlag+"="+o.loosestLevel)
	}
	if o.passRollouts {
		args = append(args, fmt.Sprintf("--%s=%d", rolloutsFlag, o.rollouts))
	}
	if o.defaultingWebhook {
		args = append(args, "--enable-defaulting-webhook")
	}
	c := o.container(operatorName, args...)
	for _, secret := range o.addition.Secrets {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: secret.Name, MountPath: secret.Dir, ReadOnly: true})
	}
	c.Ports = []corev1.ContainerPort{
		{Name: "metrics", ContainerPort: metricsPort}, {Name: "health", ContainerPort: healthPort}, {Name: "manager", ContainerPort: operatorwebhook.Port},
	}
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health")}},
			// Long enough for a busy management cluster, short enough for users who wait for the first start.
			PeriodSeconds: 5, TimeoutSeconds: 5, FailureThreshold: 6,
		}
	}
	c.LivenessProbe, c.ReadinessProbe = probe("/healthz"), probe("/readyz")
	c.LivenessProbe.InitialDelaySeconds = 30
	return c
}

func (o *Options) environment() []corev1.EnvVar {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
	}
	env := []corev1.EnvVar{
		field("MY_NAMESPACE", "metadata.namespace"),
		field("MY_NAME", "metadata.name"),
		{Name: "METRICS_SET", Value: o.metricsSet},
		{Name: "CERT_ROTATION_SCALE", Value: o.certRotationScale.String()},
	}
	if len(o.platforms) > 0 {
		env = append(env, corev1.EnvVar{Name: platformsEnv, Value: strings.Join(o.platforms, ",")})
	}
	folders := []string{"/etc/ssl/certs"}
	for _, t := range o.trusted() {
		folders = append(folders, t.dir)
	}
	if len(folders) > 1 {
		env = append(env, corev1.EnvVar{Name: "SSL_CERT_DIR", Value: strings.Join(folders, ":")})
	}
	more := map[string]string{}
	maps.Copy(more, o.images)
	maps.Copy(more, o.platformEnv)
	maps.Copy(more, o.extraEnv)
	for _, name := range slices.Sorted(maps.Keys(more)) {
		env = append(env, corev1.EnvVar{Name: name, Value: more[name]})
	}
	return env
}

func (o *Options) service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: operatorName, Labels: map[string]string{"name": operatorName}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"name": operatorName},
			Ports: []corev1.ServicePort{
				{Name: "metrics", Port: 9393, TargetPort: intstr.FromString("metrics"), Protocol: corev1.ProtocolTCP},
				{Name: "manager", Port: operatorwebhook.ServicePort, TargetPort: intstr.FromString("manager"), Protocol: corev1.ProtocolTCP},
			},
		},
	}
}
