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
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/namespaceguard"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/upsert"
)

// deletion takes a cluster apart. The machines go first, while the managers that release them still run; each step waits
// until what it removed is really gone. None needs an object to exist.
// A cluster whose namespace is another's never had anything in there.
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

// stepFunc takes one part of a cluster away. waitsFor says what is not gone yet; empty when nothing of it is left.
type stepFunc func(ctx context.Context, s *scope) (waitsFor string, err error)

// step is a phase of the deletion: those after it wait until what it removes is gone.
func step(name string, run stepFunc) phase.Phase[*scope] {
	return phase.Phase[*scope]{Name: "deleting the " + name, Critical: true, Run: func(ctx context.Context, s *scope) (ctrl.Result, error) {
		waitsFor, err := run(ctx, s)
		if phase.Outdated(err) {
			// The next reconcile follows at once with the object as it is now: nothing failed.
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

// resumeForDeletion takes back a pause, which Cluster API and the control plane's operators would also honour for a deletion.
func (r *Reconciler) resumeForDeletion(ctx context.Context, s *scope) (string, error) {
	cleanup := s.hc.Annotations[hyperv1.CleanupCloudResourcesAnnotation]
	return "", errors.Join(
		r.patchControlPlane(ctx, s, func() {
			s.hcp.Spec.PausedUntil = nil
			if s.hcp.Annotations[hyperv1.CleanupCloudResourcesAnnotation] != cleanup {
				annotate(s.hcp, hyperv1.CleanupCloudResourcesAnnotation, cleanup)
			}
		}),
		r.pauseCluster(ctx, s, false),
	)
}

// deleteNodePools asks for their deletion; each waits for its own machines.
func (r *Reconciler) deleteNodePools(ctx context.Context, s *scope) (string, error) {
	pools := &hyperv1.NodePoolList{}
	if err := r.Client.List(ctx, pools, client.InNamespace(s.hc.Namespace)); err != nil {
		return "", fmt.Errorf("listing NodePools: %w", err)
	}
	var failures []error
	for i := range pools.Items {
		pool := &pools.Items[i]
		if pool.Spec.ClusterName != s.hc.Name || !pool.DeletionTimestamp.IsZero() {
			continue
		}
		failures = append(failures, client.IgnoreNotFound(r.Client.Delete(ctx, pool)))
	}
	return "", errors.Join(failures...)
}

// deleteMachines lets Cluster API delete all machines with the Cluster, and waits for it.
func (r *Reconciler) deleteMachines(ctx context.Context, s *scope) (string, error) {
	if s.hc.Spec.InfraID == "" {
		return "", nil
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.hc.Spec.InfraID}}
	gone, err := upsert.Gone(ctx, r.Client, cluster)
	if err != nil || gone {
		return "", err
	}
	waitsFor := fmt.Sprintf("Waiting for Cluster API to delete Cluster %s/%s with its machines%s",
		cluster.Namespace, cluster.Name, s.remainingInGuest())
	if !s.platformServed {
		return waitsFor, nil
	}
	why, err := s.platform.OrphanedMachines(ctx, r.Client, s.cluster(r.Settings.OperatorImage))
	if why != "" {
		waitsFor += ". " + why
	}
	return waitsFor, err
}

// remainingInGuest repeats what a control plane that is being deleted still waits for in its cluster, such as
// persistent volumes. Cluster API deletes the control plane with the Cluster, so the Cluster waits for the same. It is
// empty without a wait.
func (s *scope) remainingInGuest() string {
	if s.hcp == nil || s.hcp.DeletionTimestamp.IsZero() {
		return ""
	}
	destroyed := condition.Copy(s.hcp.Status.Conditions, string(hyperv1.CloudResourcesDestroyed), "")
	if destroyed.Status != metav1.ConditionFalse || destroyed.Message == "" {
		return ""
	}
	return ". The hosted control plane first removes what the hosted cluster has made outside: " +
		strings.TrimSuffix(destroyed.Message, ".")
}

// releaseManagers lets the managers of machines go, now that there are no machines.
func (r *Reconciler) releaseManagers(ctx context.Context, s *scope) (string, error) {
	for _, name := range []string{capiManagerName, capiProviderName} {
		if err := component.Release(ctx, r.Client, client.ObjectKey{Namespace: s.namespace, Name: name}); err != nil {
			return "", err
		}
	}
	return "", nil
}

func (r *Reconciler) deleteCredentials(ctx context.Context, s *scope) (string, error) {
	if s.platform == nil {
		return "", nil
	}
	return "", s.platform.DeleteCredentials(ctx, r.Client, s.cluster(r.Settings.OperatorImage))
}

func (r *Reconciler) deleteControlPlane(ctx context.Context, s *scope) (string, error) {
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.hc.Name}}
	gone, err := upsert.Gone(ctx, r.Client, hcp)
	if err != nil || gone {
		return "", err
	}
	return fmt.Sprintf("Waiting for HostedControlPlane %s/%s to be deleted; its operators have yet to remove the "+
		"finalizers %v%s",
		hcp.Namespace, hcp.Name, hcp.Finalizers, s.remainingInGuest()), nil
}

func (r *Reconciler) deleteNamespace(ctx context.Context, s *scope) (string, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	if err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if namespace.Annotations[hyperv1.HostedClusterAnnotation] != s.backPointer() {
		return "", nil // It was never ours.
	}
	if s.hc.Annotations[hyperv1.SkipDeleteHostedControlPlaneNamespaceAnnotation] == "true" {
		// The janitor keeps it too when the cluster is gone.
		err := upsert.Patch(ctx, r.Client, namespace,
			func() { annotate(namespace, hyperv1.OrphanPolicyAnnotation, hyperv1.OrphanPolicyKeep) })
		return "", client.IgnoreNotFound(err)
	}
	if namespace.DeletionTimestamp == nil {
		if waitsFor, err := r.stopWorkloads(ctx, s); err != nil || waitsFor != "" {
			return waitsFor, err
		}
		// The machines are gone: the policy against hasty people has done its duty.
		if err := upsert.Patch(ctx, r.Client, namespace, func() { annotate(namespace, namespaceguard.ReleasedAnnotation, "true") }); err != nil {
			return "", client.IgnoreNotFound(err)
		}
	}
	gone, err := upsert.Gone(ctx, r.Client, namespace)
	if err != nil || gone {
		return "", err
	}
	return fmt.Sprintf("Waiting for namespace %s to be deleted%s", s.namespace, whyNamespaceStays(namespace)), nil
}

// whyNamespaceStays repeats what the management cluster says of a namespace that does not go.
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

// deleteClusterRoles removes the rights of a cluster outside of its namespace.
func (r *Reconciler) deleteClusterRoles(ctx context.Context, s *scope) (string, error) {
	owned := client.MatchingLabels(s.ownerLabels())
	return "", errors.Join(
		r.Client.DeleteAllOf(ctx, &rbacv1.ClusterRoleBinding{}, owned),
		r.Client.DeleteAllOf(ctx, &rbacv1.ClusterRole{}, owned),
		r.dropAuthenticationReader(ctx, s),
	)
}

// waitForGrace keeps the object for the time that an annotation may ask for.
func waitForGrace(_ context.Context, s *scope) (ctrl.Result, error) {
	left := s.graceLeft()
	if left <= 0 {
		return phase.Done()
	}
	s.deletion = "Everything is deleted; the grace period lasts until " + s.now.Add(left).UTC().Format(time.RFC3339)
	return ctrl.Result{RequeueAfter: left}, phase.ErrStop
}

// graceLeft is how long a deleted cluster's object is to stay yet. It counts from the moment that all was gone.
func (s *scope) graceLeft() time.Duration {
	grace, err := time.ParseDuration(s.hc.Annotations[hyperv1.HCDestroyGracePeriodAnnotation])
	if err != nil || grace <= 0 {
		return 0
	}
	since := s.now
	destroyed := condition.Copy(s.hc.Status.Conditions, string(hyperv1.HostedClusterDestroyed), "")
	if destroyed.Status == metav1.ConditionTrue {
		for _, c := range s.hc.Status.Conditions {
			if c.Type == destroyed.Type {
				since = c.LastTransitionTime.Time
			}
		}
	}
	s.setCondition(condition.True(string(hyperv1.HostedClusterDestroyed), hyperv1.WaitingForGracePeriodReason,
		"Everything is deleted; the object stays for its grace period"))
	return since.Add(grace).Sub(s.now)
}
