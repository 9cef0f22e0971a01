// SPDX-License-Identifier: Apache-2.0

// Package namespace creates the namespace of a hosted control plane, and isolates it from other namespaces, from the
// management cluster and from its nodes.
package namespace

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/tenancy"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// If the management cluster does not assign user IDs to namespaces, each hosted control plane gets a unique one from
	// this range. Two control planes on one node then never run as the same user.
	firstSecurityUID = 1001
	securityUIDs     = 10000
)

// Creator creates the namespace of the control plane.
type Creator struct {
	Client client.Client
	// LiveReader bypasses the cache.
	LiveReader client.Reader
	// Monitored lets OpenShift's own Prometheus scrape the namespace.
	Monitored bool
	// Identities is locked while a namespace gets its user ID, so that two clusters do not get the same one.
	Identities sync.Locker
}

// Reconcile writes the namespace. It returns the user ID of the namespace's pods; empty if the management cluster assigns
// user IDs.
func (r Creator) Reconcile(ctx context.Context, s *cluster.Scope) (uid string, err error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
	r.Identities.Lock()
	_, err = upsert.Object(ctx, r.Client, namespace, func() error {
		return r.shape(ctx, s, namespace)
	})
	r.Identities.Unlock()
	if err != nil {
		return "", err
	}
	if !namespace.DeletionTimestamp.IsZero() {
		return "", fmt.Errorf("namespace %s is being deleted without its HostedCluster; the control plane cannot run "+
			"until the namespace is gone and created again; see its conditions for what blocks the deletion", s.Namespace)
	}
	return namespace.Annotations[hyperv1.DefaultSecurityContextUIDAnnotation], r.markServed(ctx, s, namespace)
}

func (r Creator) shape(ctx context.Context, s *cluster.Scope, namespace *corev1.Namespace) error {
	if namespace.ResourceVersion != "" {
		if why := tenancy.Refusal(namespace, s.Key()); why != "" {
			return errors.New(why)
		}
	}
	if namespace.Labels[enforceLabel] == "" {
		setPodSecurity(namespace, restricted)
	}
	cluster.Label(namespace, map[string]string{
		hyperv1.ControlPlaneNamespaceLabel:               "true",
		"security.openshift.io/scc.podSecurityLabelSync": "false",
	})
	if r.Monitored {
		cluster.Label(namespace, map[string]string{hyperv1.ClusterMonitoringLabel: "true"})
	}
	cluster.Annotate(namespace, hyperv1.HostedClusterAnnotation, s.BackPointer())
	if namespace.Annotations[hyperv1.DefaultSecurityContextUIDAnnotation] != "" || cluster.Serves(r.Client, "security.openshift.io", "SecurityContextConstraints") {
		return nil
	}
	uid, err := r.freeSecurityUID(ctx)
	if err != nil {
		return err
	}
	cluster.Annotate(namespace, hyperv1.DefaultSecurityContextUIDAnnotation, strconv.Itoa(uid))
	return nil
}

// freeSecurityUID returns the lowest user ID that no hosted namespace has.
func (r Creator) freeSecurityUID(ctx context.Context) (int, error) {
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
