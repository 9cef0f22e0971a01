// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
)

// scenario is a test with its own hosted cluster in the shared environment, which it removes at the end.
type scenario struct {
	// name is the name of the subtest, of the hosted cluster and of the MAAS user.
	name string
	// core scenarios also run with -short, in `make test`.
	core bool
	// admin makes the MAAS user an administrator, which composing virtual machines requires.
	admin bool
	needs needs
	run   func(*suite, *testing.T)
}

// scenarios lists all scenarios. The longest ones come first, so that short ones fill the gaps. operators-killed
// waits until no other scenario runs, so short ones are next to it in the list.
var scenarios = []scenario{
	{name: "upgrade", core: true, needs: needs{controlPlanes: 1, surge: true, machines: 3}, run: (*suite).upgradeMinor},
	{name: "lxd", core: true, admin: true, needs: needs{controlPlanes: 1, machines: 1, lxdHosts: 2},
		run: (*suite).virtual},
	{name: "in-place", needs: needs{controlPlanes: 1, machines: 3}, run: (*suite).inPlace},
	{name: "platforms", needs: needs{controlPlanes: 2, machines: 2}, run: (*suite).platforms},
	{name: "provider-killed", core: true, needs: needs{controlPlanes: 1, machines: 4}, run: (*suite).providerKills},
	{name: "dead-bmc", core: true, needs: needs{controlPlanes: 1, machines: 3}, run: (*suite).deadBMC},
	{name: "network-policies", core: true, needs: needs{controlPlanes: 2, machines: 1}, run: (*suite).networkPolicies},
	{name: "another-users-key", core: true, needs: needs{controlPlanes: 1, machines: 2}, run: (*suite).anotherUsersKey},
	{name: "operators-killed", needs: needs{controlPlanes: 1, machines: 2}, run: (*suite).operatorKills},
	{name: "create", core: true, needs: needs{controlPlanes: 1, machines: 2}, run: (*suite).create},
	{name: "mistakes", core: true, needs: needs{controlPlanes: 1}, run: (*suite).mistakes},
	{name: "endpoint-migration", needs: needs{controlPlanes: 1, surge: true, machines: 2},
		run: (*suite).endpointMigration},
	{name: "rebuilt-images", needs: needs{controlPlanes: 1, surge: true, machines: 3}, run: (*suite).upgradeDigest},
	{name: "maas-away", needs: needs{controlPlanes: 1, machines: 2}, run: (*suite).maasAway},
	{name: "failed-deployment", needs: needs{controlPlanes: 1, machines: 3}, run: (*suite).failedDeployment},
	{name: "scaling", needs: needs{controlPlanes: 1, machines: 3}, run: (*suite).scaling},
	{name: "autoscale-from-zero", needs: needs{controlPlanes: 1, machines: 2}, run: (*suite).wake},
	{name: "stock-image", needs: needs{controlPlanes: 1, machines: 1}, run: (*suite).ubuntu},
	{name: "constraints", needs: needs{controlPlanes: 1, machines: 1}, run: (*suite).constraints},
	{name: "bad-configuration", needs: needs{controlPlanes: 1, machines: 1}, run: (*suite).badConfiguration},
	{name: "disk-wipe", needs: needs{controlPlanes: 1, machines: 1}, run: (*suite).diskWipe},
	{name: "restore", needs: needs{controlPlanes: 1, machines: 2}, run: (*suite).restore},
	{name: "quiet", needs: needs{controlPlanes: 1, machines: 1}, run: (*suite).quiet},
}

// TestE2E runs the scenarios in one environment, as many in parallel as fit. With -short it runs the core set. To run
// one scenario alone, use `go test ./test/e2e -run TestE2E/upgrade`. Scenario released starts first, since it
// installs the operator, and continues in parallel to the others.
func TestE2E(t *testing.T) {
	s := start(t)
	upgraded, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		signal := sync.OnceFunc(func() { close(upgraded) })
		defer signal()
		t.Run("released", func(t *testing.T) { s.released(t, signal) })
	}()
	<-upgraded
	s.must(t, s.Install(t.Context(), s.installFlags(t)...))
	available, err := s.capacity(t.Context())
	s.must(t, err)
	var chosen []scenario
	for _, sc := range scenarios {
		if sc.core || !testing.Short() {
			chosen = append(chosen, sc)
		}
	}
	all := &schedule{free: available}
	all.run(t, s, chosen)
	<-ended
	all.print(s.Out)
	s.rights(t, all.complete())
}

// TestScenarioNames checks that no scenario's name is part of another scenario's name, because the objects of a
// cluster are found by its name.
func TestScenarioNames(t *testing.T) {
	for i, a := range scenarios {
		for j, b := range scenarios {
			NewWithT(t).Expect(i == j || !strings.Contains(a.name, b.name)).To(BeTrue(), "%s contains %s", a.name, b.name)
		}
	}
}
