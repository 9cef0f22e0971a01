// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/record"
)

type fact struct {
	Words string `json:"words"`
}

var (
	facts   = record.Kind[fact]{Prefix: "fact.example.com/"}
	notices = record.Kind[fact]{Prefix: "notice.example.com/", Broken: func(error) fact { return fact{Words: "broken"} }}
)

func TestRecords(t *testing.T) {
	infra := &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	for _, id := range []string{"b", "a"} {
		if err := facts.Set(infra, id, fact{Words: "about " + id}); err != nil {
			t.Fatal(err)
		}
	}
	if err := notices.Set(infra, "a", fact{Words: "notice"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]fact{"a": {Words: "about a"}, "b": {Words: "about b"}}, facts.Of(infra)); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, record.IDs(facts.Of(infra))); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	facts.Remove(infra, "a")
	if diff := cmp.Diff(map[string]string{"fact.example.com/b": `{"words":"about b"}`, "notice.example.com/a": `{"words":"notice"}`}, infra.Annotations); diff != "" {
		t.Errorf("annotations after one was removed (-want +got):\n%s", diff)
	}
}

func TestBrokenRecord(t *testing.T) {
	infra := &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"fact.example.com/a": "{", "notice.example.com/a": "{"}}}
	if got := facts.Of(infra); len(got) != 0 {
		t.Errorf("a broken annotation should be no record, got %v", got)
	}
	if diff := cmp.Diff(map[string]fact{"a": {Words: "broken"}}, notices.Of(infra)); diff != "" {
		t.Errorf("a broken annotation should be what Broken makes of it (-want +got):\n%s", diff)
	}
}

func TestNoMaasCluster(t *testing.T) {
	if got := facts.Of(nil); got == nil || len(got) != 0 {
		t.Errorf("no MaasCluster should have no records, got %v", got)
	}
}

func TestForget(t *testing.T) {
	infra := &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	if diff := cmp.Diff("kubectl annotate maascluster -n ns demo fact.example.com/a-", facts.Forget(infra, "a")); diff != "" {
		t.Error(diff)
	}
}
