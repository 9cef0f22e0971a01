// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/maas"
)

func TestFailuresSurviveARoundTrip(t *testing.T) {
	g := NewWithT(t)
	m := &infrav1.MaasMachine{}
	g.Expect(failuresOf(m)).To(BeEmpty())
	want := []failure{{SystemID: "wq4h8c", Hostname: "mole", At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Reason: "MachineDeployFailed", Words: "no \"disk\"", Released: true}}
	g.Expect(setFailures(m, want)).To(Succeed())
	g.Expect(failuresOf(m)).To(Equal(want))
}

func FuzzAnnotations(f *testing.F) {
	f.Add("2026-01-02T03:04:05Z", `[{"systemID": "a"}]`, "uid")
	f.Add("yesterday", `{"systemID": 1}`, "")
	f.Add("", "null", "\x00")
	f.Fuzz(func(t *testing.T, attempt, failures, uid string) {
		m := &infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{UID: "own", Annotations: map[string]string{
			AttemptAnnotation: attempt, FailuresAnnotation: failures, UIDAnnotation: uid}}}
		// Annotations that a user edited must never stop the reconcile.
		attemptedAt(m)
		failuresOf(m)
		if got := AllocationUID(m); got == "" || uid != "" && got != uid {
			t.Fatalf("the key is made of %q", got)
		}
	})
}

func TestProblemOf(t *testing.T) {
	for want, err := range map[string]error{
		ReasonUnauthorized: &maas.Error{StatusCode: http.StatusUnauthorized},
		ReasonForbidden:    &maas.Error{StatusCode: http.StatusForbidden},
		ReasonInvalid:      &maas.Error{StatusCode: http.StatusBadRequest},
		ReasonUnavailable:  &maas.Error{StatusCode: http.StatusBadGateway},
		ReasonUnreachable:  &maas.UnreachableError{Err: context.DeadlineExceeded},
		ReasonError:        errors.New("something else"),
	} {
		got := ProblemOf(err)
		NewWithT(t).Expect(got.Reason).To(Equal(want))
		NewWithT(t).Expect(got.Message).To(ContainSubstring(err.Error()))
	}
	NewWithT(t).Expect(ProblemOf(&maas.Error{StatusCode: http.StatusTooManyRequests}).Reason).To(Equal(ReasonUnavailable))
}

func TestPace(t *testing.T) {
	g := NewWithT(t)
	p, now := newPace(time.Minute), time.Now()
	g.Expect(p.due("a", now)).To(BeTrue())
	g.Expect(p.due("a", now.Add(59*time.Second))).To(BeFalse())
	g.Expect(p.due("b", now.Add(59*time.Second))).To(BeTrue())
	g.Expect(p.due("a", now.Add(60*time.Second))).To(BeTrue())
	g.Expect(p.due("a", now.Add(179*time.Second))).To(BeFalse(), "the second pause is twice as long")
	g.Expect(p.due("a", now.Add(180*time.Second))).To(BeTrue())
	g.Expect(p.turns).To(HaveLen(2))
	p.due("c", now.Add(2*time.Hour))
	g.Expect(p.turns).To(HaveLen(1), "what is old is forgotten")
	for n := range 20 {
		p.due("d", now.Add(time.Duration(n)*2*time.Hour))
	}
	g.Expect(p.turns["d"].pause).To(BeNumerically("<=", rarely))
}

func TestRefusals(t *testing.T) {
	g := NewWithT(t)
	r, now := newRefusals(10*time.Second, time.Minute), time.Now()
	_, left := r.standing("a", now)
	g.Expect(left).To(BeZero())
	var pauses []time.Duration
	for range 5 {
		pauses = append(pauses, r.add("a", Problem{"R", "words"}, now))
	}
	g.Expect(pauses[0]).To(BeNumerically("~", 11*time.Second, time.Second))
	g.Expect(pauses[1]).To(BeNumerically(">=", 2*pauses[0]))
	g.Expect(pauses[4]).To(BeNumerically("~", 66*time.Second, 6*time.Second), "a pause has an end")
	p, left := r.standing("a", now.Add(time.Second))
	g.Expect(p).To(Equal(Problem{"R", "words"}))
	g.Expect(left).To(Equal(pauses[4] - time.Second))
	_, left = r.standing("b", now)
	g.Expect(left).To(BeZero())
	r.end("a")
	g.Expect(r.add("a", Problem{}, now)).To(BeNumerically("<=", 12*time.Second), "MAAS did what it was asked in between")
}

func TestAddresses(t *testing.T) {
	g := NewWithT(t)
	g.Expect(addresses(&maas.Machine{})).To(BeEmpty(), "an empty address breaks validation")
	got := addresses(&maas.Machine{Hostname: "Mole", FQDN: "Mole.Example", IPAddresses: []string{"10.0.0.1", "", "fd00::1"}})
	g.Expect(got).To(Equal([]infrav1.MachineAddress{
		{Type: "Hostname", Address: "mole"},
		{Type: "InternalDNS", Address: "mole.example"}, {Type: "InternalDNS", Address: "mole"}, {Type: "ExternalDNS", Address: "mole.example"},
		{Type: "InternalIP", Address: "10.0.0.1"}, {Type: "ExternalIP", Address: "10.0.0.1"},
		{Type: "InternalIP", Address: "fd00::1"}, {Type: "ExternalIP", Address: "fd00::1"},
	}))
}

func TestSystemID(t *testing.T) {
	id, other := "wq4h8c", "maas:///az1/abcdef"
	for want, spec := range map[string]infrav1.MaasMachineSpec{
		"":       {},
		"wq4h8c": {SystemID: &id, ProviderID: &other},
		"abcdef": {ProviderID: &other},
	} {
		s := &scope{machine: &infrav1.MaasMachine{Spec: spec}}
		NewWithT(t).Expect(s.systemID()).To(Equal(want))
	}
}
