// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// shown returns what a user sees of a machine: its status, power state and status message.
func shown(m *inventory.Machine) string {
	message := ""
	if m.StatusMessage != nil {
		message = *m.StatusMessage
	}
	return fmt.Sprintf("%s, %s: %s", m.Status, m.PowerState, message)
}

// follow records the changes of a machine until its task ends, and the seconds that it takes.
func follow(t *testing.T, site *simtest.Site, name string) (seen []string, seconds int) {
	t.Helper()
	for seconds = 0; ; seconds++ {
		m := site.Has(name)
		if now := shown(m); len(seen) == 0 || seen[len(seen)-1] != now {
			seen = append(seen, now)
		}
		if m.Task == nil {
			return seen, seconds
		}
		if seconds > 3600 {
			t.Fatalf("%s never comes to rest: %v", name, seen)
		}
		site.Pass(time.Second)
	}
}

// put sets the status of a machine of alice and deletes its events.
func put(site *simtest.Site, id string, s status.Status, power string) {
	site.Change(id, func(m *inventory.Machine) {
		m.Status, m.PowerState, m.Previous, m.Owner, m.StatusMessage = s, power, s, "", nil
		if !s.In(status.New, status.Ready, status.FailedCommissioning, status.Broken) {
			m.Owner = "alice"
		}
	})
}

func mustDo(t *testing.T, site *simtest.Site, user, operation string, form ...string) {
	t.Helper()
	if answer := site.Do(user, "POST", "machines/"+operation, form...); answer.Code != 200 {
		t.Fatalf("%s answers %d %s", operation, answer.Code, answer.Body)
	}
}

// TestTimelines verifies the durations of operations, the order of the visible states as in MAAS, and that operations
// end.
func TestTimelines(t *testing.T) {
	tests := map[string]struct {
		from      status.Status
		power     string
		user      string
		operation string
		seconds   int
		seen      []string
	}{
		"a new machine is commissioned": {status.New, "off", "admin", "?op=commission", 102, []string{
			"Commissioning, off: Commissioning", "Commissioning, on: Performing PXE boot", "Commissioning, on: Loading ephemeral",
			"Commissioning, on: Gathering information", "Ready, off: Ready"}},
		"a Ready machine is tested": {status.Ready, "off", "admin", "?op=test", 102, []string{
			"Testing, off: Running test", "Testing, on: Performing PXE boot", "Ready, off: Ran tests"}},
		"a Deployed machine is tested": {status.Deployed, "on", "admin", "?op=test", 102, []string{
			"Testing, on: Running test", "Testing, on: Performing PXE boot", "Deployed, on: Ran tests"}},
		"a Deployed machine is rescued": {status.Deployed, "on", "admin", "?op=rescue_mode", 102, []string{
			"Entering rescue mode, on: Entering rescue mode", "Entering rescue mode, on: Performing PXE boot", "Rescue mode, on: Entered rescue mode"}},
		"a machine is deployed": {status.Allocated, "off", "alice", "?op=deploy", 102, []string{
			"Deploying, off: Deploying", "Deploying, on: Performing PXE boot", "Deploying, on: Loading ephemeral", "Deploying, on: Configuring storage",
			"Deploying, on: Installing OS", "Deploying, on: Configuring OS", "Deploying, on: Loading deployed OS", "Deployed, on: Deployed"}},
		"a Deployed machine is released": {status.Deployed, "on", "alice", "?op=release", 2, []string{
			"Releasing, on: Releasing", "Ready, off: Released"}},
		"a machine that is off is released": {status.Deployed, "off", "alice", "?op=release", 0, []string{"Ready, off: Released"}},
		"its disks are erased": {status.Deployed, "on", "alice", "?op=release&erase=true", 104, []string{
			"Disk erasing, on: Erasing disks", "Releasing, on: Releasing", "Ready, off: Released"}},
		"the disks of a machine that is off are erased": {status.Deployed, "off", "alice", "?op=release&erase=true", 104, []string{
			"Disk erasing, off: Erasing disks", "Disk erasing, on: Erasing disks", "Releasing, on: Releasing", "Ready, off: Released"}},
		"a machine is switched on":  {status.Deployed, "off", "alice", "?op=power_on", 2, []string{"Deployed, off: ", "Deployed, on: "}},
		"a machine is switched off": {status.Deployed, "on", "alice", "?op=power_off", 2, []string{"Deployed, on: ", "Deployed, off: "}},
	}
	for name, test := range tests {
		t.Run("When "+name+", the states and durations should be those of MAAS", func(t *testing.T) {
			site := simtest.New(t, simtest.Rack)
			put(site, "aaaaa1", test.from, test.power)
			operation, form := test.operation, []string(nil)
			if operation == "?op=release&erase=true" {
				operation, form = "?op=release", []string{"erase", "true"}
			}
			mustDo(t, site, test.user, "aaaaa1/"+operation, form...)
			seen, seconds := follow(t, site, "one")
			if diff := cmp.Diff(test.seen, seen); diff != "" {
				t.Error(diff)
			}
			NewWithT(t).Expect(seconds).To(Equal(test.seconds))
		})
	}
}

// TestLeavingRescueMode verifies that a machine returns to its previous status, and that it is on only if it was
// Deployed.
func TestLeavingRescueMode(t *testing.T) {
	for from, power := range map[status.Status]string{status.Deployed: "on", status.Ready: "off", status.Allocated: "off", status.Broken: "off"} {
		t.Run("When a machine in rescue mode was "+from.String()+", it should return to that status", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			put(site, "aaaaa1", from, power)
			owner := site.Has("one").Owner
			mustDo(t, site, "admin", "aaaaa1/?op=rescue_mode")
			follow(t, site, "one")
			mustDo(t, site, "admin", "aaaaa1/?op=exit_rescue_mode")
			seen, seconds := follow(t, site, "one")
			g.Expect(seen).To(Equal([]string{"Exiting rescue mode, on: Exiting rescue mode", fmt.Sprintf("%s, %s: Exited rescue mode", from, power)}))
			g.Expect(seconds).To(Equal(2))
			g.Expect(site.Has("one").Owner).To(Equal(owner))
		})
	}
}

// TestManualPower verifies a machine with power type manual: MAAS cannot switch it, does not know its power state, and
// does not wait for it.
func TestManualPower(t *testing.T) {
	g := NewWithT(t)
	site := simtest.New(t, simtest.Rack)
	mustDo(t, site, "alice", "aaaaa4/?op=deploy")
	seen, _ := follow(t, site, "four")
	g.Expect(seen[len(seen)-1]).To(Equal("Deployed, off: Deployed"))
	mustDo(t, site, "alice", "aaaaa4/?op=power_on")
	g.Expect(site.Has("four").Task).To(BeNil())
	g.Expect(site.Do("alice", "POST", "machines/aaaaa4/?op=power_off").Body).To(Equal("null"))
	g.Expect(site.Do("alice", "GET", "machines/aaaaa4/?op=query_power_state").Body).To(Equal(`{"state":"unknown"}`))
	g.Expect(site.Has("four").PowerState).To(Equal("unknown"), "what was asked is stored")
	mustDo(t, site, "alice", "aaaaa4/?op=release")
	g.Expect(shown(site.Has("four"))).To(Equal("Ready, unknown: Released"))
	mustDo(t, site, "admin", "aaaaa4/?op=test")
	seen, _ = follow(t, site, "four")
	g.Expect(seen[len(seen)-1]).To(Equal("Ready, unknown: Ran tests"))
	mustDo(t, site, "admin", "aaaaa4/?op=rescue_mode")
	follow(t, site, "four")
	mustDo(t, site, "admin", "aaaaa4/?op=exit_rescue_mode")
	seen, _ = follow(t, site, "four")
	g.Expect(seen[len(seen)-1]).To(Equal("Ready, unknown: Exited rescue mode"))
	site.Change("aaaaa4", func(m *inventory.Machine) { m.Status, m.Owner = status.Deployed, "alice" })
	mustDo(t, site, "alice", "aaaaa4/?op=release", "erase", "true")
	seen, _ = follow(t, site, "four")
	g.Expect(seen).To(Equal([]string{"Disk erasing, unknown: Erasing disks", "Ready, unknown: Released"}), "nothing shows when the power goes off")
}

// TestTimeOuts verifies that an operation without a response of the power controller fails at its timeout, and not
// before.
func TestTimeOuts(t *testing.T) {
	tests := map[status.Status]struct {
		from    status.Status
		request []string
		limit   time.Duration
		to      status.Status
	}{
		status.Commissioning:      {status.New, []string{"?op=commission"}, 30 * time.Minute, status.FailedCommissioning},
		status.Testing:            {status.Ready, []string{"?op=test"}, 30 * time.Minute, status.FailedTesting},
		status.EnteringRescueMode: {status.Deployed, []string{"?op=rescue_mode"}, 30 * time.Minute, status.FailedEnteringRescueMode},
		status.ExitingRescueMode:  {status.RescueMode, []string{"?op=exit_rescue_mode"}, 5 * time.Minute, status.FailedExitingRescueMode},
		status.Releasing:          {status.Deployed, []string{"?op=release"}, 5 * time.Minute, status.FailedReleasing},
		status.Deploying:          {status.Allocated, []string{"?op=deploy"}, time.Hour, status.FailedDeployment},
		status.DiskErasing:        {status.Deployed, []string{"?op=release", "erase", "true"}, 0, status.DiskErasing},
	}
	for s, test := range tests {
		t.Run("When a machine is "+s.String()+" and its BMC is dead, the operation should fail at its timeout", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			put(site, "aaaaa1", test.from, "on")
			simtest.KillBMC(t, site.Simulator, "one")
			mustDo(t, site, "admin", "aaaaa1/"+test.request[0], test.request[1:]...)
			site.Pass(10 * time.Second)
			if test.limit == 0 {
				site.Pass(48 * time.Hour)
				g.Expect(site.Has("one").Status).To(Equal(test.to), "nobody waits for it")
				return
			}
			site.Pass(test.limit - 11*time.Second)
			g.Expect(site.Has("one").Status).To(Equal(s))
			site.Pass(time.Second)
			m := site.Has("one")
			g.Expect(m.Status).To(Equal(test.to))
			reason := fmt.Sprintf("Machine operation '%s' timed out after %s.", s, test.limit)
			g.Expect(m.ErrorDescription).To(Equal(reason))
			g.Expect(*m.StatusMessage).To(Equal("Marking node failed - " + reason))
			g.Expect(m.Task).To(BeNil(), "nothing more is tried")
		})
	}
}

// TestPowerErrors verifies that an error of the power controller fails the operation immediately, with the controller's
// message.
func TestPowerErrors(t *testing.T) {
	tests := map[string]struct {
		from    status.Status
		request []string
		to      status.Status
	}{
		"commissioning":         {status.New, []string{"?op=commission"}, status.FailedCommissioning},
		"tests":                 {status.Ready, []string{"?op=test"}, status.FailedTesting},
		"a rescue":              {status.Deployed, []string{"?op=rescue_mode"}, status.FailedEnteringRescueMode},
		"the end of a rescue":   {status.RescueMode, []string{"?op=exit_rescue_mode"}, status.FailedExitingRescueMode},
		"a release":             {status.Deployed, []string{"?op=release"}, status.FailedReleasing},
		"a deployment":          {status.Allocated, []string{"?op=deploy"}, status.FailedDeployment},
		"the erasing of a disk": {status.Deployed, []string{"?op=release", "erase", "true"}, status.FailedDiskErasing},
	}
	for name, test := range tests {
		t.Run("When the operation is "+name+", a power error should fail it immediately", func(t *testing.T) {
			g := NewWithT(t)
			site := simtest.New(t, simtest.Rack)
			put(site, "aaaaa1", test.from, "on")
			owner := site.Has("one").Owner
			simtest.Fault(t, site.Simulator, faults.Rule{Kind: faults.PowerError, Machine: "one", Message: "no route"})
			mustDo(t, site, "admin", "aaaaa1/"+test.request[0], test.request[1:]...)
			_, seconds := follow(t, site, "one")
			g.Expect(seconds).To(Equal(2))
			m := site.Has("one")
			g.Expect(m.Status).To(Equal(test.to))
			g.Expect(m.ErrorDescription).To(HaveSuffix("node - no route"))
			if owner != "" {
				g.Expect(m.Owner).To(Equal(owner), "it is the owner's still")
			}
		})
	}
}
