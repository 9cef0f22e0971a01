// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/test/devcluster/lifecycle"
	"github.com/openshift/hypershift/test/journey"
)

// released creates a cluster with the last released version and upgrades the operator to this build. It checks that
// neither the machines nor the users of the cluster notice the upgrade, and that the release refuses to be installed
// again. Without -short, it then installs this build again and adds a node. It calls upgraded once this build's
// operator runs.
func (s *suite) released(t *testing.T, upgraded func()) {
	version := s.lastRelease(t)
	published, err := s.Publish(t.Context(), version)
	if errors.Is(err, lifecycle.ErrNotBuilt) {
		t.Skip(err)
	}
	s.must(t, err)
	own := s.of(t, scenario{name: "released"}, &sync.RWMutex{})
	own.Hypershift = published.Command
	s.must(t, own.InstallImage(t.Context(), published.Product))
	own.createCluster(t, 2, "--image", ignitionImage, "--release-image", published.Payload)
	s.must(t, own.RunWorkload(t.Context(), own.cluster))
	own.atRest(t, rest)

	this := func() error {
		own.Hypershift = ""
		return own.Install(t.Context(), s.installFlags(t)...)
	}
	calls, err := own.maasChanges(t.Context())
	s.must(t, err)
	NewWithT(t).Expect(calls).NotTo(BeEmpty(), "MAAS counts the calls that made the machines")
	NewWithT(t).Expect(own.unnoticed(t, this)).To(BeNumerically(">", 0), "the audit log has the writes of the operators")
	own.wayBack(t, published)
	if !testing.Short() {
		own.unnoticed(t, this)
	}
	// From now on, all requests are from this build's operator with this build's permissions.
	s.AuditFrom = time.Now()
	upgraded()
	if !testing.Short() {
		own.scale(t, own.cluster, 3)
		own.reach(t, "a third node ready", long, own.NodesReady(own.cluster, 3))
	}
	own.destroy(t)
}

// wayBack checks that the release's own command refuses to replace this build, before it changes anything.
func (s *suite) wayBack(t *testing.T, published lifecycle.Published) {
	t.Helper()
	s.Hypershift = published.Command
	defer func() { s.Hypershift = "" }()
	_, err := s.Read(t.Context(), "hypershift", "install", "--hypershift-image", published.Product)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("going back to an older minor version is not possible")))
	running, progress, err := s.operatorRuns(t.Context())
	s.must(t, err)
	NewWithT(t).Expect(running).To(BeTrue(), progress)
}

// unnoticed changes the operator and checks that neither the machines nor the users of the cluster notice it. It returns
// the number of writes of the operators, which is zero if nothing changes.
func (s *suite) unnoticed(t *testing.T, install func() error) int {
	t.Helper()
	before, began := s.look(t), time.Now()
	watch := s.watch(t, before)
	s.must(t, install())
	s.reach(t, "the operator has taken over", soon, s.operatorRuns)
	// Components restart one after another, with pauses for leader elections.
	s.atRest(t, 2*rest)
	seen := watch.stop(t.Context())
	s.Say("%s", seen)
	g := NewWithT(t)
	g.Expect(seen.noticed).To(BeEmpty(), "a user notices the change of the operator")
	g.Expect(before.worse(s.look(t))).To(BeEmpty(), "conditions are worse than before the change")
	return s.uncontested(t, began)
}

// uncontested checks that the pods of both versions do not overwrite each other's changes. It prints the number of
// writes since a time by field manager, and returns their sum.
func (s *suite) uncontested(t *testing.T, since time.Time) int {
	t.Helper()
	writes, err := s.Writes(since, journey.OperatorNamespace, journey.HostedNamespace(s.cluster))
	s.must(t, err)
	count := journey.ByManager(writes)
	for _, manager := range slices.Sorted(maps.Keys(count)) {
		s.Say("%4d writes of %s", count[manager], manager)
	}
	NewWithT(t).Expect(journey.Contested(writes)).To(BeEmpty(), "pods of both versions write to the same objects")
	return len(writes)
}

// lastRelease returns the newest version whose programs are built. It skips the test if there is none, as in a clone
// without the history of the repository.
func (s *suite) lastRelease(t *testing.T) string {
	t.Helper()
	folders, err := os.ReadDir(filepath.Join(s.Bin, "released"))
	if err != nil || len(folders) == 0 {
		t.Skip("no programs of a released version: make released-programs builds them")
	}
	versions := make([]semver.Version, 0, len(folders))
	for _, folder := range folders {
		versions = append(versions, parseVersion(folder.Name()))
	}
	return slices.MaxFunc(versions, semver.Version.Compare).String()
}

// operatorRuns checks that all pods of the operator run the image of the Deployment, which Install has changed.
func (s *suite) operatorRuns(ctx context.Context) (bool, string, error) {
	pods := &corev1.PodList{}
	if err := s.c.List(ctx, pods, client.InNamespace(journey.OperatorNamespace)); err != nil {
		return false, "", err
	}
	images := map[string]int{}
	for i := range pods.Items {
		for _, container := range pods.Items[i].Spec.Containers {
			images[container.Image]++
		}
	}
	return len(images) == 1, fmt.Sprintf("%d images of the operator run", len(images)), nil
}

// atRest waits until the management cluster has had no writes for the duration of window, and the cluster is
// available.
func (s *suite) atRest(t *testing.T, window time.Duration) {
	t.Helper()
	s.reach(t, "management cluster at rest", long, journey.All(
		journey.ClusterAvailable(s.c, s.cluster), s.Quiet(s.Path("kubeconfig"), window)))
}
