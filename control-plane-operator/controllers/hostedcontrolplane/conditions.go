// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/infra"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	v2 "github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
	"github.com/openshift/hypershift/control-plane-operator/guestcomponents"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// Reasons of Degraded.
const (
	reasonCertificatesFailed = "CertificatesFailed"
	reasonNoTunnel           = "TunnelNotConnected"
)

// conditions computes all conditions that this operator owns. next is the status computed so far.
func conditions(s *scope, o observed, next hyperv1.HostedControlPlaneStatus, now time.Time) []metav1.Condition {
	all := []metav1.Condition{
		validConfiguration(s, o.refusals),
		reconciliationActive(s),
		infrastructureReady(s),
		etcdAvailable(s.applied(), o.etcd, o.ownEtcd),
		apiServerAvailable(o.kas),
		validReleaseInfo(s),
		degraded(o, s.pkiErr, now),
		externalDNSReachable(),
		certificatesValid(o.secrets, now),
		signersUpToDate(o.secrets),
	}
	if c, known := addressUpToDate(s, o, next); known {
		all = append(all, c)
	}
	if o.encryption != nil {
		all = append(all, dataEncryption(o.encryption))
	}
	if o.plugins {
		all = append(all, pluginsAvailable(o.pluginFaults))
	}
	if c, known := podsScheduled(o.unplaced, s.hcp.Status.Conditions); known {
		all = append(all, c)
	}
	all = append(all, available(s, o, all))
	return append(all, versionConditions(s, o, next.VersionStatus)...)
}

func validConfiguration(s *scope, refusals []error) metav1.Condition {
	t := string(hyperv1.ValidHostedControlPlaneConfiguration)
	if s.paused {
		return condition.Copy(s.hcp.Status.Conditions, t, hyperv1.StatusUnknownReason)
	}
	if fault := errors.Join(s.invalid, errors.Join(refusals...)); fault != nil {
		message := fault.Error()
		if s.invalid != nil && s.valid != nil {
			message += "; until this is fixed, the last valid spec stays in effect"
		}
		return condition.False(t, hyperv1.InsufficientClusterCapabilitiesReason, message)
	}
	message := "Configuration passes validation"
	if fields := v2.WithoutEffect(s.hcp); len(fields) > 0 {
		message += "; without effect in the Kubernetes distribution: " + strings.Join(fields, ", ")
	}
	return condition.True(t, hyperv1.AsExpectedReason, message)
}

func reconciliationActive(s *scope) metav1.Condition {
	t := string(hyperv1.ReconciliationActive)
	if until := s.hcp.Spec.PausedUntil; until != nil && s.paused {
		return condition.False(t, hyperv1.ReconciliationPausedReason, fmt.Sprintf(
			"Reconciliation is paused because spec.pausedUntil is %q; remove the field to resume", *until))
	}
	return condition.True(t, hyperv1.AsExpectedReason, "Reconciliation is active")
}

func infrastructureReady(s *scope) metav1.Condition {
	t := string(hyperv1.InfrastructureReady)
	switch {
	case s.infraErr != nil:
		return condition.Unknown(t, hyperv1.InfraStatusFailureReason, s.infraErr.Error())
	case s.infra != nil:
		return condition.True(t, hyperv1.AsExpectedReason, "")
	case s.waiting != "":
		return condition.False(t, hyperv1.WaitingOnInfrastructureReadyReason, s.waiting)
	case (s.paused || s.invalid != nil) && s.hcp.Status.ControlPlaneEndpoint.Host != "":
		return condition.Copy(s.hcp.Status.Conditions, t, hyperv1.StatusUnknownReason)
	default:
		return condition.False(t, hyperv1.WaitingOnInfrastructureReadyReason, "Cluster infrastructure is still provisioning")
	}
}

// ownEtcdAvailable returns EtcdAvailable for an etcd that the user provides. fault is why it does not serve; nil if it
// does, or was not queried.
func ownEtcdAvailable(fault error) metav1.Condition {
	t := string(hyperv1.EtcdAvailable)
	if fault == nil {
		return condition.True(t, "EtcdRunning", "Etcd is not managed by this control plane")
	}
	if _, misconfigured := errors.AsType[*pki.OwnEtcdError](fault); misconfigured {
		return condition.False(t, hyperv1.UnmanagedEtcdMisconfiguredReason, fault.Error())
	}
	return condition.False(t, hyperv1.UnmanagedEtcdUnavailableReason, fault.Error())
}

func etcdAvailable(hcp *hyperv1.HostedControlPlane, set *appsv1.StatefulSet, ownFault error) metav1.Condition {
	t := string(hyperv1.EtcdAvailable)
	if hcp.Spec.Etcd.ManagementType == hyperv1.Unmanaged {
		return ownEtcdAvailable(ownFault)
	}
	if replaced := set == nil || !set.DeletionTimestamp.IsZero() || set.Status.ObservedGeneration == 0; replaced &&
		condition.IsTrue(hcp.Status.Conditions, string(hyperv1.EtcdMembersHealthy)) {
		// The StatefulSet is being replaced during an update. The members keep serving, and the etcd controller manages
		// them.
		return condition.Copy(hcp.Status.Conditions, t, hyperv1.StatusUnknownReason)
	}
	if set == nil {
		return condition.False(t, hyperv1.EtcdStatefulSetNotFoundReason, "Etcd has no StatefulSet yet")
	}
	members := ptr.Deref(set.Spec.Replicas, 1)
	if quorum := members/2 + 1; set.Status.ReadyReplicas < quorum {
		return condition.False(t, hyperv1.EtcdWaitingForQuorumReason,
			fmt.Sprintf("Waiting for etcd to reach quorum: %d of %d members are ready, %d are needed", set.Status.ReadyReplicas, members, quorum))
	}
	return condition.True(t, hyperv1.EtcdQuorumAvailableReason, "")
}

func apiServerAvailable(kas *appsv1.Deployment) metav1.Condition {
	t := string(hyperv1.KubeAPIServerAvailable)
	if kas == nil {
		return condition.False(t, hyperv1.NotFoundReason, "Kube APIServer has no Deployment yet")
	}
	if !deploymentAvailable(kas) {
		return condition.False(t, hyperv1.WaitingForAvailableReason, "Waiting for the Kube APIServer Deployment to become available")
	}
	return condition.True(t, hyperv1.AsExpectedReason, "Kube APIServer Deployment is available")
}

func deploymentAvailable(d *appsv1.Deployment) bool {
	return d != nil && slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
	})
}

func validReleaseInfo(s *scope) metav1.Condition {
	t := string(hyperv1.ValidReleaseInfo)
	switch {
	case s.releaseErr != nil:
		reason := "InvalidRelease"
		if r := releaseinfo.ReasonOf(s.releaseErr); r != "" {
			reason = string(r)
		}
		return condition.False(t, reason, s.releaseErr.Error())
	case len(s.missing) > 0:
		return condition.False(t, hyperv1.MissingReleaseImagesReason, (&component.MissingImagesError{Tags: s.missing}).Error())
	case s.release == nil:
		return condition.Copy(s.hcp.Status.Conditions, t, hyperv1.StatusUnknownReason)
	default:
		return condition.True(t, hyperv1.AsExpectedReason, "")
	}
}

// tunnelPatience is how long nodes may take to connect before it counts as a fault: new nodes first pull the image.
const tunnelPatience = 3 * time.Minute

// noTunnel describes that no agent of the tunnel is connected; empty if one is, or if there is none.
func noTunnel(components []hyperv1.ControlPlaneComponent, now time.Time) string {
	for i := range components {
		c := meta.FindStatusCondition(components[i].Status.Conditions, string(hyperv1.ControlPlaneComponentAvailable))
		if components[i].Name == guestcomponents.TunnelAgent && c != nil && c.Status == metav1.ConditionFalse &&
			now.Sub(c.LastTransitionTime.Time) > tunnelPatience {
			return "No node has opened the tunnel, so webhooks and aggregated APIs of the cluster fail: " +
				"let nodes reach Service " + infra.TunnelService
		}
	}
	return ""
}

func degraded(o observed, pkiErr error, now time.Time) metav1.Condition {
	t := string(hyperv1.HostedControlPlaneDegraded)
	if pkiErr != nil && !apierrors.IsConflict(pkiErr) {
		return condition.True(t, reasonCertificatesFailed, "Reconciling certificates and kubeconfigs failed: "+pkiErr.Error())
	}
	if failing := failing(o.components, component.ReasonPodsFailing); failing != nil {
		return condition.True(t, component.ReasonPodsFailing, failing.Error())
	}
	if message := noTunnel(o.components, now); message != "" {
		return condition.True(t, reasonNoTunnel, message)
	}
	var short []string
	for i := range o.deployments {
		if n := o.deployments[i].Status.UnavailableReplicas; n > 0 {
			short = append(short, fmt.Sprintf("%s deployment has %d unavailable replicas", o.deployments[i].Name, n))
		}
	}
	if len(short) == 0 {
		return condition.False(t, hyperv1.AsExpectedReason, "")
	}
	slices.Sort(short)
	return condition.True(t, "UnavailableReplicas", strings.Join(short, ", "))
}

// pluginsAvailable reports the faults of KMS plugins. Without its plugin, encrypted data is only readable if the API
// servers have read it before.
func pluginsAvailable(faults []string) metav1.Condition {
	t := string(hyperv1.KMSPluginAvailable)
	if len(faults) == 0 {
		return condition.True(t, hyperv1.AsExpectedReason, "")
	}
	return condition.False(t, "PluginUnavailable", strings.Join(faults, "; ")+
		"; running API servers keep serving data that they have already decrypted, new ones do not start; fix the plugin, its key service or spec.secretEncryption.kms.plugin")
}

// dataEncryption reports the progress of a migration to a new key.
func dataEncryption(config *corev1.Secret) metav1.Condition {
	t := string(hyperv1.EtcdDataEncryptionUpToDate)
	reason, message, done := kubeapiserver.EncryptionStageOf(config)
	if done {
		return condition.True(t, reason, message)
	}
	return condition.False(t, reason, message)
}

// externalDNSReachable returns the condition for names that ExternalDNS publishes. A user that sets nodePort.address or
// a hostname is responsible for its DNS record.
func externalDNSReachable() metav1.Condition {
	return condition.Unknown(string(hyperv1.ExternalDNSReachable), hyperv1.StatusUnknownReason, "External DNS is not used")
}

// available returns the first condition that keeps users from the API server, or True if there is none.
func available(s *scope, o observed, others []metav1.Condition) metav1.Condition {
	t := string(hyperv1.HostedControlPlaneAvailable)
	served := condition.IsTrue(s.hcp.Status.Conditions, t)
	if c := find(others, hyperv1.ValidHostedControlPlaneConfiguration); c.Status == metav1.ConditionFalse && s.valid == nil && !served {
		return condition.False(t, c.Reason, c.Message)
	}
	// An observation that failed in this reconcile does not make a serving control plane unavailable.
	if c := find(others, hyperv1.InfrastructureReady); c.Status == metav1.ConditionFalse || c.Status == metav1.ConditionUnknown && !served {
		return condition.False(t, c.Reason, c.Message)
	}
	if !o.hasKubeconfig {
		return condition.False(t, hyperv1.KubeconfigWaitingForCreateReason, "Waiting for hosted control plane kubeconfig to be created")
	}
	for _, needed := range []hyperv1.ConditionType{hyperv1.EtcdAvailable, hyperv1.KubeAPIServerAvailable} {
		if c := find(others, needed); c.Status != metav1.ConditionTrue {
			return condition.False(t, c.Reason, c.Message)
		}
	}
	if o.unhealthy != nil {
		return condition.False(t, hyperv1.KASLoadBalancerNotReachableReason, o.unhealthy.Error())
	}
	// A control plane that was available once still serves users while a component is unavailable. Components in the guest
	// are unavailable whenever their node is.
	if waiting := unavailable(o.components, guestcomponents.OnNodes()); len(waiting) > 0 && !served {
		return condition.False(t, hyperv1.ControlPlaneComponentsNotAvailable, "Waiting for components to be available: "+strings.Join(waiting, ", "))
	}
	return condition.True(t, hyperv1.AsExpectedReason, "")
}

func find(all []metav1.Condition, t hyperv1.ConditionType) metav1.Condition {
	for _, c := range all {
		if c.Type == string(t) {
			return c
		}
	}
	return condition.Unknown(string(t), hyperv1.StatusUnknownReason, "Not reported yet")
}

func unavailable(components []hyperv1.ControlPlaneComponent, except []string) []string {
	var names []string
	for i := range components {
		if !slices.Contains(except, components[i].Name) && !condition.IsTrue(components[i].Status.Conditions, string(hyperv1.ControlPlaneComponentAvailable)) {
			names = append(names, components[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// versionConditions returns the conditions that report the state of the release. In OpenShift they come from the
// guest's ClusterVersion. This distribution has no ClusterVersion, so they are computed from the components.
func versionConditions(s *scope, o observed, version *hyperv1.ClusterVersionStatus) []metav1.Condition {
	if version == nil || len(version.History) == 0 {
		return nil
	}
	current := version.History[0]
	completed := current.State == configv1.CompletedUpdate
	everCompleted := slices.ContainsFunc(version.History, func(h configv1.UpdateHistory) bool { return h.State == configv1.CompletedUpdate })
	set := func(t hyperv1.ConditionType, value bool, reason, message string) metav1.Condition {
		if value {
			return condition.True(string(t), reason, message)
		}
		return condition.False(string(t), reason, message)
	}
	progress := fmt.Sprintf("Release %s is rolled out", current.Version)
	if !completed {
		progress = fmt.Sprintf("Working towards %s: waiting for %s", current.Version, waitingFor(s, o.components))
	}
	failing := failing(o.components, component.ReasonError, component.ReasonPodsFailing)
	return []metav1.Condition{
		set(hyperv1.ClusterVersionAvailable, everCompleted, hyperv1.AsExpectedReason, progress),
		set(hyperv1.ClusterVersionProgressing, !completed, hyperv1.AsExpectedReason, progress),
		set(hyperv1.ClusterVersionFailing, failing != nil, hyperv1.AsExpectedReason, errorText(failing)),
		releaseAccepted(s),
		upgradeable(current, failing),
	}
}

// releaseAccepted keeps its value in a reconcile that did not reach the release phase.
func releaseAccepted(s *scope) metav1.Condition {
	t := string(hyperv1.ClusterVersionReleaseAccepted)
	switch {
	case s.releaseErr != nil:
		return condition.False(t, hyperv1.AsExpectedReason, s.releaseErr.Error())
	case s.release == nil:
		return condition.Copy(s.hcp.Status.Conditions, t, hyperv1.StatusUnknownReason)
	default:
		return condition.True(t, hyperv1.AsExpectedReason, "")
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// waitingFor returns the components that are not rolled out, and the messages of those in the guest.
func waitingFor(s *scope, components []hyperv1.ControlPlaneComponent) string {
	if s.release == nil || s.guestRelease == nil {
		return "the release image"
	}
	hosting, running := unfinished(s, components)
	for i := range components {
		c := find(components[i].Status.Conditions, hyperv1.ControlPlaneComponentRolloutComplete)
		if at := slices.Index(running, components[i].Name); at >= 0 && c.Status == metav1.ConditionFalse && c.Message != "" {
			running[at] += " (" + c.Message + ")"
		}
	}
	return strings.Join(append(hosting, running...), ", ")
}

// failing joins the messages of components that are not rolled out for one of the given reasons.
func failing(components []hyperv1.ControlPlaneComponent, reasons ...string) error {
	var all []error
	for i := range components {
		c := find(components[i].Status.Conditions, hyperv1.ControlPlaneComponentRolloutComplete)
		if slices.Contains(reasons, c.Reason) {
			all = append(all, fmt.Errorf("%s: %s", components[i].Name, c.Message))
		}
	}
	return errors.Join(all...)
}
