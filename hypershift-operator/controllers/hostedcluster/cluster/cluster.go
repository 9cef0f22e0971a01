// SPDX-License-Identifier: Apache-2.0

// Package cluster holds what all phases of a HostedCluster's reconcile share: the objects that the reconcile read
// first, and the conditions that it sets.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/tenancy"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/upsert"
)

// ClusterAPIManager is the name of the manager that runs Cluster API's own controllers.
const ClusterAPIManager = "cluster-api"

// Labels that map an object outside the hosted namespace to its HostedCluster.
const (
	OwnerNamespace = "hypershift.openshift.io/owner.namespace"
	OwnerName      = "hypershift.openshift.io/owner.name"
)

// Scope is what all phases of one reconcile share.
type Scope struct {
	// HC is the object as it was read, plus the identities that were added before the phases.
	HC *hyperv1.HostedCluster
	// HCP is nil if it does not exist; the hosted control plane phase sets it after creation.
	HCP *hyperv1.HostedControlPlane
	// Namespace is the namespace of the hosted control plane.
	Namespace string
	// Refused is the reason why the namespace does not belong to this cluster; empty if it does, or does not exist.
	Refused string
	Now     time.Time
	// Platform is nil if there is no plugin. If PlatformServed is false, the management cluster does not serve the
	// platform's kinds.
	Platform       platform.Platform
	PlatformServed bool
	// CredentialsHash changes with the platform's credentials; set by the platform credentials phase.
	CredentialsHash string
	// Pools are the cluster's NodePools, sorted by name.
	Pools []hyperv1.NodePool
	// Release is the payload that the control plane runs. It differs from the desired one while an upgrade is blocked; set
	// by the release payload phase.
	Release *releaseinfo.ReleaseImage

	// Conditions are those that phases set in this reconcile, by type. All others keep their last state.
	Conditions map[string]metav1.Condition
	// Cleared are the types of conditions that no longer apply and are removed.
	Cleared []string
}

// NewScope returns the scope of a HostedCluster before its first phase.
func NewScope(hc *hyperv1.HostedCluster) *Scope {
	return &Scope{HC: hc, Namespace: naming.ControlPlaneNamespace(hc), Conditions: map[string]metav1.Condition{}}
}

// SetCondition records a condition for the status.
func (s *Scope) SetCondition(c metav1.Condition) {
	s.Conditions[c.Type] = c
}

// Accept sets a condition to true.
func (s *Scope) Accept(conditionType hyperv1.ConditionType) {
	s.SetCondition(condition.True(string(conditionType), hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage))
}

// Reject sets a condition to false.
func (s *Scope) Reject(conditionType hyperv1.ConditionType, reason, message string) {
	s.SetCondition(condition.False(string(conditionType), reason, message))
}

// Clear removes a condition that only exists together with its subject.
func (s *Scope) Clear(conditionType hyperv1.ConditionType) {
	s.Cleared = append(s.Cleared, string(conditionType))
}

// Reported returns the conditions that the control plane reports.
func (s *Scope) Reported() []metav1.Condition {
	if s.HCP == nil {
		return nil
	}
	return s.HCP.Status.Conditions
}

// Distribution returns the traits of the distribution of the control plane's release.
func (s *Scope) Distribution() distributions.Traits {
	return distributions.Of(s.Release.Distribution())
}

// ForPlatform returns what the platform's plugin may read.
func (s *Scope) ForPlatform(operatorImage string) platform.Cluster {
	return platform.Cluster{
		HostedCluster: s.HC, ControlPlane: s.HCP, Namespace: s.Namespace,
		OperatorImage: operatorImage, NodePools: s.Pools, CredentialsHash: s.CredentialsHash,
	}
}

// Key returns the namespace and name of the HostedCluster.
func (s *Scope) Key() client.ObjectKey { return client.ObjectKeyFromObject(s.HC) }

// BackPointer returns the value of the annotation that maps an object to its HostedCluster.
func (s *Scope) BackPointer() string { return s.Key().String() }

// Secret returns an empty Secret of the hosted namespace.
func (s *Scope) Secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
}

// Claim marks an object with a fixed name in the hosted namespace as written by the operator for this cluster.
func (s *Scope) Claim(obj client.Object) error {
	if err := tenancy.Claim(obj, s.Key()); err != nil {
		return err
	}
	hosted.MarkOperatorObject(obj)
	return nil
}

// Own marks an object as created for this cluster.
func (s *Scope) Own(obj metav1.Object) {
	Annotate(obj, hyperv1.HostedClusterAnnotation, s.BackPointer())
}

// OwnerLabels returns the labels of objects outside the hosted namespace that belong to the cluster.
func (s *Scope) OwnerLabels() map[string]string {
	return map[string]string{OwnerNamespace: s.HC.Namespace, OwnerName: s.HC.Name}
}

// ClaimClusterWide labels an object outside the hosted namespace as the cluster's. It rejects an existing object of
// another owner, because the name derives from names that a tenant chose.
func (s *Scope) ClaimClusterWide(obj metav1.Object) error {
	if obj.GetResourceVersion() != "" && !s.OwnsClusterWide(obj) {
		return errors.New("it is there already and not this cluster's: rename the cluster")
	}
	Label(obj, s.OwnerLabels())
	return nil
}

// OwnsClusterWide reports whether an object outside the hosted namespace has the labels of this cluster.
func (s *Scope) OwnsClusterWide(obj metav1.Object) bool {
	labels := obj.GetLabels()
	return labels[OwnerNamespace] == s.HC.Namespace && labels[OwnerName] == s.HC.Name
}

// Drop deletes an object if it exists and belongs to this cluster. The names may collide: the kubeconfig of a cluster
// a-custom has the name of the custom kubeconfig of a cluster a.
func (s *Scope) Drop(ctx context.Context, c client.Client, obj client.Object) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	if tenancy.Owner(obj) != s.BackPointer() {
		return nil
	}
	_, err = upsert.Gone(ctx, c, obj)
	return err
}

// Annotate sets one annotation on an object.
func Annotate(obj metav1.Object, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}

// Label sets labels on an object and keeps the others.
func Label(obj metav1.Object, labels map[string]string) {
	all := obj.GetLabels()
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, labels)
	obj.SetLabels(all)
}

// Serves reports whether the management cluster serves a kind of an optional API.
func Serves(c client.Client, group, kind string) bool {
	_, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
	return err == nil || !meta.IsNoMatchError(err)
}
