// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/simulator"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// crashLXDKillsEnv is the variable with the number of kills in TestCrashLXD.
const crashLXDKillsEnv = "CRASH_LXD_KILLS"

// hostsOf returns a MAAS without machines, with n LXD hosts of 16 cores and 64 GiB.
func hostsOf(t testing.TB, n int, rules ...faults.Rule) *simulator.Simulator {
	t.Helper()
	var hosts []simtest.VMHost
	for i := range n {
		hosts = append(hosts, simtest.VMHost{Name: "h" + strconv.Itoa(i)})
	}
	s, err := simulator.New(simulator.Options{Seed: []byte(simtest.WithVMHosts(simtest.Seed(), hosts...)), RandomSeed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		simtest.Fault(t, s, rule)
	}
	return s
}

// TestCrashLXD kills the provider around a random call while virtual machines are created and deleted on five hosts.
// One fails commissioning and one fails to deploy, so retries with another machine are interrupted as well.
func TestCrashLXD(t *testing.T) {
	t.Parallel()
	kills := setting(t, crashLXDKillsEnv, 24, strconv.Atoi)
	cfg := testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI)
	for _, tc := range []struct {
		name, namespace string
		kube            bool
	}{
		{"When the provider is killed around a MAAS call, no virtual machine or placement should leak", "clusters-lxd-maas", false},
		{"When the provider is killed around a write to the management cluster, no VM or placement should leak", "clusters-lxd-kube", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := newVMDriver(t, cfg, tc.namespace)
			d.waves(tc.kube, kills/2, d.settleVMs)
			hosts, err := d.region.ListVMHosts(t.Context())
			d.Expect(err).NotTo(HaveOccurred())
			for _, h := range hosts {
				d.Expect(h.Used).To(Equal(maas.Resources{}), "all is gone, and host %s gives something away", h.Name)
			}
		})
	}
}

func newVMDriver(t *testing.T, cfg *rest.Config, namespace string) *driver {
	s := hostsOf(t, 5, faults.Rule{Kind: faults.CommissionFails, Machine: "vm-*", Count: 1}, faults.Rule{Kind: faults.DeployFails, Machine: "vm-*", Count: 1})
	d := newDriverAt(t, cfg, namespace, simtest.Serve(t, s), s.Key("admin"), 30)
	d.vm = true
	return d
}

// settleVMs runs a process until all objects are in their desired state. It checks that MaasMachines and all virtual
// machines in MAAS, whatever their owner, match one to one.
func (d *driver) settleVMs() {
	d.t.Helper()
	d.settle()
	machines, err := d.region.ListMachines(d.t.Context(), maas.MachineFilter{})
	d.Expect(err).NotTo(HaveOccurred())
	made := map[string]string{}
	for _, m := range machines {
		made[m.SystemID] = lxd.UIDOf(m.Hostname)
	}
	d.expectNoLeak(made)
}
