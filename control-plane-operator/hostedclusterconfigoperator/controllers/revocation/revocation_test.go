// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

var start = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

func machine(name, node string, made time.Time) clusterv1.Machine {
	m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(made)}}
	m.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineHostName, Address: node}}
	return m
}

func going(m clusterv1.Machine) clusterv1.Machine {
	m.DeletionTimestamp = &metav1.Time{Time: start}
	return m
}

func TestStateOf(t *testing.T) {
	other := machine("b", "worker-2", start)
	for name, tt := range map[string]struct {
		known    string
		machines []clusterv1.Machine
		want     string
	}{
		"its Machine exists":                                                {"", []clusterv1.Machine{machine("a", "worker-1", start)}, held},
		"its Machine is being deleted":                                      {held, []clusterv1.Machine{going(machine("a", "worker-1", start)), other}, leaving},
		"its Machine was being deleted and is gone":                         {leaving, []clusterv1.Machine{other}, revoked},
		"its Machine was the last and was deleted":                          {leaving, nil, revoked},
		"another Machine has its node's name":                               {held, []clusterv1.Machine{machine("next", "worker-1", start)}, revoked},
		"the deletion of its Machine was not observed":                      {held, []clusterv1.Machine{other}, held},
		"there is no Machine at all, as in a restore":                       {held, nil, held},
		"the record is revoked":                                             {revoked, []clusterv1.Machine{other}, revoked},
		"its Machine exists again after a restore":                          {revoked, []clusterv1.Machine{machine("a", "worker-1", start)}, held},
		"the Machine with its node's name is being deleted and has no node": {held, []clusterv1.Machine{going(machine("next", "worker-1", start))}, held},
	} {
		t.Run("When "+name+", the certificates of a node should be "+tt.want, func(t *testing.T) {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{stateLabel: tt.known}}, Data: map[string]string{nodeKey: "worker-1"}}
			NewWithT(t).Expect(stateOf("a", cm, tt.machines)).To(Equal(tt.want))
		})
	}
}

// TestHeir checks records that were restored with a snapshot of etcd, while the Machines of the lost management
// cluster were not.
func TestHeir(t *testing.T) {
	taker, another := machine("taker", "worker-1", start), machine("another", "worker-1", start)
	for name, tt := range map[string]struct {
		made     time.Time
		known    string
		heir     string
		machines []clusterv1.Machine
		want     string
	}{
		"another Machine took the node over":                                    {start, held, "", []clusterv1.Machine{taker}, held},
		"the record was leaving, and another Machine took the node over":        {start, leaving, "", []clusterv1.Machine{taker}, held},
		"no Machine took the node over yet":                                     {start, held, "", nil, held},
		"the Machine that took the node over is being deleted":                  {start, held, "plane/taker", []clusterv1.Machine{going(taker)}, leaving},
		"the Machine that took the node over is gone, and another has the name": {start, leaving, "plane/taker", []clusterv1.Machine{another}, revoked},
		"the Machine that took the node over was lost in another restore":       {start, held, "lost/taker", []clusterv1.Machine{another}, held},
		"it was revoked in the snapshot":                                        {start, revoked, "", []clusterv1.Machine{taker}, revoked},
		"it was created here, and another Machine has its node's name":          {start.Add(2 * time.Hour), held, "", []clusterv1.Machine{another}, revoked},
		"it is not created yet, and another Machine has the name":               {time.Time{}, "", "", []clusterv1.Machine{another}, revoked},
		"its own Machine exists, as in a moved cluster":                         {start, held, "", []clusterv1.Machine{machine("a", "worker-1", start)}, held},
		"its own Machine is being deleted, and another has the name":            {start, held, "", []clusterv1.Machine{going(machine("a", "worker-1", start)), another}, leaving},
	} {
		t.Run("When "+name+", a restored record should be "+tt.want, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{UID: "plane", CreationTimestamp: metav1.NewTime(start.Add(time.Hour))}}
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(tt.made), Labels: map[string]string{stateLabel: tt.known},
				Annotations: map[string]string{heirAnnotation: tt.heir}}, Data: map[string]string{nodeKey: "worker-1"}}
			g := NewWithT(t)
			g.Expect(stateOf(heir(hcp, "a", cm, tt.machines), cm, tt.machines)).To(Equal(tt.want))
			before := cm.DeepCopy()
			g.Expect(stateOf(heir(hcp, "a", cm, tt.machines), cm, tt.machines)).To(Equal(tt.want), "and stay so")
			g.Expect(cm).To(Equal(before))
		})
	}
}

// TestHeirStays checks that the Machine that adopted a node stays the successor for its certificates. No later Machine
// with the node's name becomes the successor.
func TestHeirStays(t *testing.T) {
	g := NewWithT(t)
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{UID: "plane", CreationTimestamp: metav1.NewTime(start.Add(time.Hour))}}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(start), Labels: map[string]string{stateLabel: held}},
		Data: map[string]string{nodeKey: "worker-1"}}
	state := func(machines ...clusterv1.Machine) string {
		cm.Labels[stateLabel] = stateOf(heir(hcp, "a", cm, machines), cm, machines)
		return cm.Labels[stateLabel]
	}
	taker, another := machine("taker", "worker-1", start), machine("another", "worker-1", start)
	g.Expect(state(taker)).To(Equal(held))
	g.Expect(state(going(taker))).To(Equal(leaving))
	g.Expect(state(another)).To(Equal(revoked))
}

func TestHolder(t *testing.T) {
	asked := func(at time.Time) *certificatesv1.CertificateSigningRequest {
		return &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at)}}
	}
	machines := []clusterv1.Machine{machine("a", "worker-1", start)}
	for name, tt := range map[string]struct {
		node string
		at   time.Time
		want string
	}{
		"after its Machine was created":  {"worker-1", start.Add(time.Minute), "a"},
		"before its Machine was created": {"worker-1", start.Add(-time.Minute), ""},
		"by a node without a Machine":    {"worker-9", start.Add(time.Minute), ""},
	} {
		t.Run("When a certificate was requested "+name+", it should return its Machine or none", func(t *testing.T) {
			NewWithT(t).Expect(holder(asked(tt.at), tt.node, machines)).To(Equal(tt.want))
		})
	}
}

func TestShape(t *testing.T) {
	r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(start)}
	cm := &corev1.ConfigMap{Data: map[string]string{
		nodeKey: "worker-1", "old": start.Add(-time.Second).Format(time.RFC3339), "good": start.Add(time.Second).Format(time.RFC3339), "damaged": "soon",
	}}
	r.shape(cm, record{node: "worker-1", certificates: map[string]string{"new": start.Add(time.Hour).Format(time.RFC3339)}})
	want := map[string]string{nodeKey: "worker-1", "good": "2026-11-20T12:00:01Z", "new": "2026-11-20T13:00:00Z"}
	if diff := cmp.Diff(want, cm.Data); diff != "" {
		t.Error(diff)
	}
	made := &corev1.ConfigMap{}
	r.shape(made, record{node: "worker-2"})
	if diff := cmp.Diff(map[string]string{nodeKey: "worker-2"}, made.Data); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"hypershift.openshift.io/managed": "true"}, made.Labels); diff != "" {
		t.Errorf("without the label the operator does not find its record again: %s", diff)
	}
}
