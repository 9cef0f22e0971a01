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

// steadyPool is the pool of cluster steady that is updated in place. failingPool is its pool whose machines fail.
const steadyPool, failingPool = "inplace", "failing"

// fleet holds hosted clusters in the states in which an upgrade of the operator may find them. The command of 0.1.0
// encrypts the Secrets of each of them.
type fleet struct {
	// steady has one replica, a pool that is replaced and one that is updated in place.
	steady *suite
	// available is highly available. Its credentials are spelled as CAPMAAS's users spell them.
	available *suite
	// paused is paused.
	paused *suite
	// failing has the MAAS user of failingPool, a pool of cluster steady. Deployments of this user fail.
	failing *suite
	// leaving is being deleted, and MAAS cannot release its machine.
	leaving *suite
	// healFailing and healLeaving end the faults of MAAS.
	healFailing, healLeaving func()
}

// running returns the clusters that must not notice the upgrade.
func (f *fleet) running() []*suite { return []*suite{f.steady, f.available, f.paused} }

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
		leaving: own("leaving")}
	f.failing.cluster = f.steady.cluster
	// Two processors start one control plane after another in less time than all at once.
	f.available.createAsOfCAPMAAS(t, published.Payload)
	f.available.must(t, f.available.FollowCluster(t.Context(), f.available.cluster, 1))
	flags := []string{"--image", ignitionImage, "--release-image", published.Payload}
	f.steady.createCluster(t, 1, flags...)
	f.steady.createPool(t, steadyPool, "--image", ignitionImage, "--node-upgrade-type", "InPlace",
		"--resource-pool", workers)
	f.paused.createCluster(t, 1, flags...)
	f.leaving.createCluster(t, 1, flags...)
	f.steady.reach(t, "two nodes ready", long, f.steady.NodesReady(f.steady.cluster, 2))
	f.available.reach(t, "all replicas of the control plane available", long, f.available.complete)
	f.steady.must(t, f.steady.RunWorkload(t.Context(), f.steady.cluster))
	f.disturb(t)
	return f
}

// disturb pauses a cluster, lets deployments of a pool fail, and begins a deletion that MAAS cannot complete.
func (f *fleet) disturb(t *testing.T) {
	t.Helper()
	f.paused.patch(t, `{"spec":{"pausedUntil":"true"}}`)
	_, f.healFailing = f.failing.fault(t, faults.Rule{Kind: faults.DeployFails})
	f.failing.createPool(t, failingPool, "--image", ignitionImage, "--resource-pool", workers,
		"--identity-ref", f.failing.credentials(t, "of-failing", hyperv1.MAASEndpointKey, hyperv1.MAASAPIKeyKey))
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

// credentials creates a Secret with the credentials of the suite's MAAS user under these keys, and returns its name.
func (s *suite) credentials(t *testing.T, name, endpoint, apiKey string) string {
	t.Helper()
	key, err := os.ReadFile(s.keyFile)
	s.must(t, err)
	s.must(t, s.c.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: journey.Namespace, Name: name},
		Data:       map[string][]byte{endpoint: []byte(env.MAASURL), apiKey: bytes.TrimSpace(key)},
	}))
	return name
}

// createAsOfCAPMAAS creates a highly available cluster whose Secret has the keys of CAPMAAS's Secrets.
func (s *suite) createAsOfCAPMAAS(t *testing.T, payload string) {
	t.Helper()
	s.must(t, s.c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: journey.Namespace}}))
	s.must(t, s.Type(t.Context(), "hypershift", "create", "cluster", "maas", "--name", s.cluster,
		"--control-plane-availability-policy", "HighlyAvailable", "--node-pool-replicas", "1", "--erase", "None",
		"--credentials-secret", s.credentials(t, "of-capmaas", hyperv1.MAASServerURLKey, hyperv1.MAASAPIKeyAltKey),
		"--maas-resource-pool", workers, "--image", ignitionImage,
		"--release-image", payload, "--pull-secret", s.Path("pull-secret.json"),
		"--additional-trust-bundle", env.Env{Dir: s.Dir, Bin: s.Bin}.RegistryCA()))
}
