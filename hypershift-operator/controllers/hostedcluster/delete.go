// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/namespaceguard"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

// deletion returns the steps that delete a cluster. The machines go first, while the managers that release them still
// run; each step waits until the objects that it deleted are gone. No step requires an object to exist. A cluster whose
// namespace belongs to another cluster never had objects in it.
func (r *Reconciler) deletion(s *scope) []phase.Phase[*scope] {
	if s.refused != "" {
		return []phase.Phase[*scope]{step("node pools", r.deleteNodePools), step("cluster-wide rights", r.deleteClusterRoles)}
	}
	return []phase.Phase[*scope]{
		step("pause of the cluster", r.resumeForDeletion),
		step("node pools", r.deleteNodePools),
		step("machines", r.deleteMachines),
		step("machines without Cluster", r.deleteOrphanedMachines),
		step("managers of machines", r.releaseManagers),
		step("platform credentials", r.deleteCredentials),
		step("connection of nodes", r.deleteConnection),
		step("hosted control plane", r.deleteControlPlane),
		step("issuer of service accounts", r.withdrawIssuer),
		step("control plane namespace", r.deleteNamespace),
		step("cluster-wide rights", r.deleteClusterRoles),
		{Name: "grace period", Critical: true, Run: waitForGrace},
	}
}

// stepFunc deletes one part of a cluster. waitsFor describes what still exists; empty when the part is gone.
type stepFunc func(ctx context.Context, s *scope) (waitsFor string, err error)

// step returns a phase of the deletion. Later phases wait until the part that it deletes is gone.
func step(name string, run stepFunc) phase.Phase[*scope] {
	return phase.Phase[*scope]{Name: "deleting the " + name, Critical: true, Run: func(ctx context.Context, s *scope) (ctrl.Result, error) {
		waitsFor, err := run(ctx, s)
		if phase.Outdated(err) {
			// Not a failure: the next reconcile follows immediately with the current object.
			s.deletion = fmt.Sprintf("Deleting the %s", name)
			return ctrl.Result{}, err
		}
		if err != nil {
			s.deletion = fmt.Sprintf("Deleting the %s failed and is tried again: %v", name, err)
			return ctrl.Result{}, err
		}
		if waitsFor != "" {
			s.deletion = waitsFor
			return ctrl.Result{RequeueAfter: deletionPoll}, phase.ErrStop
		}
		return phase.Done()
	}}
}

// resumeForDeletion ends a pause, because Cluster API and the control plane's operators would also honor it during a
// deletion.
func (r *Reconciler) resumeForDeletion(ctx context.Context, s *scope) (string, error) {
	cleanup := s.HC.Annotations[hyperv1.CleanupCloudResourcesAnnotation]
	return "", errors.Join(
		r.patchControlPlane(ctx, s, func() {
			s.HCP.Spec.PausedUntil = nil
			if s.HCP.Annotations[hyperv1.CleanupCloudResourcesAnnotation] != cleanup {
				cluster.Annotate(s.HCP, hyperv1.CleanupCloudResourcesAnnotation, cleanup)
			}
		}),
		r.pauseCluster(ctx, s, false),
	)
}

// deleteNodePools deletes the NodePools without waiting; each one waits for its own machines.
func (r *Reconciler) deleteNodePools(ctx context.Context, s *scope) (string, error) {
	pools := &hyperv1.NodePoolList{}
	if err := r.Client.List(ctx, pools, client.InNamespace(s.HC.Namespace)); err != nil {
		return "", fmt.Errorf("listing NodePools: %w", err)
	}
	var failures []error
	for i := range pools.Items {
		pool := &pools.Items[i]
		if pool.Spec.ClusterName != s.HC.Name || !pool.DeletionTimestamp.IsZero() {
			continue
		}
		failures = append(failures, client.IgnoreNotFound(r.Client.Delete(ctx, pool)))
	}
	return "", errors.Join(failures...)
}

// deleteMachines deletes the Cluster, with which Cluster API deletes all machines, and waits for it.
func (r *Reconciler) deleteMachines(ctx context.Context, s *scope) (string, error) {
	if s.HC.Spec.InfraID == "" {
		return "", nil
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.HC.Spec.InfraID}}
	gone, err := upsert.Gone(ctx, r.Client, cluster)
	if err != nil || gone {
		return "", err
	}
	waitsFor := fmt.Sprintf("Waiting for Cluster API to delete Cluster %s/%s with its machines%s",
		cluster.Namespace, cluster.Name, s.remainingInGuest())
	if !s.PlatformServed {
		return waitsFor, nil
	}
	why, err := s.Platform.OrphanedMachines(ctx, r.Client, s.ForPlatform(r.Settings.OperatorImage))
	if why != "" {
		waitsFor += ". " + why
	}
	return waitsFor, err
}

// remainingInGuest returns what a control plane under deletion still waits for in its cluster, such as persistent
// volumes. Cluster API deletes the control plane with the Cluster, so the Cluster waits for the same. It is empty if
// there is nothing to wait for.
func (s *scope) remainingInGuest() string {
	if s.HCP == nil || s.HCP.DeletionTimestamp.IsZero() {
		return ""
	}
	destroyed := condition.Copy(s.HCP.Status.Conditions, string(hyperv1.CloudResourcesDestroyed), "")
	if destroyed.Status != metav1.ConditionFalse || destroyed.Message == "" {
		return ""
	}
	return ". The hosted control plane first removes what the hosted cluster has made outside: " +
		strings.TrimSuffix(destroyed.Message, ".")
}

// releaseManagers releases the machine managers after all machines are gone.
func (r *Reconciler) releaseManagers(ctx context.Context, s *scope) (string, error) {
	for _, name := range []string{capiManagerName, capiProviderName} {
		if err := component.Release(ctx, r.Client, client.ObjectKey{Namespace: s.Namespace, Name: name}); err != nil {
			return "", err
		}
	}
	return "", nil
}

func (r *Reconciler) deleteCredentials(ctx context.Context, s *scope) (string, error) {
	if s.Platform == nil {
		return "", nil
	}
	return "", s.Platform.DeleteCredentials(ctx, r.Client, s.ForPlatform(r.Settings.OperatorImage))
}

func (r *Reconciler) deleteControlPlane(ctx context.Context, s *scope) (string, error) {
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.HC.Name}}
	gone, err := upsert.Gone(ctx, r.Client, hcp)
	if err != nil || gone {
		return "", err
	}
	return fmt.Sprintf("Waiting for HostedControlPlane %s/%s to be deleted; its operators have yet to remove the "+
		"finalizers %v%s",
		hcp.Namespace, hcp.Name, hcp.Finalizers, s.remainingInGuest()), nil
}

func (r *Reconciler) deleteNamespace(ctx context.Context, s *scope) (string, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	if err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if namespace.Annotations[hyperv1.HostedClusterAnnotation] != s.BackPointer() {
		return "", nil // The namespace never belonged to this cluster.
	}
	if s.HC.Annotations[hyperv1.SkipDeleteHostedControlPlaneNamespaceAnnotation] == "true" {
		// With this annotation, the janitor keeps the namespace after the cluster is gone.
		err := upsert.Patch(ctx, r.Client, namespace,
			func() { cluster.Annotate(namespace, hyperv1.OrphanPolicyAnnotation, hyperv1.OrphanPolicyKeep) })
		return "", client.IgnoreNotFound(err)
	}
	if namespace.DeletionTimestamp == nil {
		if waitsFor, err := r.stopWorkloads(ctx, s); err != nil || waitsFor != "" {
			return waitsFor, err
		}
		// The machines are gone, so the policy that guards the namespace against premature deletion is no longer needed.
		if err := upsert.Patch(ctx, r.Client, namespace, func() { cluster.Annotate(namespace, namespaceguard.ReleasedAnnotation, "true") }); err != nil {
			return "", client.IgnoreNotFound(err)
		}
	}
	gone, err := upsert.Gone(ctx, r.Client, namespace)
	if err != nil || gone {
		return "", err
	}
	return fmt.Sprintf("Waiting for namespace %s to be deleted%s", s.Namespace, whyNamespaceStays(namespace)), nil
}

// whyNamespaceStays returns the reasons from the namespace's conditions why it is not deleted yet.
func whyNamespaceStays(namespace *corev1.Namespace) string {
	var reasons []string
	for _, c := range namespace.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Message != "" {
			reasons = append(reasons, c.Message)
		}
	}
	if len(reasons) == 0 {
		return ""
	}
	return ". " + strings.Join(reasons, ". ")
}

// deleteClusterRoles deletes the RBAC objects of a cluster outside its namespace.
func (r *Reconciler) deleteClusterRoles(ctx context.Context, s *scope) (string, error) {
	owned := client.MatchingLabels(s.OwnerLabels())
	return "", errors.Join(
		r.Client.DeleteAllOf(ctx, &rbacv1.ClusterRoleBinding{}, owned),
		r.Client.DeleteAllOf(ctx, &rbacv1.ClusterRole{}, owned),
		r.dropAuthenticationReader(ctx, s),
	)
}

// waitForGrace keeps the object for the grace period that an annotation may request.
func waitForGrace(_ context.Context, s *scope) (ctrl.Result, error) {
	left := s.graceLeft()
	if left <= 0 {
		return phase.Done()
	}
	s.deletion = "Everything is deleted; the grace period lasts until " + s.Now.Add(left).UTC().Format(time.RFC3339)
	return ctrl.Result{RequeueAfter: left}, phase.ErrStop
}

// graceLeft returns the rest of the grace period of a deleted cluster's object. The period begins when everything else
// is deleted.
func (s *scope) graceLeft() time.Duration {
	grace, err := time.ParseDuration(s.HC.Annotations[hyperv1.HCDestroyGracePeriodAnnotation])
	if err != nil || grace <= 0 {
		return 0
	}
	since := s.Now
	destroyed := condition.Copy(s.HC.Status.Conditions, string(hyperv1.HostedClusterDestroyed), "")
	if destroyed.Status == metav1.ConditionTrue {
		for _, c := range s.HC.Status.Conditions {
			if c.Type == destroyed.Type {
				since = c.LastTransitionTime.Time
			}
		}
	}
	s.SetCondition(condition.True(string(hyperv1.HostedClusterDestroyed), hyperv1.WaitingForGracePeriodReason,
		"Everything is deleted; the object stays for its grace period"))
	return since.Add(grace).Sub(s.Now)
}
