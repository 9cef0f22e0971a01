// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/lifecycle"
	"github.com/openshift/hypershift/test/journey"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
)

// steadyPool is the pool of cluster steady that is updated in place.
const steadyPool = "inplace"

// fleet holds hosted clusters in the states in which an upgrade of the operator may find them. The command of 0.1.0
// encrypts the Secrets of each of them.
type fleet struct {
	// steady has one replica, a pool that is replaced and one that is updated in place.
	steady *suite
	// available is highly available. Its credentials are spelled as CAPMAAS's users spell them.
	available *suite
	// paused is paused.
	paused *suite
	// failing has a machine whose deployment fails; leaving is being deleted, and MAAS cannot release its machine.
	failing, leaving *suite
	// healFailing and healLeaving end the faults of MAAS.
	healFailing, healLeaving func()
	// none is a cluster of platform None without nodes.
	none *suite
}

// running returns the clusters that must not notice the upgrade.
func (f *fleet) running() []*suite { return []*suite{f.steady, f.available, f.paused} }

// all returns all clusters.
func (f *fleet) all() []*suite {
	return append(f.running(), f.failing, f.leaving, f.none)
}

// newFleet creates the clusters with a release's own command and payload. The end of the test removes them with the
// environment.
func (s *suite) newFleet(t *testing.T, published lifecycle.Published) *fleet {
	t.Helper()
	own := func(name string) *suite {
		one := s.withUser(t, scenario{name: name}, &sync.RWMutex{})
		one.Hypershift = published.Command
		return one
	}
	f := &fleet{steady: own("steady"), available: own("available"), paused: own("paused"), failing: own("failing"),
		leaving: own("leaving"), none: own("none")}
	flags := []string{"--image", ignitionImage, "--release-image", published.Payload}
	f.available.createAsOfCAPMAAS(t, published.Payload)
	for _, one := range []*suite{f.steady, f.paused, f.leaving, f.failing} {
		replicas := map[*suite]int{f.steady: 2, f.paused: 1, f.leaving: 1}[one]
		own := append([]string{"--maas-api-key-file", one.keyFile, "--maas-resource-pool", workers}, flags...)
		one.must(t, one.CreateCluster(t.Context(), one.cluster, replicas, own...))
	}
	f.steady.createPool(t, steadyPool, "--image", ignitionImage, "--node-upgrade-type", "InPlace",
		"--resource-pool", workers)
	f.none.createNone(t, published.Payload)
	f.follow(t)
	f.disturb(t)
	return f
}

// follow waits until all clusters have their nodes.
func (f *fleet) follow(t *testing.T) {
	t.Helper()
	for one, replicas := range map[*suite]int{f.available: 1, f.steady: 2, f.paused: 1, f.leaving: 1, f.failing: 0} {
		one.must(t, one.FollowCluster(t.Context(), one.cluster, replicas))
	}
	f.steady.must(t, f.steady.FollowMachines(t.Context(), f.steady.c, f.steady.cluster, steadyPool, 1))
	f.steady.reach(t, "three nodes ready", long, f.steady.NodesReady(f.steady.cluster, 3))
	f.none.reach(t, "control plane available", long, journey.ClusterAvailable(f.none.c, f.none.cluster))
	f.available.reach(t, "all replicas of the control plane available", long, f.available.complete)
	f.steady.must(t, f.steady.RunWorkload(t.Context(), f.steady.cluster))
}

// disturb pauses a cluster, lets deployments of another one fail, and begins a deletion that MAAS cannot complete.
func (f *fleet) disturb(t *testing.T) {
	t.Helper()
	f.paused.patch(t, `{"spec":{"pausedUntil":"true"}}`)
	_, f.healFailing = f.failing.fault(t, faults.Rule{Kind: faults.DeployFails})
	f.failing.scale(t, f.failing.cluster, 1)
	f.failing.reach(t, "a deployment failed", long, f.failing.hasEvent("DeployFailed"))
	_, f.healLeaving = f.leaving.fault(t, faults.Rule{Kind: faults.Error, Operation: "machine.release"})
	f.leaving.must(t, f.leaving.Type(t.Context(), "kubectl", "delete", "hostedcluster", f.leaving.cluster,
		"-n", journey.Namespace, "--wait=false"))
	f.leaving.reach(t, "machines are being deleted", long, f.leaving.machinesLeave)
}

// patch changes the HostedCluster with a command of a user.
func (s *suite) patch(t *testing.T, change string) {
	t.Helper()
	s.must(t, s.Type(t.Context(), "kubectl", "patch", "hostedcluster", s.cluster, "-n", journey.Namespace,
		"--type=merge", "-p", change))
}

// createAsOfCAPMAAS creates a highly available cluster whose Secret has the keys of CAPMAAS's Secrets.
func (s *suite) createAsOfCAPMAAS(t *testing.T, payload string) {
	t.Helper()
	key, err := os.ReadFile(s.keyFile)
	s.must(t, err)
	s.must(t, s.c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: journey.Namespace}}))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: journey.Namespace, Name: "capmaas"},
		Data: map[string][]byte{
			hyperv1.MAASServerURLKey: []byte(env.MAASURL), hyperv1.MAASAPIKeyAltKey: bytes.TrimSpace(key),
		},
	}
	s.must(t, s.c.Create(t.Context(), secret))
	s.must(t, s.Type(t.Context(), "hypershift", "create", "cluster", "maas", "--name", s.cluster,
		"--control-plane-availability-policy", "HighlyAvailable", "--node-pool-replicas", "1", "--erase", "None",
		"--credentials-secret", secret.Name, "--maas-resource-pool", workers, "--image", ignitionImage,
		"--release-image", payload, "--pull-secret", s.Path("pull-secret.json"),
		"--additional-trust-bundle", env.Env{Dir: s.Dir, Bin: s.Bin}.RegistryCA()))
}

// createNone creates a cluster of platform None without nodes.
func (s *suite) createNone(t *testing.T, payload string) {
	t.Helper()
	s.must(t, s.Type(t.Context(), "hypershift", "create", "cluster", "none", "--name", s.cluster,
		"--node-pool-replicas=-1", "--release-image", payload, "--pull-secret", s.Path("pull-secret.json"),
		"--additional-trust-bundle", env.Env{Dir: s.Dir, Bin: s.Bin}.RegistryCA()))
}
