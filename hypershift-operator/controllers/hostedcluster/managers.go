package hostedcluster

import (
	"context"
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/finalizer"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	trustHashAnnotation = "hypershift.openshift.io/trust-bundle-hash"
	defaultPriority     = "hypershift-control-plane"
	// fieldOwner is the name under which the API server keeps the fields that this operator applies.
	fieldOwner = "hypershift-operator"
)

// manager is one of the Deployments that the operator runs in a hosted namespace.
type manager struct {
	name string
	// spec is the Deployment's; decorate adds what all have in common.
	spec appsv1.DeploymentSpec
	// rules are its rights in the hosted namespace.
	rules []rbacv1.PolicyRule
	// finalizers keep the Deployment while machines need it.
	finalizers []string
}

// applyManager makes the service account, the rights and the Deployment of a manager.
func (r *Reconciler) applyManager(ctx context.Context, s *scope, m manager) error {
	if err := r.applyAccount(ctx, s, m.name, m.rules); err != nil {
		return err
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: m.name, Finalizers: m.finalizers,
			Labels:      map[string]string{hyperv1.ControlPlaneComponentLabel: m.name},
			Annotations: map[string]string{hyperv1.HostedClusterAnnotation: s.backPointer()},
		},
		Spec: *m.spec.DeepCopy(),
	}
	s.decorate(deployment)
	if s.hcp != nil {
		if err := controllerutil.SetOwnerReference(s.hcp, deployment, r.Client.Scheme()); err != nil {
			return fmt.Errorf("making HostedControlPlane %s the owner of Deployment %s: %w", s.hcp.Name, m.name, err)
		}
	}
	if going, err := r.removeComponentFinalizer(ctx, deployment); err != nil || going {
		return err
	}
	_, err := upsert.Apply(ctx, r.Client, fieldOwner, deployment)
	return err
}

// removeComponentFinalizer ends the deletion of a manager's Deployment by hand, so that the next pass makes a new one: the finalizer
// that keeps it until the machines are gone would keep it for as long as the cluster lives, and one that is being deleted takes no
// update.
func (r *Reconciler) removeComponentFinalizer(ctx context.Context, wanted *appsv1.Deployment) (going bool, err error) {
	live := &appsv1.Deployment{}
	key := client.ObjectKeyFromObject(wanted)
	if err := r.Client.Get(ctx, key, live); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return false, nil
		}
		return false, fmt.Errorf("reading Deployment %s: %w", key, err)
	}
	if live.DeletionTimestamp == nil {
		return false, nil
	}
	return true, finalizer.Remove(ctx, r.Client, live, componentFinalizer)
}

func (r *Reconciler) applyAccount(ctx context.Context, s *scope, name string, rules []rbacv1.PolicyRule) error {
	meta := metav1.ObjectMeta{Namespace: s.namespace, Name: name}
	account := &corev1.ServiceAccount{ObjectMeta: meta}
	_, err := upsert.Object(ctx, r.Client, account, func() error {
		s.own(account)
		account.ImagePullSecrets = withPullSecret(account.ImagePullSecrets)
		return nil
	})
	if err != nil {
		return err
	}
	role := &rbacv1.Role{ObjectMeta: meta}
	_, err = upsert.Object(ctx, r.Client, role, func() error {
		s.own(role)
		role.Rules = rules
		return nil
	})
	if err != nil {
		return err
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta}
	_, err = upsert.Object(ctx, r.Client, binding, func() error {
		s.own(binding)
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
		binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: name}}
		return nil
	})
	return err
}

// withPullSecret keeps the pull secrets that OpenShift adds to every service account.
func withPullSecret(secrets []corev1.LocalObjectReference) []corev1.LocalObjectReference {
	for _, secret := range secrets {
		if secret.Name == naming.PullSecret {
			return secrets
		}
	}
	return append(secrets, corev1.LocalObjectReference{Name: naming.PullSecret})
}

// decorate gives a manager's pods what all of them have in common.
func (s *scope) decorate(deployment *appsv1.Deployment) {
	name := deployment.Name
	spec := &deployment.Spec
	labels := map[string]string{}
	maps.Copy(labels, s.hc.Spec.Labels)
	maps.Copy(labels, spec.Template.Labels)
	if labels["app"] == "" {
		labels["app"] = name
	}
	if spec.Selector == nil {
		spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": labels["app"]}}
	}
	maps.Copy(labels, map[string]string{
		hyperv1.ControlPlaneNamespaceLabel: s.namespace, hyperv1.ControlPlaneComponentLabel: name, hyperv1.NeedManagementKASAccessLabel: "true",
	})
	spec.Template.Labels = labels
	if spec.Replicas == nil {
		spec.Replicas = ptr.To[int32](1)
	}
	pod := &spec.Template.Spec
	pod.ServiceAccountName = name
	pod.PriorityClassName = s.priorityClass()
	pod.NodeSelector = s.hc.Spec.NodeSelector
	pod.Tolerations = s.tolerations()
	pod.Affinity = s.colocate()
	s.runAs(pod)
	s.trust(spec)
}

func (s *scope) priorityClass() string {
	if class := s.hc.Annotations[hyperv1.ControlPlanePriorityClass]; class != "" {
		return class
	}
	return defaultPriority
}

func (s *scope) tolerations() []corev1.Toleration {
	return append([]corev1.Toleration{
		{Key: "hypershift.openshift.io/control-plane", Operator: corev1.TolerationOpEqual, Value: "true", Effect: corev1.TaintEffectNoSchedule},
		{Key: hyperv1.HostedClusterLabel, Operator: corev1.TolerationOpEqual, Value: s.namespace, Effect: corev1.TaintEffectNoSchedule},
	}, s.hc.Spec.Tolerations...)
}

// colocate prefers nodes that are meant for control planes, and those that run this cluster's other pods.
func (s *scope) colocate() *corev1.Affinity {
	prefer := func(weight int32, key, value string) corev1.PreferredSchedulingTerm {
		return corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}},
		}}
	}
	return &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
			prefer(50, "hypershift.openshift.io/control-plane", "true"),
			prefer(100, hyperv1.HostedClusterLabel, s.namespace),
		}},
		PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100,
			PodAffinityTerm: corev1.PodAffinityTerm{
				TopologyKey:   corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{hyperv1.ControlPlaneNamespaceLabel: s.namespace}},
			},
		}}},
	}
}

// runAs takes all privileges that a manager does not need.
func (s *scope) runAs(pod *corev1.PodSpec) {
	pod.AutomountServiceAccountToken = ptr.To(true)
	if uid := s.securityUserID(); uid != nil && pod.SecurityContext == nil {
		pod.SecurityContext = &corev1.PodSecurityContext{RunAsUser: uid, RunAsNonRoot: ptr.To(true)}
	}
	for i := range pod.Containers {
		if pod.Containers[i].SecurityContext == nil {
			pod.Containers[i].SecurityContext = &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false),
				ReadOnlyRootFilesystem:   ptr.To(true),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}
		}
	}
}

const (
	trustVolume = "user-ca-bundle"
	trustDir    = "/etc/hypershift/user-ca-bundle"
	certDirEnv  = "SSL_CERT_DIR"
)

// trust lets all containers trust the cluster's additional CAs. A program reads its CAs once, so a changed bundle rolls
// the pods.
func (s *scope) trust(spec *appsv1.DeploymentSpec) {
	if spec.Template.Annotations == nil {
		spec.Template.Annotations = map[string]string{}
	}
	if len(s.trustBundle) > 0 {
		spec.Template.Annotations[trustHashAnnotation] = naming.Hash(string(s.trustBundle))
	}
	pod := &spec.Template.Spec
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: trustVolume, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: naming.TrustBundle},
			Items:                []corev1.KeyToPath{{Key: naming.TrustBundleKey, Path: naming.TrustBundleKey}},
			Optional:             ptr.To(true),
		},
	}})
	for i := range pod.Containers {
		container := &pod.Containers[i]
		container.VolumeMounts = append(container.VolumeMounts,
			corev1.VolumeMount{Name: trustVolume, MountPath: trustDir, ReadOnly: true})
		addCertDir(container)
	}
}

// addCertDir puts the trust bundle's folder on the list of folders that certificates are read from.
func addCertDir(container *corev1.Container) {
	for i := range container.Env {
		if container.Env[i].Name == certDirEnv {
			container.Env[i].Value = strings.Join([]string{container.Env[i].Value, trustDir}, ":")
			return
		}
	}
	container.Env = append(container.Env, corev1.EnvVar{Name: certDirEnv, Value: "/etc/ssl/certs:/etc/pki/tls/certs:" + trustDir})
}
