package hostedcluster

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	capiManagerName = "cluster-api"
	capiManagerTag  = "cluster-capi-controllers"
	crdReaderRole   = "hypershift-cluster-api"
	ownerNamespace  = "hypershift.openshift.io/owner.namespace"
	ownerName       = "hypershift.openshift.io/owner.name"
)

func crdReaderBinding(s *scope) string { return crdReaderRole + "-" + s.namespace }

// wantsManagers tells whether there is something for Cluster API and the provider to do: a cluster, unless its machines are
// somebody else's business.
func (r *Reconciler) wantsManagers(s *scope) bool {
	_, disabled := s.hc.Annotations[hyperv1.DisableMachineManagement]
	return !disabled && s.platform.InfraCluster(s.cluster(r.Settings.OperatorImage)) != nil
}

// reconcileCAPIManager runs Cluster API's own controllers for the cluster.
func (r *Reconciler) reconcileCAPIManager(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !r.wantsManagers(s) {
		return ctrl.Result{}, nil
	}
	image, err := s.capiManagerImage()
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.webhookCertificate(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.readCRDs(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.applyManager(ctx, s, manager{
		name: capiManagerName, spec: s.capiManagerSpec(image), rules: capiManagerRules(), finalizers: []string{componentFinalizer},
	})
}

func (s *scope) capiManagerImage() (string, error) {
	if image := s.hc.Annotations[hyperv1.ClusterAPIManagerImage]; image != "" {
		return image, nil
	}
	if image, ok := s.release.ComponentImage(capiManagerTag); ok {
		return image, nil
	}
	return "", fmt.Errorf("the release %s has no image %s: use a complete release image, or name one in the annotation %s",
		s.release.Version(), capiManagerTag, hyperv1.ClusterAPIManagerImage)
}

func (s *scope) capiManagerSpec(image string) appsv1.DeploymentSpec {
	return appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{
			Name:            "manager",
			Image:           image,
			ImagePullPolicy: corev1.PullIfNotPresent,
			Command:         s.distribution().ClusterAPICommand,
			Args:            s.capiManagerArgs(),
			Env:             []corev1.EnvVar{fieldEnv("MY_NAMESPACE", "metadata.namespace")},
			Resources:       requests("10m", "40Mi"),
			Ports:           []corev1.ContainerPort{{Name: "healthz", ContainerPort: 9440, Protocol: corev1.ProtocolTCP}},
			LivenessProbe:   httpProbe("/healthz", "healthz", 60, 60),
			ReadinessProbe:  httpProbe("/readyz", "healthz", 5, 10),
			VolumeMounts: []corev1.VolumeMount{
				{Name: naming.CAPIWebhookCert, MountPath: "/tmp/k8s-webhook-server/serving-certs", ReadOnly: true},
			},
		}},
		Volumes: []corev1.Volume{secretVolume(naming.CAPIWebhookCert)},
	}}}
}

// capiManagerArgs follow what the payload's Cluster API understands. Leases are long, so that a slow management cluster
// does not make every hosted cluster elect anew.
func (s *scope) capiManagerArgs() []string {
	args := []string{
		"--namespace", "$(MY_NAMESPACE)",
		"--v=4",
		"--leader-elect=true",
		"--leader-elect-lease-duration=137s",
		"--leader-elect-retry-period=26s",
		"--leader-elect-renew-deadline=107s",
	}
	version, traits := s.release.Version(), s.distribution()
	if release.AtLeast(version, traits.PreflightChecksGate) {
		// These checks want a control plane that Cluster API made.
		args = append(args, "--feature-gates=MachineSetPreflightChecks=false")
	}
	if release.AtLeast(version, traits.CRDMigrationPhases) {
		// CRDs belong to the whole management cluster; the installer migrates them.
		args = append(args, "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields")
	}
	return args
}

var capiGroups = []string{
	"bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io",
	"machines.cluster.x-k8s.io", "exp.infrastructure.cluster.x-k8s.io", "addons.cluster.x-k8s.io",
	"exp.cluster.x-k8s.io", "cluster.x-k8s.io",
}

var allVerbs = []string{"*"}

func capiManagerRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: append(append([]string{}, capiGroups...), "ipam.cluster.x-k8s.io"), Resources: []string{"*"}, Verbs: allVerbs},
		{APIGroups: []string{"hypershift.openshift.io"}, Resources: []string{"hostedcontrolplanes", "hostedcontrolplanes/status"},
			Verbs: []string{"get", "list", "watch", "delete", "patch", "update"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps", "events", "secrets"},
			Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: allVerbs},
		{APIGroups: []string{"capi-provider.agent-install.openshift.io"}, Resources: []string{"*"}, Verbs: allVerbs},
	}
}

// webhookCertificate makes the certificate that Cluster API's webhook server starts with. Nothing calls the webhooks.
func (r *Reconciler) webhookCertificate(ctx context.Context, s *scope) error {
	secret := s.secret(naming.CAPIWebhookCert)
	_, err := upsert.Object(ctx, r.Client, secret, func() error {
		s.own(secret)
		if len(secret.Data[corev1.TLSCertKey]) > 0 && len(secret.Data[corev1.TLSPrivateKeyKey]) > 0 {
			return nil
		}
		pair, err := pki.NewCA(pki.Name{CommonName: "capi-webhooks", OrganizationalUnits: []string{"openshift"}}, s.now)
		if err != nil {
			return err
		}
		if secret.Type == "" {
			secret.Type = corev1.SecretTypeTLS
		}
		secret.Data = map[string][]byte{corev1.TLSCertKey: pair.CertPEM, corev1.TLSPrivateKeyKey: pair.KeyPEM}
		return nil
	})
	return err
}

// readCRDs lets Cluster API and the provider find out which versions of the kinds are served.
func (r *Reconciler) readCRDs(ctx context.Context, s *scope) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: crdReaderRole}}
	_, err := upsert.Object(ctx, r.Client, role, func() error {
		role.Rules = []rbacv1.PolicyRule{{
			APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get", "list", "watch"},
		}}
		return nil
	})
	if err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: crdReaderBinding(s)}}
	_, err = upsert.Object(ctx, r.Client, binding, func() error {
		if err := s.claimClusterWide(binding); err != nil {
			return err
		}
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: crdReaderRole}
		binding.Subjects = []rbacv1.Subject{
			{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: capiManagerName},
			{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: capiProviderName},
		}
		return nil
	})
	return err
}

// ownerLabels mark objects outside the hosted namespace that go with the cluster.
func (s *scope) ownerLabels() map[string]string {
	return map[string]string{ownerNamespace: s.hc.Namespace, ownerName: s.hc.Name}
}

// claimClusterWide labels an object outside the hosted namespace as the cluster's, and refuses one that exists and is not: its name
// follows from names that a tenant chose.
func (s *scope) claimClusterWide(obj metav1.Object) error {
	labels := obj.GetLabels()
	if obj.GetResourceVersion() != "" && (labels[ownerNamespace] != s.hc.Namespace || labels[ownerName] != s.hc.Name) {
		return errors.New("it is there already and not this cluster's: rename the cluster")
	}
	label(obj, s.ownerLabels())
	return nil
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path},
	}}
}

func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}}
}

func httpProbe(path, port string, delay, period int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(port), Scheme: corev1.URISchemeHTTP}},
		InitialDelaySeconds: delay,
		PeriodSeconds:       period,
		TimeoutSeconds:      5,
		SuccessThreshold:    1,
		FailureThreshold:    3,
	}
}

func secretVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}
}
