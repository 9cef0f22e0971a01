// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/openshift/hypershift/test/devcluster/lifecycle"
)

// TestFleetUpgrade checks that users of running clusters do not notice when the operator of the last release is
// upgraded. Operations that were in progress must continue and complete. Each part has an environment of its own,
// because two processors do not run all clusters together in time.
func TestFleetUpgrade(t *testing.T) {
	t.Run("pools", upgradePools)
	t.Run("control-planes", upgradeControlPlanes)
}

// fleet holds hosted clusters that the last release's operator made. The command of 0.1.0 encrypts the Secrets of each
// of them.
type fleet struct {
	*suite
	published lifecycle.Published
	clusters  []*suite
	// resumed is the cluster whose pause the test ends during the upgrade, nil if none is paused.
	resumed *suite
}

// newFleet brings up an environment with the last release's operator. It skips the test if the release is not built.
func newFleet(t *testing.T, flags ...string) *fleet {
	t.Helper()
	s := start(t, flags...)
	published, err := s.Publish(t.Context(), s.lastRelease(t))
	if errors.Is(err, lifecycle.ErrNotBuilt) {
		t.Skip(err)
	}
	s.must(t, err)
	s.Hypershift = published.Command
	s.must(t, s.InstallImage(t.Context(), published.Product))
	return &fleet{suite: s, published: published}
}

// own returns the suite of a cluster that the release's own command creates. The cluster is removed together with the
// environment.
func (f *fleet) own(t *testing.T, name string) *suite {
	t.Helper()
	one := f.withUser(t, scenario{name: name, admin: name == "steady"}, &sync.RWMutex{})
	one.Hypershift = f.published.Command
	f.clusters = append(f.clusters, one)
	return one
}

// useThisBuild lets the steps that follow use this build's command.
func (f *fleet) useThisBuild() {
	f.Hypershift = ""
	for _, one := range f.clusters {
		one.Hypershift = ""
	}
}

// upgrade installs this build, waits until the operator has taken over, and runs a function with the control planes of
// before. Users of the given clusters must notice nothing until the function returns. It returns what they saw.
func (f *fleet) upgrade(t *testing.T, then func(before map[*suite]*controlPlane), running ...*suite) map[*suite]watched {
	t.Helper()
	// Two processors do not answer several control planes in time that replace their pods together.
	flags := append(f.installFlags(t), "--max-control-plane-rollouts", "1")
	f.must(t, f.Install(t.Context(), append(flags, "--dry-run")...))
	began := time.Now()
	var watches []*fleetWatch
	before, saw := map[*suite]*controlPlane{}, map[*suite]watched{}
	for _, one := range running {
		w := one.watchFleet(t)
		watches, before[one] = append(watches, w), w.pods
	}
	// Print the observations of a failed test too.
	defer printFleet(f.Out, began, watches)
	f.must(t, f.Install(t.Context(), flags...))
	f.reach(t, "the operator has taken over", soon, f.operatorRuns)
	then(before)
	for _, w := range watches {
		saw[w.of] = w.stop(t.Context())
		w.of.unharmed(t, w.of == f.resumed, w.before, saw[w.of])
		w.of.uncontested(t, began)
	}
	return saw
}
