// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

// apiServer returns a running pod of the API server, which shape may change.
func apiServer(name, ip string, shape ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "kube-apiserver"}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip},
	}
	for _, f := range shape {
		f(pod)
	}
	return pod
}

// TestAskAddresses checks which servers are queried before a step, at which addresses, and whose host names their
// certificates must contain.
func TestAskAddresses(t *testing.T) {
	old, fresh, ported := address("old", time.Hour), address("new", time.Minute), address("new", time.Minute)
	ported.Port = 30443
	starting := func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodPending }
	going := func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.Finalizers = &metav1.Time{Time: now}, []string{"example.com/held"}
	}
	other := func(pod *corev1.Pod) { pod.Labels = nil }
	elsewhere := func(pod *corev1.Pod) { pod.Namespace = "elsewhere" }
	ca := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "root-ca"}, Data: map[string]string{"ca.crt": "the CA"}}
	for name, tc := range map[string]struct {
		published, wanted string
		served            []hyperv1.ServedAddress
		objects           []client.Object
		asked             []string
		unnamed, unmet    string
	}{
		"When the address does not change, it should query no API server":                      {"old", "old", []hyperv1.ServedAddress{old}, []client.Object{ca, apiServer("a", "10.0.0.1")}, nil, "", ""},
		"When the desired address is unknown, it should query no API server":                   {"old", "", []hyperv1.ServedAddress{old}, []client.Object{ca, apiServer("a", "10.0.0.1")}, nil, "", ""},
		"When another address is desired, it should check the certificates of all API servers": {"old", "new", []hyperv1.ServedAddress{old}, []client.Object{ca, apiServer("a", "10.0.0.1"), apiServer("b", "10.0.0.2")}, []string{"10.0.0.1:6443 new the CA", "10.0.0.2:6443 new the CA"}, "", ""},
		"When a certificate lacks the new address, it should name the Pod":                     {"old", "new", []hyperv1.ServedAddress{old}, []client.Object{ca, apiServer("a", "10.0.0.66"), apiServer("b", "10.0.0.2")}, []string{"10.0.0.66:6443 new the CA"}, "pod a: not so", ""},
		"When the CA is not known yet, it should say so":                                       {"old", "new", []hyperv1.ServedAddress{old}, []client.Object{apiServer("a", "10.0.0.1")}, nil, "CA", ""},
		"When no API server is running, it should say so":                                      {"old", "new", []hyperv1.ServedAddress{old}, []client.Object{ca, apiServer("a", "10.0.0.1", starting), apiServer("b", "10.0.0.1", going), apiServer("c", ""), apiServer("d", "10.0.0.1", other), apiServer("e", "10.0.0.1", elsewhere)}, nil, "no API server", ""},
		"When nodes are about to use the new address, it should query that address":            {"old", "new", []hyperv1.ServedAddress{ported, old}, []client.Object{ca, apiServer("a", "10.0.0.1")}, []string{"new:30443 new the CA"}, "", ""},
		"When the new address does not answer, it should say so":                               {"old", "new", []hyperv1.ServedAddress{address("10.0.0.66", 0), old}, []client.Object{ca}, []string{"10.0.0.66:6443 10.0.0.66 the CA"}, "", "not so"},
		"When the new address is already published, it should query nothing":                   {"new", "new", []hyperv1.ServedAddress{fresh, old}, []client.Object{ca}, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := fakeWorld(t, tc.objects...)
			var asked []string
			w.r.Shows = func(_ context.Context, address, host string, cas []byte) error {
				asked = append(asked, address+" "+host+" "+string(cas))
				if address == "10.0.0.66:6443" {
					return errors.New("not so")
				}
				return nil
			}
			s := goingOver(tc.published, tc.wanted, tc.served...)
			if len(tc.served) > 1 {
				s.wanted = &tc.served[0]
			}
			s.hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: tc.published, Port: 6443}
			unnamed, unreached, err := w.r.askAddresses(t.Context(), s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cmp.Diff(tc.asked, asked)).To(BeEmpty())
			for want, got := range map[*string]error{&tc.unnamed: unnamed, &tc.unmet: unreached} {
				if *want == "" {
					g.Expect(got).NotTo(HaveOccurred())
					continue
				}
				g.Expect(got).To(MatchError(ContainSubstring(*want)))
			}
		})
	}
}

// TestServesOn checks the endpoints of a control plane while its spec requests a different address.
func TestServesOn(t *testing.T) {
	balanced, nodePort := address("old", time.Hour), address("old", time.Hour)
	nodePort.Type = hyperv1.NodePort
	found := &component.Infra{API: component.Endpoint{Host: "new", Port: 30443}, Ignition: component.Endpoint{Host: "192.0.2.10"}}
	wanted := &hyperv1.ServedAddress{Type: hyperv1.NodePort, Host: "new", Port: 30443, IgnitionHost: "192.0.2.10"}
	of := func(names ...string) *component.Infra {
		return &component.Infra{API: component.Endpoint{Host: "old", Port: 6443}, APINames: names}
	}
	both := of("new")
	both.IgnitionNames = []string{"192.0.2.10"}
	for name, tc := range map[string]struct {
		served []hyperv1.ServedAddress
		infra  *component.Infra
		failed error
		want   *component.Infra
		wanted *hyperv1.ServedAddress
	}{
		"When no address is published yet, it should use the found address":                                 {infra: found, want: found},
		"When the Service cannot be read, it should set no address":                                         {served: []hyperv1.ServedAddress{nodePort}, failed: errRefused},
		"When another address is found, it should keep the published one and name both in the certificate":  {served: []hyperv1.ServedAddress{balanced}, infra: found, want: both, wanted: wanted},
		"When a load balancer is not ready yet, it should keep the node port":                               {served: []hyperv1.ServedAddress{nodePort}, want: of()},
		"When another load balancer is not ready yet, it should wait, because the previous one may be gone": {served: []hyperv1.ServedAddress{balanced}},
	} {
		t.Run(name, func(t *testing.T) {
			w := fakeWorld(t)
			s := w.begin()
			s.infra, s.infraErr = tc.infra, tc.failed
			s.valid.Status.ServedAddresses = tc.served
			s.hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "old", Port: 6443}
			w.r.goOver(s)
			if diff := cmp.Diff(tc.want, s.infra); diff != "" {
				t.Errorf("made with: -want +got\n%s", diff)
			}
			if diff := cmp.Diff(tc.wanted, s.wanted); diff != "" {
				t.Errorf("wanted: -want +got\n%s", diff)
			}
			if diff := cmp.Diff(tc.served, s.served); diff != "" {
				t.Errorf("served: -want +got\n%s", diff)
			}
		})
	}
}
