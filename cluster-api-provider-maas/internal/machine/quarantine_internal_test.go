// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/quarantine"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

// recordFailure records a failed machine on the MaasCluster.
func recordFailure(t *testing.T, k *rack, id string, record quarantine.Record) {
	t.Helper()
	if err := quarantine.Records.Set(k.infra, id, record); err != nil {
		t.Fatal(err)
	}
	if err := k.Client.Update(t.Context(), k.infra); err != nil {
		t.Fatal(err)
	}
}

// TestSetAside checks that each failure of a machine is counted once, even if the process dies afterwards. That of a
// virtual machine is not counted.
func TestSetAside(t *testing.T) {
	t.Parallel()
	metal := maas.Machine{SystemID: "x", Hostname: "mole", PowerType: "ipmi"}
	first := quarantine.Record{Hostname: "mole", Failures: 1, Last: simtest.Start, By: "self/1", Image: "custom/node-image"}
	for name, tc := range map[string]struct {
		before   *quarantine.Record
		observed *maas.Machine
		failures []failure
		want     quarantine.Record
	}{
		"it is the first failure":                      {nil, &metal, nil, first},
		"the failure is already counted":               {&quarantine.Record{Failures: 7, By: "self/1"}, &metal, nil, quarantine.Record{Failures: 7, By: "self/1"}},
		"it is the second failure of this MaasMachine": {&first, &metal, []failure{{SystemID: "before"}}, quarantine.Record{Hostname: "mole", Failures: 2, Last: simtest.Start, By: "self/2", Image: "custom/node-image"}},
		"it already failed for another MaasMachine":    {&quarantine.Record{Failures: 2, By: "other/1", Quarantined: true}, &metal, nil, quarantine.Record{Hostname: "mole", Failures: 3, Last: simtest.Start, By: "self/1", Image: "custom/node-image", Quarantined: true}},
		"MAAS does not return it":                      {&quarantine.Record{Hostname: "former", By: "other/1"}, nil, nil, quarantine.Record{Hostname: "former", Failures: 1, Last: simtest.Start, By: "self/1", Image: "custom/node-image"}},
		"it was composed for this MaasMachine":         {nil, &maas.Machine{SystemID: "x", PowerType: "lxd"}, nil, quarantine.Record{}},
	} {
		self := sibling("self", running("x"))
		if tc.observed != nil && tc.observed.PowerType == "lxd" {
			self.Spec.ProvisioningMode = infrav1.ProvisioningModeLXD
		}
		if err := setFailures(self, tc.failures); err != nil {
			t.Fatal(err)
		}
		k := seeker(t, "alice", self)
		if tc.before != nil {
			recordFailure(t, k, "x", *tc.before)
		}
		k.observed = tc.observed
		if err := k.setAside(t.Context(), k.scope); err != nil {
			t.Errorf("when %s: %v", name, err)
		}
		if diff := cmp.Diff(tc.want, quarantine.Records.Of(k.storedCluster())["x"]); diff != "" {
			t.Errorf("when %s (-want +got):\n%s", name, diff)
		}
		if k.site.Clock.Step(time.Hour - 1); !k.identity.SetAside.Has("x") {
			t.Errorf("when %s, it may be picked too soon", name)
		}
		if k.site.Clock.Step(1); k.identity.SetAside.Has("x") {
			t.Errorf("when %s, it is set aside for too long", name)
		}
	}
	k := seeker(t, "alice", sibling("self", running("x")))
	unwritable[*infrav1.MaasCluster](k)
	if err := k.setAside(t.Context(), k.scope); !errors.Is(err, errUnwritten) {
		t.Errorf("what is not written down is not counted: %v", err)
	}
}

// TestHeed checks that a machine that failed for any MaasMachine of the cluster is set aside for an hour. It also
// checks that machines in the quarantine of this cluster are recorded.
func TestHeed(t *testing.T) {
	t.Parallel()
	self := sibling("self")
	if err := setFailures(self, []failure{{SystemID: "mine", At: simtest.Start.Add(-59 * time.Minute)}, {SystemID: "old", At: simtest.Start.Add(-time.Hour)}}); err != nil {
		t.Fatal(err)
	}
	k := seeker(t, "alice", self)
	recordFailure(t, k, "theirs", quarantine.Record{Last: simtest.Start.Add(-59 * time.Minute)})
	recordFailure(t, k, "shared", quarantine.Record{Last: simtest.Start.Add(-time.Hour), Quarantined: true, Shared: true})
	recordFailure(t, k, "unshared", quarantine.Record{Last: simtest.Start.Add(-time.Hour), Quarantined: true})
	k.excludeFailed(k.scope)
	if diff := cmp.Diff(map[string]bool{"theirs": false, "shared": false, "unshared": true}, k.quarantined); diff != "" {
		t.Errorf("in quarantine (-want +got):\n%s", diff)
	}
	for id, want := range map[string]bool{"mine": true, "old": false, "theirs": true, "shared": false, "unshared": false} {
		if got := k.identity.SetAside.Has(id); got != want {
			t.Errorf("%s is set aside: %t", id, got)
		}
	}
}

// TestWellAgain checks that a running machine loses its failures, but only an administrator ends a quarantine.
func TestWellAgain(t *testing.T) {
	t.Parallel()
	for quarantined, stays := range map[bool]bool{false: false, true: true} {
		k := seeker(t, "alice", sibling("self", running("x")))
		recordFailure(t, k, "x", quarantine.Record{Failures: 1, Quarantined: quarantined})
		recordFailure(t, k, "other", quarantine.Record{Failures: 1})
		if err := k.wellAgain(t.Context(), k.scope); err != nil {
			t.Error(err)
		}
		records := quarantine.Records.Of(k.storedCluster())
		if _, there := records["x"]; there != stays || records["other"].Failures != 1 {
			t.Errorf("in quarantine %t: what is known is %v", quarantined, records)
		}
	}
	k := seeker(t, "alice", sibling("self", running("x")))
	unwritable[*infrav1.MaasCluster](k)
	if err := k.wellAgain(t.Context(), k.scope); err != nil {
		t.Errorf("nothing is to be forgotten: %v", err)
	}
	if err := quarantine.Records.Set(k.infra, "x", quarantine.Record{Failures: 1}); err != nil {
		t.Fatal(err)
	}
	if err := k.wellAgain(t.Context(), k.scope); !errors.Is(err, errUnwritten) {
		t.Errorf("what is not written is not forgotten: %v", err)
	}
}

// TestUntagged checks that the request excludes the tags of the spec and of the quarantine, but only tags that exist in
// MAAS.
func TestUntagged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tags []string
		want []string
	}{
		"MAAS has none of them":           {[]string{"fast"}, []string{}},
		"MAAS has the quarantine tag":     {[]string{quarantine.Tag, "fast"}, []string{quarantine.Tag}},
		"MAAS also has a tag of the spec": {[]string{quarantine.Tag, "gpu", "fast"}, []string{"gpu", quarantine.Tag}},
	} {
		k := seeker(t, "alice", sibling("self"), simtest.Machine{ID: "aaaaa1", Tags: tc.tags})
		unwanted := []string{"gpu", "slow"}
		got, err := k.untagged(t.Context(), unwanted)
		if err != nil || !cmp.Equal(got, tc.want) || unwanted[0] != "gpu" || unwanted[1] != "slow" {
			t.Errorf("when %s, it is asked without %v, %v", name, got, err)
		}
	}
	k := seeker(t, "alice", sibling("self"))
	simtest.Fault(t, k.site.Simulator, faults.Rule{Kind: faults.Error, Status: http.StatusBadGateway})
	if _, err := k.untagged(t.Context(), nil); err == nil {
		t.Error("a MAAS that does not answer has said nothing of its tags")
	}
}
