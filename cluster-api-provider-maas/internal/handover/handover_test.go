// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/handover"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/quarantine"
)

func demo() *infrav1.MaasCluster {
	return &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
}

// TestRecordsSurvive checks that a record is read as it was written, with everything needed for the release,
// including the disk erasure.
func TestRecordsSurvive(t *testing.T) {
	t.Parallel()
	infra := demo()
	want := handover.Record{Machine: "m", UID: "u", Keyless: true, User: "alice", Hostname: "mole", Since: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Words: "dead",
		Erase: &infrav1.EraseConfig{Mode: "Secure"}, LXD: true, Address: `{"ip": "10.0.0.7"}`}
	if err := handover.Records.Set(infra, "a", want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]handover.Record{"a": want}, handover.Records.Of(infra)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestBrokenRecordStands checks that an invalid record does not make the controller forget a machine. The message has
// the command that removes the record.
func TestBrokenRecordStands(t *testing.T) {
	t.Parallel()
	infra := demo()
	infra.Annotations = map[string]string{handover.Records.Key("a"): `{"machine": 7}`, quarantine.Records.Key("a"): `{`}
	record, stands := handover.Records.Of(infra)["a"]
	if !stands || !strings.HasPrefix(record.Words, "its annotation can't be read: ") {
		t.Errorf("it stands: %t, with %q", stands, record.Words)
	}
	if got := record.Describe(infra, "a", record.Words); !strings.Contains(got, record.Words) || !strings.HasSuffix(got, "kubectl annotate maascluster -n ns demo "+handover.Records.Key("a")+"-") {
		t.Errorf("a person reads %q", got)
	}
	if n := len(quarantine.Records.Of(infra)); n != 0 {
		t.Errorf("%d machines are in a quarantine that nobody can read", n)
	}
}

// TestDescribe checks that the message names the machine, its MaasMachine, the time in UTC, and the cause.
func TestDescribe(t *testing.T) {
	t.Parallel()
	record := handover.Record{Machine: "m", Hostname: "mole", Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 7200))}
	got := record.Describe(demo(), "wq4h8c", "the BMC is dead")
	if want := "MAAS has not released machine mole (wq4h8c) of the deleted MaasMachine m since 2026-01-02T01:04:05Z: the BMC is dead. "; !strings.HasPrefix(got, want) {
		t.Errorf("a person reads %q", got)
	}
}

// TestEndOfQuarantine checks how a quarantine ends. If all providers honor it, a user removes the tag. If it is
// limited to this cluster, a user removes the annotation.
func TestEndOfQuarantine(t *testing.T) {
	t.Parallel()
	if got := quarantine.Release(demo(), "wq4h8c", true); !strings.Contains(got, quarantine.Tag) || !strings.HasSuffix(got, "remove=wq4h8c") {
		t.Errorf("in MAAS: %s", got)
	}
	if got := quarantine.Release(demo(), "wq4h8c", false); got != quarantine.Records.Forget(demo(), "wq4h8c") {
		t.Errorf("on the MaasCluster: %s", got)
	}
}
