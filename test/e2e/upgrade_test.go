// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/journey"
)

// upgradeMinor upgrades the cluster and its pool from the previous minor to this build's minor, both requested at the
// same time.
func (s *suite) upgradeMinor(t *testing.T) {
	previous, err := s.PreviousReleaseImage(t.Context())
	s.must(t, err)
	s.createCluster(t, 2, "--image", ignitionImage, "--release-image", previous)
	release, err := s.ReleaseImage(t.Context())
	s.must(t, err)
	s.upgrade(t, release)
	g := NewWithT(t)
	nodes, err := s.nodes(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	_, version, _ := strings.Cut(release, "release:")
	for _, node := range nodes.Items {
		g.Expect(node.Status.NodeInfo.KubeletVersion).To(Equal("v"+version), node.Name)
	}
	s.destroy(t)
}

// upgradeDigest upgrades the cluster and its pool to other images of the same version, which differ only in the
// digest.
func (s *suite) upgradeDigest(t *testing.T) {
	release, err := s.ReleaseImage(t.Context())
	s.must(t, err)
	s.createCluster(t, 2)
	rebuilt, err := s.RebuiltReleaseImage(t.Context(), release)
	s.must(t, err)
	s.upgrade(t, rebuilt)
	s.destroy(t)
}

// upgrade sets a release for the cluster and its pool, and samples their status once per second until both have it.
// It checks that no sample has a false status.
func (s *suite) upgrade(t *testing.T, release string) {
	g := NewWithT(t)
	history := s.record(t)
	s.setRelease(t, release)
	s.reach(t, "control plane and pool upgraded", 2*long, func(ctx context.Context) (bool, string, error) {
		now, err := history.sample(ctx, s)
		if err != nil {
			return false, "", err
		}
		return history.clusterDone(now) && now.poolDone() && !history.oldLeft(now), now.String(), nil
	})
	g.Expect(history.lies).To(BeEmpty())
	g.Expect(history.sawUpdating).To(BeTrue(), "the pool never said that it was updating")
	g.Expect(history.sawProgressing).To(BeTrue(), "the cluster never said that it was progressing")
	s.reach(t, "nodes of the new release ready", soon, s.NodesReady(s.cluster, 2))
}

// setRelease sets a release for the cluster and its pool.
func (s *suite) setRelease(t *testing.T, release string) {
	t.Helper()
	for _, kind := range []string{"hostedcluster", "nodepool"} {
		s.must(t, s.Type(t.Context(), "kubectl", "patch", kind, s.cluster, "-n", journey.Namespace, "--type=merge",
			"-p", fmt.Sprintf(`{"spec":{"release":{"image":%q}}}`, release)))
	}
}

// record holds the observations of an upgrade so far.
type record struct {
	before *sample
	// oldSecrets are the bootstrap Secrets of the machines before the upgrade: a machine that uses one of them is
	// old.
	oldSecrets                  sets.Set[string]
	sawUpdating, sawProgressing bool
	lies                        []string
}

// record starts with the state before the upgrade. It waits until the pool has reported the version of its nodes, so
// that this first report is not taken for a false status.
func (s *suite) record(t *testing.T) *record {
	var now *sample
	s.reach(t, "pool says its version", soon, func(ctx context.Context) (done bool, said string, err error) {
		if now, err = s.sample(ctx); err != nil {
			return false, "", err
		}
		return now.poolDone(), now.String(), nil
	})
	return &record{before: now, oldSecrets: now.secrets()}
}

// sample takes one sample and records each false status.
func (r *record) sample(ctx context.Context, s *suite) (*sample, error) {
	now, err := s.sample(ctx)
	if err != nil {
		return nil, err
	}
	r.sawUpdating = r.sawUpdating || now.poolTrue(hyperv1.NodePoolUpdatingVersionConditionType)
	r.sawProgressing = r.sawProgressing || now.progressing()
	for lie, told := range map[string]bool{
		"the cluster does not progress, though its newest history entry is not completed": now.clusterLooked() && !r.clusterDone(now) && !now.progressing(),
		"the pool does not update, though machines of the old release are left":           now.poolLooked() && r.clusterDone(now) && r.oldLeft(now) && !now.poolTrue(hyperv1.NodePoolUpdatingVersionConditionType),
		"the pool says the new version, though machines of the old release are left":      r.oldLeft(now) && now.pool.Status.Version != r.before.pool.Status.Version,
		"the pool's annotation says the new configuration, though old machines are left":  r.oldLeft(now) && now.currentConfig() != r.before.currentConfig(),
		"a machine of the new release was made before the control plane had completed it": !r.completed(now) && now.secrets().Difference(r.oldSecrets).Len() > 0,
		"a node is newer than the newest version that the control plane has completed":    now.newestNode().GT(now.completed()),
	} {
		if told {
			r.lies = append(r.lies, lie+": "+now.String())
		}
	}
	return now, nil
}

// clusterDone reports whether the control plane's status says that it has completed the upgrade.
func (r *record) clusterDone(now *sample) bool {
	return now.clusterLooked() && !now.progressing() && r.completed(now)
}

// completed reports whether the newest entry of the history is the completed upgrade.
func (r *record) completed(now *sample) bool {
	newest, before := now.newest(), r.before.newest().StartedTime
	return newest.State == configv1.CompletedUpdate && !newest.StartedTime.Equal(&before)
}

// oldLeft reports whether a machine of the old release exists.
func (r *record) oldLeft(now *sample) bool { return now.secrets().Intersection(r.oldSecrets).Len() > 0 }

// parseVersion parses "v1.36.3" or "1.36.3"; an empty text is the oldest version.
func parseVersion(text string) semver.Version {
	v, _ := semver.ParseTolerant(text)
	return v
}
