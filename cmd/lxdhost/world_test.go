// SPDX-License-Identifier: Apache-2.0

package lxdhost

import (
	"bytes"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// world is a simulated MAAS without delays. The commands call it as an administrator.
type world struct {
	*GomegaWithT
	*simulator.Simulator
	t    *testing.T
	maas *maas.Client
	url  string
	out  bytes.Buffer
}

func newWorld(t *testing.T, seed string) *world {
	t.Helper()
	s, err := simulator.New(simulator.Options{Seed: []byte(seed), RandomSeed: 1})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{GomegaWithT: NewWithT(t), Simulator: s, t: t, url: simtest.Serve(t, s)}
	w.maas, err = maas.NewClient(maas.Config{Endpoint: w.url, APIKey: s.Key("admin"), Retry: maas.RetryPolicy{Attempts: 1}})
	w.Expect(err).NotTo(HaveOccurred())
	return w
}

// connection polls often, and times out before the test does.
func (w *world) connection() connection {
	return connection{interval: time.Millisecond, timeout: time.Minute}
}

func (w *world) report() *progress.Reporter { return progress.New(&w.out, clock.RealClock{}) }

func (w *world) create(change func(*create)) error {
	c := &create{connection: w.connection(), cpuOverCommit: 1, memoryOverCommit: 1}
	change(c)
	w.Expect(c.check()).To(Succeed())
	return c.make(w.t.Context(), w.maas, w.report())
}

// owned lists the machines that have an owner.
func (w *world) owned() []string {
	names := []string{}
	for _, m := range w.Machines() {
		if m.Owner != "" {
			names = append(names, m.Hostname)
		}
	}
	return names
}

func (w *world) hosts() []inventory.VMHost {
	var hosts []inventory.VMHost
	_ = w.DB.View(func() error { // The function of View always returns nil.
		for _, h := range w.DB.VMHosts.All() {
			hosts = append(hosts, *h.Clone())
		}
		return nil
	})
	return hosts
}

// rack returns the seed of three machines of increasing size in a pool for hosts, and one in another pool.
func rack() string {
	return simtest.Seed(
		simtest.Machine{ID: "aaaaa1", Hostname: "small", Pool: "hosts", Zone: "az1", CPU: 8, Memory: 16384},
		simtest.Machine{ID: "aaaaa2", Hostname: "large", Pool: "hosts", Zone: "az2", CPU: 32, Memory: 131072, Tags: []string{"nvme"}},
		simtest.Machine{ID: "aaaaa3", Hostname: "third", Pool: "hosts", Zone: "az2", CPU: 64, Memory: 262144},
		simtest.Machine{ID: "aaaaa4", Hostname: "metal"},
	)
}
