// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/release"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/releaseversion"
)

// reasonNodesTooOld is a reason of the condition ClusterVersionUpgradeable.
const reasonNodesTooOld = "NodesTooOld"

// course is the upgrade progress of a control plane.
type course struct {
	// reached is the newest version that the control plane has completed. If it has completed none but has been available,
	// reached equals started, because the control plane contains data of its users. It is empty before that.
	reached string
	// started is the newest version whose rollout has begun: its API servers may have stored data in that version's
	// format.
	started string
}

// course reads the upgrade history of the control plane. Older operators record it only in the version status of the
// guest.
func (s *scope) course() course {
	if s.HCP == nil {
		return s.standing(s.HC.Status.ControlPlaneVersion.History, s.HC.Status.Version)
	}
	return s.standing(s.HCP.Status.ControlPlaneVersion.History, firstStatus(s.HCP.Status.VersionStatus, s.HC.Status.Version))
}

func firstStatus(all ...*hyperv1.ClusterVersionStatus) *hyperv1.ClusterVersionStatus {
	for _, status := range all {
		if status != nil {
			return status
		}
	}
	return nil
}

func (s *scope) standing(own []hyperv1.ControlPlaneUpdateHistory, guest *hyperv1.ClusterVersionStatus) course {
	var c course
	for _, entry := range own {
		c.pass(entry.State, entry.Version)
	}
	if len(own) == 0 && guest != nil {
		for _, entry := range guest.History {
			c.pass(entry.State, entry.Version)
		}
	}
	if c.reached == "" && s.HC.Annotations[hyperv1.HasBeenAvailableAnnotation] != "true" {
		return course{}
	}
	c.reached = cmp.Or(c.reached, c.started)
	return c
}

// pass processes one entry of a history. The caller passes the entries from the newest to the oldest.
func (c *course) pass(state configv1.UpdateState, version string) {
	c.started = cmp.Or(c.started, version)
	if state == configv1.CompletedUpdate {
		c.reached = cmp.Or(c.reached, version)
	}
}

// versionFault returns an error if the control plane can never upgrade from its current version to the desired
// releases.
func (s *scope) versionFault(wanted images) error {
	if s.HC.Annotations[hyperv1.SkipReleaseImageValidation] != "" {
		return nil
	}
	at := s.course()
	from := at.reached
	if !distributions.Of(s.wantedControlPlane.Distribution()).OwnOperators {
		from = at.started
	}
	fault := releaseversion.Supported(s.wantedControlPlane, from)
	if fault == nil && s.moves(wanted) {
		fault = releaseversion.Step(s.wantedControlPlane, at.reached)
	}
	if fault != nil {
		return fmt.Errorf("%s: %w", s.releaseField(), fault)
	}
	if wanted.controlPlane == "" {
		return nil
	}
	return s.nodeReleaseFault()
}

// nodeReleaseFault validates spec.release in combination with spec.controlPlaneRelease.
func (s *scope) nodeReleaseFault() error {
	if s.wanted.Distribution() != s.wantedControlPlane.Distribution() {
		return fmt.Errorf("spec.controlPlaneRelease.image is a release of %s and spec.release.image one of %s: use the same distribution",
			s.wantedControlPlane.Distribution(), s.wanted.Distribution())
	}
	fault := releaseversion.Supported(s.wanted, completedVersion(s.HC.Status.Version))
	if to := s.wantedControlPlane.Version(); fault == nil && releaseversion.Newer(s.wanted.Version(), to) != nil {
		fault = fmt.Errorf("version %s is newer than the %s of spec.controlPlaneRelease.image: raise that first", s.wanted.Version(), to)
	}
	if fault != nil {
		return fmt.Errorf("spec.release.image: %w", fault)
	}
	return nil
}

// moves reports whether the control plane would change its release.
func (s *scope) moves(wanted images) bool {
	return imagesOf(s.HCP).running() != wanted.running()
}

// releaseField returns the name of the field that sets the control plane's release.
func (s *scope) releaseField() string {
	if s.controlPlaneSource() != "" {
		return "spec.controlPlaneRelease.image"
	}
	return "spec.release.image"
}

// upgradeBlocked returns the reason why the desired release must not be rolled out now; empty if it may be.
func (r *Reconciler) upgradeBlocked(ctx context.Context, s *scope, wanted images) (string, error) {
	at, to := s.course(), s.wantedControlPlane.Version()
	source := cmp.Or(wanted.controlPlaneSource, wanted.releaseSource)
	switch {
	case s.HCP == nil, !s.moves(wanted), at.reached == "", s.HC.Annotations[hyperv1.ForceUpgradeToAnnotation] == source:
		return "", nil
	case releaseversion.SameMinor(at.reached, to), releaseversion.SameMinor(at.started, to):
		return "", nil
	}
	why, err := r.whyNotNow(ctx, s, to)
	if err != nil || why == "" {
		return "", err
	}
	return fmt.Sprintf("The cluster cannot be upgraded from %s to %s now: %s. Fix that, or set annotation %s=%s to force the upgrade",
		at.reached, to, why, hyperv1.ForceUpgradeToAnnotation, source), nil
}

func (r *Reconciler) whyNotNow(ctx context.Context, s *scope, to string) (string, error) {
	pools, err := r.tooOld(ctx, s, distributions.Of(s.wantedControlPlane.Distribution()), to)
	if err != nil || pools != "" {
		return pools, err
	}
	upgradeable := condition.Copy(s.HCP.Status.Conditions, string(hyperv1.ClusterVersionUpgradeable), hyperv1.StatusUnknownReason)
	if upgradeable.Status != "False" {
		return "", nil
	}
	return strings.TrimSuffix(upgradeable.Message, "."), nil
}

// tooOld returns the pools whose nodes would be too old for a control plane of version to; empty if there are none.
func (r *Reconciler) tooOld(ctx context.Context, s *scope, distribution distributions.Traits, to string) (string, error) {
	pools := &hyperv1.NodePoolList{}
	if err := r.Client.List(ctx, pools, client.InNamespace(s.HC.Namespace)); err != nil {
		return "", fmt.Errorf("listing NodePools: %w", err)
	}
	var names []string
	for i := range pools.Items {
		pool := &pools.Items[i]
		if pool.Spec.ClusterName != s.HC.Name {
			continue
		}
		oldest := oldestNode(pool, distribution)
		if oldest == "" {
			oldest = r.firstVersion(ctx, s, pool)
		}
		if releaseversion.Skew(oldest, to) != nil {
			names = append(names, fmt.Sprintf("%s (%s)", pool.Name, oldest))
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	slices.Sort(names)
	return fmt.Sprintf("nodes would be more than %d minor versions behind a control plane of %s in the NodePools %s: upgrade these first",
		releaseversion.MaxSkew, to, strings.Join(names, ", ")), nil
}

// oldestNode returns the oldest version of a pool's nodes. It includes the version that the pool has reached, which
// applies to nodes that are being installed or will be added. It is empty if there is no version yet.
func oldestNode(pool *hyperv1.NodePool, distribution distributions.Traits) string {
	var versions []string
	if info := pool.Status.NodesInfo; info != nil {
		for _, node := range info.NodeVersions {
			versions = append(versions, distribution.NodeVersion(node))
		}
	}
	return releaseversion.Oldest(append(versions, pool.Status.Version)...)
}

// firstVersion returns the version of the first nodes of a pool without nodes, because its machines may be created at
// any moment. It is empty if the release cannot be read; the pool then reports that and creates no machines.
func (r *Reconciler) firstVersion(ctx context.Context, s *scope, pool *hyperv1.NodePool) string {
	payload, err := r.lookup(ctx, s, release.OfPool(pool, s.HCP))
	if err != nil {
		return ""
	}
	return payload.Version()
}

// reportUpgradeable reports that the nodes of a Kubernetes control plane block the next minor version, before a user
// requests the upgrade. For OpenShift, the payload's own operators report this.
func (r *Reconciler) reportUpgradeable(ctx context.Context, s *scope) error {
	if s.HCP == nil || s.Distribution().OwnOperators {
		return nil
	}
	reported := condition.Copy(s.HCP.Status.Conditions, string(hyperv1.ClusterVersionUpgradeable), hyperv1.StatusUnknownReason)
	if reported.Status != "True" {
		return nil
	}
	pools, err := r.tooOld(ctx, s, s.Distribution(), releaseversion.NextMinor(s.Release.Version()))
	if pools != "" {
		s.Reject(hyperv1.ClusterVersionUpgradeable, reasonNodesTooOld, "After the next minor version "+pools)
	}
	return err
}

// completedVersion returns the version that the guest last completed, empty if none.
func completedVersion(version *hyperv1.ClusterVersionStatus) string {
	if version == nil {
		return ""
	}
	for _, entry := range version.History {
		if entry.State == configv1.CompletedUpdate {
			return entry.Version
		}
	}
	return ""
}
