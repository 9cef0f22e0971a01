// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/lowestversions"
	"github.com/openshift/hypershift/support/upsert"
)

// Condition types.
const (
	// ConditionReady summarises LoadBalancerReady and MAASAvailable.
	ConditionReady = clusterv1.ReadyCondition
	// ConditionEndpoint reports whether the API endpoint is known.
	ConditionEndpoint = infrav1.LoadBalancerReadyCondition
	// ConditionAPIServer reports whether the control plane has been initialized.
	ConditionAPIServer = infrav1.APIServerAvailableCondition
	// ConditionMAAS reports whether MAAS is reachable and accepts the API key.
	ConditionMAAS = infrav1.MAASAvailableCondition
	// ConditionQuarantine lists the quarantined machines, on which deployments failed.
	ConditionQuarantine = infrav1.MachinesQuarantinedCondition
	// ConditionReleased lists the machines that MAAS has not released, although their MaasMachines are gone.
	ConditionReleased = infrav1.MachinesReleasedCondition
	// ConditionRestored reports whether the machines of a lost MaasCluster have MaasMachines again. It is present only on
	// a restored MaasCluster.
	ConditionRestored = infrav1.MachinesRestoredCondition
	// ConditionLXD reports on lxdConfig. It is present only if lxdConfig is enabled.
	ConditionLXD = infrav1.LXDReadyCondition
)

// maxFailureDomains is the maximum number that the API accepts. With more, the status could not be written.
const maxFailureDomains = 100

func inNamespace(s *scope) client.ListOption { return client.InNamespace(s.infra.Namespace) }

// report computes the status from the results of the phases and writes it if it changed. A deletion that waits for
// machines has no results yet.
func (r *Reconciler) report(ctx context.Context, s *scope, _ error) error {
	if s.paused() {
		return r.writePaused(ctx, s)
	}
	if s.identity == nil && s.problem == nil {
		return nil
	}
	was := meta.FindStatusCondition(s.infra.Status.Conditions, ConditionReady).DeepCopy()
	if err := upsert.Status(ctx, r.Client, s.infra, func() { r.computeStatus(s) }); err != nil {
		return err
	}
	is := meta.FindStatusCondition(s.infra.Status.Conditions, ConditionReady)
	if is != nil && is.Status != metav1.ConditionTrue && (was == nil || was.Reason != is.Reason) {
		r.warn(s.infra, is.Reason, is.Message)
	}
	return nil
}

func (r *Reconciler) computeStatus(s *scope) {
	status := &s.infra.Status
	if s.dns != "" {
		status.Network.DNSName = s.dns
	}
	if !s.infra.Spec.ControlPlaneEndpoint.IsZero() && s.endpoint == nil {
		provisioned := true
		status.Ready, status.Initialization.Provisioned = true, &provisioned
	}
	if domains := s.failureDomains(); domains != nil && !equality.Semantic.DeepEqual(status.FailureDomains, domains) {
		status.FailureDomains = domains
	}
	status.Conditions = condition.Merge(status.Conditions, s.infra.Generation, stamp(s.conditions(), r.Clock.Now())...)
}

func (s *scope) conditions() []metav1.Condition {
	endpoint := condition.True(ConditionEndpoint, reasonReady, s.infra.Spec.ControlPlaneEndpoint.Host)
	if s.endpoint != nil {
		endpoint = condition.False(ConditionEndpoint, s.endpoint.Reason, s.endpoint.Message)
	}
	available := condition.True(ConditionMAAS, "AsExpected", s.warning())
	if s.problem != nil {
		available = condition.False(ConditionMAAS, s.problem.Reason, s.problem.Message)
	}
	ready := condition.True(ConditionReady, clusterv1.ReadyReason, "")
	for _, c := range []metav1.Condition{endpoint, available} {
		if c.Status != metav1.ConditionTrue {
			ready = condition.False(ConditionReady, c.Reason, c.Message)
		}
	}
	all := []metav1.Condition{endpoint, available, ready, s.apiServer(),
		condition.False(clusterv1.PausedCondition, clusterv1.NotPausedReason, "")}
	all = append(all, s.quarantineCondition()...)
	all = append(all, s.releasedCondition()...)
	all = append(all, s.restoredCondition()...)
	if s.left != nil && !s.infra.DeletionTimestamp.IsZero() {
		all = append(all, condition.True(clusterv1.DeletingCondition, s.left.Reason, s.left.Message))
	}
	if lxd := s.infra.Spec.LXDConfig; lxd != nil && isTrue(lxd.Enabled) {
		all = append(all, condition.False(ConditionLXD, "NotSupported", "lxdConfig has no effect: this version of the provider makes no LXD hosts"))
	}
	return all
}

// warning returns advice for a working MAAS connection; empty if there is none.
func (s *scope) warning() string {
	if s.identity == nil {
		return ""
	}
	warnings := []string{s.identity.Client.PlainHTTP(), knownHole(s.version.Version)}
	return strings.Join(slices.DeleteFunc(warnings, func(w string) bool { return w == "" }), ". ")
}

// knownHole describes the known vulnerability of a MAAS version. It returns "" for other versions, and for a version
// that cannot be compared, such as a development build.
func knownHole(version string) string {
	table, err := lowestversions.Read()
	if err != nil {
		return ""
	}
	low, err := table.BelowLines("maas", version)
	if err != nil || low == "" {
		return ""
	}
	return "MAAS " + low
}

func (s *scope) apiServer() metav1.Condition {
	if s.owner != nil && isTrue(s.owner.Status.Initialization.ControlPlaneInitialized) {
		return condition.True(ConditionAPIServer, ConditionAPIServer, "")
	}
	return condition.False(ConditionAPIServer, "APIServerNotReady", "the control plane is not initialized yet")
}

// failureDomains returns the zones of the spec, else all zones of MAAS. It returns none while MAAS cannot be reached.
func (s *scope) failureDomains() infrav1.FailureDomains {
	names := map[string]bool{}
	for _, name := range s.infra.Spec.FailureDomains {
		names[name] = true
	}
	if len(names) == 0 {
		for _, zone := range s.zones {
			names[zone.Name] = true
		}
	}
	var domains infrav1.FailureDomains
	for _, name := range slices.Sorted(maps.Keys(names)) {
		controlPlane := true
		domains = append(domains, infrav1.FailureDomain{Name: name, ControlPlane: &controlPlane})
	}
	return domains[:min(len(domains), maxFailureDomains)]
}

// writePaused sets the Paused condition to true.
func (r *Reconciler) writePaused(ctx context.Context, s *scope) error {
	return upsert.Status(ctx, r.Client, s.infra, func() {
		paused := condition.True(clusterv1.PausedCondition, clusterv1.PausedReason, "the Cluster or this MaasCluster is paused")
		s.infra.Status.Conditions = condition.Merge(s.infra.Status.Conditions, s.infra.Generation, stamp([]metav1.Condition{paused}, r.Clock.Now())...)
	})
}
