// SPDX-License-Identifier: Apache-2.0

package address

import (
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/nodeupdate"
)

// TestText checks the format that a node-agent reads.
func TestText(t *testing.T) {
	for want, a := range map[string]hyperv1.ServedAddress{
		"https://192.0.2.10:6443 ignition.example.com": {Host: "192.0.2.10", Port: 6443, IgnitionHost: "ignition.example.com"},
		"https://api.example.com:443":                  {Host: "api.example.com", Port: 443},
		"https://[2001:db8::1]:6443 2001:db8::2":       {Host: "2001:db8::1", Port: 6443, IgnitionHost: "2001:db8::2"},
	} {
		if got := Text(a); got != want {
			t.Errorf("the address is %q and not %q", got, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"reports nothing":                  {nil, "node a has a node-agent that cannot migrate (delete its Machine, or update its pool in place)"},
		"reports only an error":            {map[string]string{nodeupdate.AddressMessage: "broken"}, "node a has a node-agent that cannot migrate (delete its Machine, or update its pool in place)"},
		"reports its address":              {map[string]string{nodeupdate.CurrentAddress: "https://192.0.2.9:6443"}, "node a (https://192.0.2.9:6443)"},
		"reports its address and an error": {map[string]string{nodeupdate.CurrentAddress: "https://192.0.2.9:6443", nodeupdate.AddressMessage: "no route"}, "node a (https://192.0.2.9:6443: no route)"},
	} {
		t.Run("When a node "+name+" it should return the progress", func(t *testing.T) {
			NewWithT(t).Expect(describe(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: tc.annotations}})).To(Equal(tc.want))
		})
	}
}

// TestLongWords checks that messages of nodes are cut between characters. A partial character would be stored
// differently and written again in each reconcile.
func TestLongWords(t *testing.T) {
	g := NewWithT(t)
	for shift := range 3 {
		text := listed([]string{strings.Repeat("x", shift) + strings.Repeat("€", maxMessage)})
		g.Expect(utf8.ValidString(text)).To(BeTrue(), text)
		g.Expect(text).To(HaveSuffix("€..."))
		g.Expect(len(text)).To(BeNumerically("<=", maxMessage))
	}
	short := strings.Repeat("x", maxMessage)
	g.Expect(listed([]string{short})).To(Equal(short))
}

// TestWhatWakes checks that updates that do not concern an address trigger no reconcile. Kubelets and Cluster API send
// such updates several times a minute.
func TestWhatWakes(t *testing.T) {
	node := func(annotations map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: annotations}}
	}
	for name, tc := range map[string]struct {
		before, after map[string]string
		want          bool
	}{
		"nothing":             {nil, nil, false},
		"something else":      {nil, map[string]string{"example.com/seen": "now"}, false},
		"its address":         {nil, map[string]string{nodeupdate.CurrentAddress: "x"}, true},
		"a new error":         {map[string]string{nodeupdate.AddressMessage: "x"}, map[string]string{nodeupdate.AddressMessage: "y"}, true},
		"no address any more": {map[string]string{nodeupdate.DesiredAddress: "x"}, nil, true},
	} {
		t.Run("When a node reports "+name+" it should reconcile or ignore it", func(t *testing.T) {
			NewWithT(t).Expect(annotated().Update(event.UpdateEvent{ObjectOld: node(tc.before), ObjectNew: node(tc.after)})).To(Equal(tc.want))
		})
	}
	t.Run("When a Machine gets its Node, it should reconcile, and on other updates it should not", func(t *testing.T) {
		g, before, after := NewWithT(t), &clusterv1.Machine{}, &clusterv1.Machine{}
		after.Status.Phase = "Running"
		g.Expect(joining().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(BeFalse())
		after.Status.NodeRef.Name = "a"
		g.Expect(joining().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(BeTrue())
		g.Expect(joining().Create(event.CreateEvent{Object: after})).To(BeTrue())
		g.Expect(joining().Delete(event.DeleteEvent{Object: after})).To(BeTrue())
		g.Expect(annotated().Create(event.CreateEvent{Object: node(nil)})).To(BeTrue())
		g.Expect(annotated().Delete(event.DeleteEvent{Object: node(nil)})).To(BeTrue())
	})
}

func TestOneAddress(t *testing.T) {
	g, hcp := NewWithT(t), &hyperv1.HostedControlPlane{}
	for range 2 {
		_, err := observe(t.Context(), hcp)
		g.Expect(err).To(HaveOccurred(), "its nodes were made with the address that there is")
		hcp.Status.ServedAddresses = append(hcp.Status.ServedAddresses, hyperv1.ServedAddress{Host: "a"})
	}
	hcp.Status.ServedAddresses[0].Host = "b"
	s, err := observe(t.Context(), hcp)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.first.Host).To(Equal("b"))
}
