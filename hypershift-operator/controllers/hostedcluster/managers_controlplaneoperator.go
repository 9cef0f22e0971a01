package hostedcluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

const (
	controlPlaneOperatorName = "control-plane-operator"
	// controlPlaneOperatorTag is the payload's own control-plane-operator.
	controlPlaneOperatorTag = "hypershift"
)

// reconcileControlPlaneOperator runs the operator that builds the control plane.
func (r *Reconciler) reconcileControlPlaneOperator(ctx context.Context, s *scope) (ctrl.Result, error) {
	image, err := r.controlPlaneOperatorImage(s)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.applyManager(ctx, s, manager{
		name: controlPlaneOperatorName, spec: r.controlPlaneOperatorSpec(s, image), rules: controlPlaneOperatorRules(),
	})
}

// controlPlaneOperatorImage is the first of: what the cluster's annotation says, what the operator was started with, what
// the payload carries, and for a payload that carries none the product's own image.
func (r *Reconciler) controlPlaneOperatorImage(s *scope) (string, error) {
	if image := s.hc.Annotations[hyperv1.ControlPlaneOperatorImageAnnotation]; image != "" {
		return image, nil
	}
	if r.Settings.ControlPlaneOperatorImage != "" {
		return r.Settings.ControlPlaneOperatorImage, nil
	}
	if image, ok := s.release.ComponentImage(controlPlaneOperatorTag); ok {
		return image, nil
	}
	if !s.distribution().OwnOperators {
		return r.Settings.OperatorImage, nil
	}
	return "", fmt.Errorf("the release %s has no image %s: use a complete release image, or name one in the annotation %s",
		s.release.Version(), controlPlaneOperatorTag, hyperv1.ControlPlaneOperatorImageAnnotation)
}

func (r *Reconciler) controlPlaneOperatorSpec(s *scope, image string) appsv1.DeploymentSpec {
	return appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{
			Name:            controlPlaneOperatorName,
			Image:           image,
			ImagePullPolicy: corev1.PullIfNotPresent,
			Command:         []string{"/usr/bin/control-plane-operator", "run"},
			Args:            r.controlPlaneOperatorArgs(s),
			Env:             r.controlPlaneOperatorEnv(s, image),
			Resources:       requests("10m", "80Mi"),
			Ports: []corev1.ContainerPort{
				{Name: "metrics", ContainerPort: 8080, Protocol: corev1.ProtocolTCP},
				{Name: "health", ContainerPort: 6060, Protocol: corev1.ProtocolTCP},
			},
			LivenessProbe:  httpProbe("/healthz", "health", 60, 60),
			ReadinessProbe: httpProbe("/readyz", "health", 5, 10),
			VolumeMounts:   []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
		}},
		Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}}}
}

func (r *Reconciler) controlPlaneOperatorArgs(s *scope) []string {
	args := []string{
		"--namespace", "$(MY_NAMESPACE)",
		"--deployment-name", controlPlaneOperatorName,
		"--metrics-addr", "0.0.0.0:8080",
		fmt.Sprintf("--enable-ci-debug-output=%t", r.Settings.EnableCIDebugOutput),
	}
	if overrides := joinPairs(r.Settings.RegistryOverrides); overrides != "" {
		args = append(args, "--registry-overrides="+overrides)
	}
	if overrides := s.hc.Annotations[hyperv1.ImageOverridesAnnotation]; overrides != "" {
		args = append(args, "--image-overrides="+overrides)
	}
	return args
}

// controlPlaneOperatorEnv is what every version of the payload's operator reads. Passed variables come last and sorted, so
// that the same environment always makes the same Deployment.
func (r *Reconciler) controlPlaneOperatorEnv(s *scope, image string) []corev1.EnvVar {
	env := []corev1.EnvVar{
		fieldEnv("MY_NAMESPACE", "metadata.namespace"),
		fieldEnv("POD_NAME", "metadata.name"),
	}
	set := func(name, value string) { env = append(env, corev1.EnvVar{Name: name, Value: value}) }
	for _, name := range []string{
		"CONTROL_PLANE_OPERATOR_IMAGE", "HOSTED_CLUSTER_CONFIG_OPERATOR_IMAGE", "SOCKS5_PROXY_IMAGE",
		"AVAILABILITY_PROBER_IMAGE", "TOKEN_MINTER_IMAGE",
	} {
		set(name, image)
	}
	set("OPERATE_ON_RELEASE_IMAGE", s.images.running())
	set("OPENSHIFT_IMG_OVERRIDES", imageMirrors(s.hc.Spec.ImageContentSources))
	if s.securityUID != "" {
		set("DEFAULT_SECURITY_CONTEXT_UID", s.securityUID)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Settings.PassedEnv)) {
		set(name, r.Settings.PassedEnv[name])
	}
	return env
}

// imageMirrors writes mirrors as source=mirror pairs; none are a lone "=", which a flag of old operators needs.
func imageMirrors(sources []hyperv1.ImageContentSource) string {
	var pairs []string
	for _, source := range sources {
		for _, mirror := range source.Mirrors {
			pairs = append(pairs, source.Source+"="+mirror)
		}
	}
	if len(pairs) == 0 {
		return "="
	}
	return strings.Join(pairs, ",")
}

func joinPairs(pairs map[string]string) string {
	joined := make([]string, 0, len(pairs))
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		joined = append(joined, key+"="+pairs[key])
	}
	return strings.Join(joined, ",")
}

// controlPlaneOperatorRules must contain every right that the operator hands on to a component.
func controlPlaneOperatorRules() []rbacv1.PolicyRule {
	all := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: allVerbs}
	}
	rules := []rbacv1.PolicyRule{
		all("hypershift.openshift.io", "*"),
		all("certificates.hypershift.openshift.io", "*"),
		{APIGroups: append(append([]string{}, capiGroups...), "ipam.cluster.x-k8s.io"), Resources: []string{"*"}, Verbs: allVerbs},
		all("monitoring.coreos.com", "*"),
		all("monitoring.rhobs", "*"),
		all("capi-provider.agent-install.openshift.io", "*"),
		all("route.openshift.io", "*"),
		all("image.openshift.io", "*"),
		all("", "events", "configmaps", "configmaps/finalizers", "persistentvolumeclaims", "pods", "pods/log", "secrets",
			"nodes", "serviceaccounts", "services", "endpoints"),
		all("events.k8s.io", "events"),
		all("apps", "deployments", "replicasets", "statefulsets"),
		all("batch", "cronjobs", "jobs"),
		all("policy", "poddisruptionbudgets"),
		all("coordination.k8s.io", "leases"),
		all("discovery.k8s.io", "endpointslices", "endpointslices/restricted"),
		all("networking.k8s.io", "networkpolicies"),
	}
	limited := func(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	return append(rules,
		limited("rbac.authorization.k8s.io", []string{"get", "list", "watch", "create", "update", "patch", "delete"}, "roles", "rolebindings"),
		limited("apiextensions.k8s.io", []string{"get", "list", "watch"}, "customresourcedefinitions"),
		all("kubevirt.io", "virtualmachines", "virtualmachines/finalizers", "virtualmachineinstances"),
		limited("cdi.kubevirt.io", []string{"get", "create", "delete"}, "datavolumes"),
		limited("snapshot.storage.k8s.io", []string{"get", "create", "delete"}, "volumesnapshots"),
	)
}
