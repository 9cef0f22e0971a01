// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/tenancy"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// If the management cluster does not assign user IDs to namespaces, each hosted control plane gets a unique one from
	// this range. Two control planes on one node then never run as the same user.
	firstSecurityUID = 1001
	securityUIDs     = 10000
)

// reconcileNamespace creates the namespace of the control plane.
func (r *Reconciler) reconcileNamespace(ctx context.Context, s *scope) (ctrl.Result, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	r.identities.Lock()
	_, err := upsert.Object(ctx, r.Client, namespace, func() error {
		return r.shapeNamespace(ctx, s, namespace)
	})
	r.identities.Unlock()
	if err != nil {
		return ctrl.Result{}, err
	}
	if !namespace.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, fmt.Errorf("namespace %s is being deleted without its HostedCluster; the control plane cannot run "+
			"until the namespace is gone and created again; see its conditions for what blocks the deletion", s.namespace)
	}
	s.securityUID = namespace.Annotations[hyperv1.DefaultSecurityContextUIDAnnotation]
	return ctrl.Result{}, r.markServed(ctx, s, namespace)
}

func (r *Reconciler) shapeNamespace(ctx context.Context, s *scope, namespace *corev1.Namespace) error {
	if namespace.ResourceVersion != "" {
		if why := tenancy.Refusal(namespace, s.key()); why != "" {
			return errors.New(why)
		}
	}
	if namespace.Labels[enforceLabel] == "" {
		setPodSecurity(namespace, restricted)
	}
	label(namespace, map[string]string{
		hyperv1.ControlPlaneNamespaceLabel:               "true",
		"security.openshift.io/scc.podSecurityLabelSync": "false",
	})
	if r.Settings.PlatformMonitoring {
		label(namespace, map[string]string{hyperv1.ClusterMonitoringLabel: "true"})
	}
	annotate(namespace, hyperv1.HostedClusterAnnotation, s.backPointer())
	if namespace.Annotations[hyperv1.DefaultSecurityContextUIDAnnotation] != "" || r.managementHas("security.openshift.io", "SecurityContextConstraints") {
		return nil
	}
	uid, err := r.freeSecurityUID(ctx)
	if err != nil {
		return err
	}
	annotate(namespace, hyperv1.DefaultSecurityContextUIDAnnotation, strconv.Itoa(uid))
	return nil
}

// refuseNamespace is the only phase for a cluster whose namespace belongs to another owner. It neither changes nor
// reports anything in that namespace.
func (r *Reconciler) refuseNamespace(_ context.Context, s *scope) (ctrl.Result, error) {
	s.reject(hyperv1.ValidHostedClusterConfiguration, hyperv1.NamespaceNotOwnedReason, s.refused)
	return ctrl.Result{}, errors.New(s.refused)
}

// freeSecurityUID returns the lowest user ID that no hosted namespace has.
func (r *Reconciler) freeSecurityUID(ctx context.Context) (int, error) {
	namespaces := &corev1.NamespaceList{}
	if err := r.LiveReader.List(ctx, namespaces, client.MatchingLabels{hyperv1.ControlPlaneNamespaceLabel: "true"}); err != nil {
		return 0, fmt.Errorf("listing hosted namespaces to find a free user ID: %w", err)
	}
	used := map[string]bool{}
	for i := range namespaces.Items {
		used[namespaces.Items[i].Annotations[hyperv1.DefaultSecurityContextUIDAnnotation]] = true
	}
	for uid := firstSecurityUID; uid < firstSecurityUID+securityUIDs; uid++ {
		if !used[strconv.Itoa(uid)] {
			return uid, nil
		}
	}
	return 0, fmt.Errorf("all %d user IDs for hosted control planes are taken", securityUIDs)
}
