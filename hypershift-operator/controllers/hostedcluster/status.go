// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/secrets"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/upsert"
)

// report computes the status from the scope, writes it once, and emits events for changes. It also sets
// HasBeenAvailableAnnotation once, when the cluster becomes available for the first time.
func (r *Reconciler) report(ctx context.Context, s *scope, failure error) error {
	access, unread := secrets.Access{Client: r.Client}.Observe(ctx, s.Scope)
	s.access = access
	if s.Refused == "" {
		unread = errors.Join(r.observeIgnition(ctx, s), r.observeFailures(ctx, s), r.observeTerminating(ctx, s), unread)
	}
	s.failure = errors.Join(failure, unread)
	before := s.HC.Status.DeepCopy()
	s.HC.Status = computeStatus(s)
	if err := r.writeStatus(ctx, s.HC, before); err != nil {
		return errors.Join(unread, err)
	}
	r.announce(s.HC, before.Conditions)
	if s.HC.Annotations[hyperv1.HasBeenAvailableAnnotation] == "" && condition.IsTrue(s.HC.Status.Conditions, string(hyperv1.HostedClusterAvailable)) {
		return errors.Join(unread, upsert.Patch(ctx, r.Client, s.HC, func() { cluster.Annotate(s.HC, hyperv1.HasBeenAvailableAnnotation, "true") }))
	}
	return unread
}

// writeStatus updates the complete status if it changed. A merge patch cannot represent the nulls that the version
// history requires.
func (r *Reconciler) writeStatus(ctx context.Context, hc *hyperv1.HostedCluster, before *hyperv1.HostedClusterStatus) error {
	if equality.Semantic.DeepEqual(before, &hc.Status) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, hc); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of HostedCluster %s: %w", client.ObjectKeyFromObject(hc), err)
	}
	return nil
}

// computeStatus depends only on the scope. The result shares memory with the scope.
func computeStatus(s *scope) hyperv1.HostedClusterStatus {
	status := s.HC.Status
	status.Version = versionStatus(s)
	status.KubeConfig, status.CustomKubeconfig, status.KubeadminPassword = s.access.Kubeconfig, s.access.CustomKubeconfig, s.access.KubeadminPassword
	status.IgnitionEndpoint = s.ignitionEndpoint
	if s.HCP != nil {
		if s.HCP.Status.ControlPlaneEndpoint.Host != "" {
			// A recreated control plane requests the port of this endpoint.
			status.ControlPlaneEndpoint = s.HCP.Status.ControlPlaneEndpoint
		}
		status.OAuthCallbackURLTemplate = s.HCP.Status.OAuthCallbackURLTemplate
		status.Platform = s.HCP.Status.Platform
		status.Configuration = s.HCP.Status.Configuration
		status.ControlPlaneVersion = s.HCP.Status.ControlPlaneVersion
		status.AutoNode = s.HCP.Status.AutoNode
		status.SecretEncryption = secrets.UserNames(s.HC, s.HCP.Status.SecretEncryption)
	}
	if s.wanted != nil {
		status.PayloadArch = payloadArch(s.wanted)
	}
	s.clearUnreported()
	status.Conditions = condition.Merge(s.kept(), s.HC.Generation, conditions(s, status)...)
	return status
}

// kept returns the last conditions without the cleared ones.
func (s *scope) kept() []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(s.HC.Status.Conditions), func(c metav1.Condition) bool { return slices.Contains(s.Cleared, c.Type) })
}

func payloadArch(payload *releaseinfo.ReleaseImage) hyperv1.PayloadArchType {
	switch arch := payload.Architecture(); arch {
	case releaseinfo.ArchitectureMulti:
		return hyperv1.Multi
	default:
		return hyperv1.PayloadArchType(strings.ToUpper(arch))
	}
}

// announce emits an event with the condition's message for each condition whose status changed.
func (r *Reconciler) announce(hc *hyperv1.HostedCluster, before []metav1.Condition) {
	wasAvailable := hc.Annotations[hyperv1.HasBeenAvailableAnnotation] == "true"
	last := map[string]metav1.ConditionStatus{}
	for _, c := range before {
		last[c.Type] = c.Status
	}
	for _, c := range hc.Status.Conditions {
		known, seen := last[c.Type]
		if known == c.Status || (!seen && c.Status == metav1.ConditionUnknown) || routine(c, known, wasAvailable) {
			continue
		}
		kind := corev1.EventTypeNormal
		if worse(c, wasAvailable) {
			kind = corev1.EventTypeWarning
		}
		// The event uses the type as its action, because events that differ only in their message are merged.
		r.Recorder.Eventf(hc, nil, kind, c.Reason, c.Type, "%s is %s: %s", c.Type, c.Status,
			condition.Shorten(cmp.Or(c.Message, c.Reason), 900))
	}
}

// routine reports whether a change deserves no event: a condition without a message that becomes good for the first
// time. Each new cluster has some 40 of them. An event is always emitted when a cluster becomes available.
func routine(c metav1.Condition, before metav1.ConditionStatus, wasAvailable bool) bool {
	good := metav1.ConditionTrue
	if abnormal[c.Type] {
		good = metav1.ConditionFalse
	}
	first := before == "" || before == metav1.ConditionUnknown || !wasAvailable
	return c.Status == good && c.Message == "" && first && c.Type != string(hyperv1.HostedClusterAvailable)
}

// abnormal are the conditions whose normal status is false.
var abnormal = map[string]bool{
	string(hyperv1.HostedClusterDegraded): true, string(hyperv1.HostedClusterProgressing): true,
	string(hyperv1.ClusterVersionProgressing): true,
}

// actionable are the conditions whose failure a user has to fix; all others may be false for a while during creation.
var actionable = map[string]bool{
	string(hyperv1.ValidHostedClusterConfiguration): true, string(hyperv1.SupportedHostedCluster): true,
	string(hyperv1.ValidReleaseImage): true, string(hyperv1.PlatformCredentialsFound): true,
	string(hyperv1.UnmanagedEtcdAvailable): true, string(hyperv1.ReconciliationSucceeded): true,
	string(hyperv1.ValidHostedControlPlaneConfiguration): true, string(hyperv1.ValidReleaseInfo): true,
	string(hyperv1.ValidIDPConfiguration): true, string(hyperv1.ControlPlaneDataRetained): true,
}

// worse reports whether a change deserves a warning. For a cluster that was never available, only actionable conditions
// do: missing components are normal during creation.
func worse(c metav1.Condition, wasAvailable bool) bool {
	bad := c.Status == metav1.ConditionFalse
	if abnormal[c.Type] {
		bad = c.Status == metav1.ConditionTrue && c.Type == string(hyperv1.HostedClusterDegraded)
	}
	return bad && (actionable[c.Type] || wasAvailable)
}
