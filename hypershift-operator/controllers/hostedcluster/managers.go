// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"strconv"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/rbac"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/upsert"
)

//go:embed manifests
var manifests embed.FS

// operator is the operator's name, and its field manager for server-side apply.
const operator = "hypershift-operator"

// The managers that the operator runs in a hosted namespace, including the platform's provider, are components of the
// control plane.
const (
	controlPlaneOperatorName = rbac.ControlPlaneOperator
	capiManagerName          = cluster.ClusterAPIManager
	capiProviderName         = platform.ProviderName
)

func folder(name string) fs.FS {
	files, _ := fs.Sub(manifests, "manifests/"+name)
	return files
}

// components returns the data about their control plane that managers may read.
func (r *Reconciler) components(s *scope) *component.Scope {
	return &component.Scope{
		Client: r.Client, HCP: s.HCP, Operator: operator, Version: s.Release.Version(), Images: s.Release, PodUID: s.securityUserID(),
		MetricsSet: r.Settings.PassedEnv["METRICS_SET"],
	}
}

func (r *Reconciler) reconcileControlPlaneOperator(ctx context.Context, s *scope) (ctrl.Result, error) {
	if err := r.reviewReaders(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.controlPlaneOperator(s).Reconcile(ctx, r.components(s))
}

// reconcileCAPIManager runs Cluster API's own controllers for the cluster.
func (r *Reconciler) reconcileCAPIManager(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !r.wantsManagers(s) {
		return ctrl.Result{}, r.leave(ctx, s, capiManagerName)
	}
	if err := errors.Join(r.webhookCertificate(ctx, s), r.readCRDs(ctx, s)); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, s.capiManager().Reconcile(ctx, r.components(s))
}

// reconcileCAPIProvider runs the platform's Cluster API provider for the cluster.
func (r *Reconciler) reconcileCAPIProvider(ctx context.Context, s *scope) (ctrl.Result, error) {
	r.reportProvider(s)
	if completer, ok := s.Platform.(platform.StatusCompleter); ok {
		if err := completer.CompleteStatus(ctx, r.Client, s.ForPlatform(r.Settings.OperatorImage)); err != nil {
			return ctrl.Result{}, err
		}
	}
	if r.wantsManagers(s) {
		if provider := s.Platform.Provider(s.ForPlatform(r.Settings.OperatorImage)); provider != nil {
			return ctrl.Result{}, provider.Reconcile(ctx, r.components(s))
		}
	}
	return ctrl.Result{}, r.leave(ctx, s, capiProviderName)
}

// reportProvider reports what is not guaranteed while a third-party provider creates the machines.
func (r *Reconciler) reportProvider(s *scope) {
	s.Clear(hyperv1.PlatformProviderSupported)
	if chooser, ok := s.Platform.(platform.ProviderChooser); ok {
		if lacks := chooser.NotHonored(s.ForPlatform(r.Settings.OperatorImage)); lacks != "" {
			s.Reject(hyperv1.PlatformProviderSupported, hyperv1.ForeignProviderReason, lacks)
		}
	}
}

// wantsManagers reports whether Cluster API and the provider run for the cluster. They run from the beginning, before
// the control plane has an address. An operator of an OpenShift payload assumes that the existing
// ControlPlaneComponents are complete. It would otherwise report a complete control plane when there is none.
func (r *Reconciler) wantsManagers(s *scope) bool {
	if _, disabled := s.HC.Annotations[hyperv1.DisableMachineManagement]; disabled {
		return false
	}
	c := s.ForPlatform(r.Settings.OperatorImage)
	return s.Platform.InfraCluster(c) != nil || s.Platform.Provider(c) != nil
}

// leave deletes the ControlPlaneComponent of a manager that this reconcile does not need. The manager itself keeps
// running, because it may have machines to release. Without its ControlPlaneComponent, the rollout of a release does
// not wait for it.
func (r *Reconciler) leave(ctx context.Context, s *scope, name string) error {
	_, err := upsert.Gone(ctx, r.Client, &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}})
	return err
}

// readCRDs lets Cluster API and the provider discover the served versions of their kinds.
func (r *Reconciler) readCRDs(ctx context.Context, s *scope) error {
	return r.grantClusterWide(ctx, s, crdReaderRole, []rbacv1.PolicyRule{{
		APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get", "list", "watch"},
	}}, capiManagerName, capiProviderName)
}

// reviewReaders lets this product's components that serve metrics authenticate and authorize their clients.
func (r *Reconciler) reviewReaders(ctx context.Context, s *scope) error {
	return r.grantClusterWide(ctx, s, metricsRole, []rbacv1.PolicyRule{
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
	}, controlPlaneOperatorName, capiProviderName, rbac.ConfigOperator, "ignition-server")
}

// grantClusterWide grants service accounts of the hosted namespace rights that a Role cannot grant. All clusters share
// the ClusterRole.
func (r *Reconciler) grantClusterWide(ctx context.Context, s *scope, name string, rules []rbacv1.PolicyRule, accounts ...string) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := upsert.Object(ctx, r.Client, role, func() error {
		role.Rules = rules
		return nil
	})
	if err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + s.Namespace}}
	_, err = upsert.Object(ctx, r.Client, binding, func() error {
		if err := s.ClaimClusterWide(binding); err != nil {
			return err
		}
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
		binding.Subjects = nil
		for _, account := range accounts {
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: account})
		}
		return nil
	})
	return err
}

// securityUserID returns securityUID as an integer for pods, or nil if the management cluster assigns user IDs itself.
func (s *scope) securityUserID() *int64 {
	uid, err := strconv.ParseInt(s.securityUID, 10, 64)
	if err != nil {
		return nil
	}
	return &uid
}
