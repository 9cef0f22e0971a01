// SPDX-License-Identifier: Apache-2.0

// Package deletion deletes the parts of a HostedCluster, one step after another.
package deletion

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/plugin"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/rbac"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/namespaceguard"
	"github.com/openshift/hypershift/support/upsert"
)

// Poll is the interval between checks of what a step waits for.
const Poll = 2 * time.Second

// Deleter deletes clusters.
type Deleter struct {
	Client client.Client
	// LiveReader bypasses the cache.
	LiveReader    client.Reader
	OperatorImage string
}

// Step deletes one part of a cluster.
type Step struct {
	// Name is the name of the part.
	Name string
	// Run returns a description of what still exists; empty when the part is gone.
	Run func(ctx context.Context, s *cluster.Scope) (waitsFor string, err error)
}

// Steps returns the steps that delete a cluster. The machines go first, while the managers that release them still run;
// each step waits until the objects that it deleted are gone. No step requires an object to exist. A cluster whose
// namespace belongs to another cluster never had objects in it.
func (r Deleter) Steps(s *cluster.Scope) []Step {
	pools, rights := Step{"node pools", r.deleteNodePools}, Step{"cluster-wide rights", r.DeleteClusterRoles}
	if s.Refused != "" {
		return []Step{pools, rights}
	}
	return []Step{
		{"pause of the cluster", r.resume},
		pools,
		{"machines", r.deleteMachines},
		{"machines without Cluster", r.deleteOrphanedMachines},
		{"managers of machines", r.releaseManagers},
		{"platform credentials", r.deleteCredentials},
		{"connection of nodes", plugin.Connection{Client: r.Client, OperatorImage: r.OperatorImage}.Delete},
		{"hosted control plane", r.deleteControlPlane},
		{"issuer of service accounts", plugin.Issuer{Client: r.Client, OperatorImage: r.OperatorImage}.Withdraw},
		{"control plane namespace", r.deleteNamespace},
		rights,
	}
}

// resume ends a pause, because Cluster API and the control plane's operators would also honor it during a
// deletion.
func (r Deleter) resume(ctx context.Context, s *cluster.Scope) (string, error) {
	cleanup := s.HC.Annotations[hyperv1.CleanupCloudResourcesAnnotation]
	return "", errors.Join(
		s.PatchControlPlane(ctx, r.Client, func() {
			s.HCP.Spec.PausedUntil = nil
			if s.HCP.Annotations[hyperv1.CleanupCloudResourcesAnnotation] != cleanup {
				cluster.Annotate(s.HCP, hyperv1.CleanupCloudResourcesAnnotation, cleanup)
			}
		}),
		s.PauseMachines(ctx, r.Client, false),
	)
}

// deleteNodePools deletes the NodePools without waiting; each one waits for its own machines.
func (r Deleter) deleteNodePools(ctx context.Context, s *cluster.Scope) (string, error) {
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
func (r Deleter) deleteMachines(ctx context.Context, s *cluster.Scope) (string, error) {
	if s.HC.Spec.InfraID == "" {
		return "", nil
	}
	capi := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.HC.Spec.InfraID}}
	gone, err := upsert.Gone(ctx, r.Client, capi)
	if err != nil || gone {
		return "", err
	}
	waitsFor := fmt.Sprintf("Waiting for Cluster API to delete Cluster %s/%s with its machines%s",
		capi.Namespace, capi.Name, remainingInGuest(s))
	if !s.PlatformServed {
		return waitsFor, nil
	}
	why, err := s.Platform.OrphanedMachines(ctx, r.Client, s.ForPlatform(r.OperatorImage))
	if why != "" {
		waitsFor += ". " + why
	}
	return waitsFor, err
}

// remainingInGuest returns what a control plane under deletion still waits for in its cluster, such as persistent
// volumes. Cluster API deletes the control plane with the Cluster, so the Cluster waits for the same. It is empty if
// there is nothing to wait for.
func remainingInGuest(s *cluster.Scope) string {
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
func (r Deleter) releaseManagers(ctx context.Context, s *cluster.Scope) (string, error) {
	for _, name := range []string{cluster.ClusterAPIManager, platform.ProviderName} {
		if err := component.Release(ctx, r.Client, client.ObjectKey{Namespace: s.Namespace, Name: name}); err != nil {
			return "", err
		}
	}
	return "", nil
}

func (r Deleter) deleteCredentials(ctx context.Context, s *cluster.Scope) (string, error) {
	if s.Platform == nil {
		return "", nil
	}
	return "", s.Platform.DeleteCredentials(ctx, r.Client, s.ForPlatform(r.OperatorImage))
}

func (r Deleter) deleteControlPlane(ctx context.Context, s *cluster.Scope) (string, error) {
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.HC.Name}}
	gone, err := upsert.Gone(ctx, r.Client, hcp)
	if err != nil || gone {
		return "", err
	}
	return fmt.Sprintf("Waiting for HostedControlPlane %s/%s to be deleted; its operators have yet to remove the "+
		"finalizers %v%s",
		hcp.Namespace, hcp.Name, hcp.Finalizers, remainingInGuest(s)), nil
}

func (r Deleter) deleteNamespace(ctx context.Context, s *cluster.Scope) (string, error) {
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

// DeleteClusterRoles deletes the RBAC objects of a cluster outside its namespace.
func (r Deleter) DeleteClusterRoles(ctx context.Context, s *cluster.Scope) (string, error) {
	owned := client.MatchingLabels(s.OwnerLabels())
	return "", errors.Join(
		r.Client.DeleteAllOf(ctx, &rbacv1.ClusterRoleBinding{}, owned),
		r.Client.DeleteAllOf(ctx, &rbacv1.ClusterRole{}, owned),
		rbac.AuthenticationReader{Client: r.Client}.Drop(ctx, s),
	)
}

// GraceLeft returns the rest of the grace period of a deleted cluster's object. The period begins when everything else
// is deleted.
func GraceLeft(s *cluster.Scope) time.Duration {
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
