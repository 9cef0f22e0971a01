// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
)

var created = metav1.NewTime(time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC))

func address(kind hyperv1.PublishingStrategyType, host string, port int32, ignition string) hyperv1.ServedAddress {
	return hyperv1.ServedAddress{Type: kind, Host: host, Port: port, IgnitionHost: ignition}
}

func TestServed(t *testing.T) {
	said := []hyperv1.ServedAddress{address(hyperv1.Route, "api.example.com", 443, "ignition.example.com")}
	since := func(a hyperv1.ServedAddress) []hyperv1.ServedAddress {
		a.Since = created
		return []hyperv1.ServedAddress{a}
	}
	cases := []struct {
		name     string
		endpoint hyperv1.APIEndpoint
		served   []hyperv1.ServedAddress
		want     []hyperv1.ServedAddress
	}{
		{name: "nothing is published, it should return no addresses"},
		{name: "the status has served addresses, it should return them", endpoint: hyperv1.APIEndpoint{Host: "192.0.2.10", Port: 31234}, served: said, want: said},
		{
			name: "an older status has only a node port endpoint, it should return that address", endpoint: hyperv1.APIEndpoint{Host: "192.0.2.10", Port: 31234},
			want: since(address(hyperv1.NodePort, "192.0.2.10", 31234, "192.0.2.11")),
		},
		{
			name: "an older status has only a load balancer endpoint, it should return that address", endpoint: hyperv1.APIEndpoint{Host: "203.0.113.7", Port: 6443},
			want: since(address(hyperv1.LoadBalancer, "203.0.113.7", 6443, "192.0.2.11")),
		},
		{
			name: "an older status has only a Route endpoint, it should return that address", endpoint: hyperv1.APIEndpoint{Host: "api.example.com", Port: 443},
			want: since(address(hyperv1.Route, "api.example.com", 443, "192.0.2.11")),
		},
	}
	for _, tc := range cases {
		t.Run("When "+tc.name, func(t *testing.T) {
			hcp := controlPlane(nodePort("192.0.2.10", 0), nodePort("192.0.2.11", 0))
			hcp.CreationTimestamp = created
			hcp.Status.ControlPlaneEndpoint, hcp.Status.ServedAddresses = tc.endpoint, tc.served
			if diff := cmp.Diff(tc.want, (&Reconciler{}).Served(hcp)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPublished(t *testing.T) {
	hcp := controlPlane(nodePort("192.0.2.10", 0), nodePort("192.0.2.11", 0))
	hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "192.0.2.10", Port: 31234}
	want := &component.Infra{API: component.Endpoint{Host: "192.0.2.10", Port: 31234}, Ignition: component.Endpoint{Host: "192.0.2.11"}}
	if diff := cmp.Diff(want, (&Reconciler{}).Published(hcp)); diff != "" {
		t.Error(diff)
	}
}

func TestWanted(t *testing.T) {
	found := &component.Infra{API: component.Endpoint{Host: "192.0.2.10", Port: 31234}, Ignition: component.Endpoint{Host: "192.0.2.11"}}
	got := Wanted(controlPlane(nodePort("192.0.2.10", 0), nodePort("192.0.2.11", 0)), found)
	if diff := cmp.Diff(address(hyperv1.NodePort, "192.0.2.10", 31234, "192.0.2.11"), got); diff != "" {
		t.Error(diff)
	}
}

func TestSame(t *testing.T) {
	a := address(hyperv1.NodePort, "192.0.2.10", 31234, "192.0.2.11")
	later := a
	later.Since = created
	for name, tc := range map[string]struct {
		b    hyperv1.ServedAddress
		want bool
	}{
		"When only the time differs, it should report the same address":        {later, true},
		"When the API server's port differs, it should report another address": {address(hyperv1.NodePort, "192.0.2.10", 31235, "192.0.2.11"), false},
		"When the Ignition host differs, it should report another address":     {address(hyperv1.NodePort, "192.0.2.10", 31234, "192.0.2.12"), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(Same(a, tc.b)).To(Equal(tc.want))
			g.Expect(Same(tc.b, a)).To(Equal(tc.want))
		})
	}
}

func TestDuring(t *testing.T) {
	former := address(hyperv1.NodePort, "192.0.2.10", 31234, "192.0.2.10")
	route := address(hyperv1.Route, "api.example.com", 443, "ignition.example.com")
	moved := address(hyperv1.NodePort, "192.0.2.20", 31234, "192.0.2.10")
	cases := []struct {
		name   string
		served []hyperv1.ServedAddress
		wanted []hyperv1.ServedAddress
		want   *component.Infra
	}{
		{
			name: "nothing changes, it should name only the current address", served: []hyperv1.ServedAddress{former}, wanted: []hyperv1.ServedAddress{former},
			want: &component.Infra{API: component.Endpoint{Host: "192.0.2.10", Port: 31234}, Ignition: component.Endpoint{Host: "192.0.2.10"}},
		},
		{
			name:   "another address is desired, certificates should name each host once before clients use it",
			served: []hyperv1.ServedAddress{former, moved}, wanted: []hyperv1.ServedAddress{route, route},
			want: &component.Infra{
				API: component.Endpoint{Host: "192.0.2.10", Port: 31234}, Ignition: component.Endpoint{Host: "192.0.2.10"},
				APINames: []string{"192.0.2.20", "api.example.com"}, IgnitionNames: []string{"ignition.example.com"},
			},
		},
		{
			name: "Ignition has no host, it should add no name for it", served: []hyperv1.ServedAddress{former, address(hyperv1.NodePort, "192.0.2.10", 31235, "")},
			want: &component.Infra{API: component.Endpoint{Host: "192.0.2.10", Port: 31234}, Ignition: component.Endpoint{Host: "192.0.2.10"}},
		},
	}
	for _, tc := range cases {
		t.Run("When "+tc.name, func(t *testing.T) {
			got := During(hyperv1.APIEndpoint{Host: "192.0.2.10", Port: 31234}, tc.served, tc.wanted...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOverlap(t *testing.T) {
	cases := []struct {
		name        string
		annotations map[string]string
		want        time.Duration
		wantErr     string
	}{
		{name: "the annotation is missing, it should be one day", want: 24 * time.Hour},
		{name: "the annotation has a duration, it should be that duration", annotations: map[string]string{hyperv1.AddressOverlapAnnotation: "90m"}, want: 90 * time.Minute},
		{name: "the annotation is 0s, it should be zero", annotations: map[string]string{hyperv1.AddressOverlapAnnotation: "0s"}},
		{
			name: "the annotation is not a duration, it should be one day and return an error", annotations: map[string]string{hyperv1.AddressOverlapAnnotation: "a day"},
			want: 24 * time.Hour, wantErr: `"a day" is not a duration; write it as in 24h`,
		},
		{
			name: "the annotation is negative, it should be one day and return an error", annotations: map[string]string{hyperv1.AddressOverlapAnnotation: "-1h"},
			want: 24 * time.Hour, wantErr: `"-1h" is not a duration`,
		},
	}
	for _, tc := range cases {
		t.Run("When "+tc.name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := Overlap(&hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}})
			g.Expect(got).To(Equal(tc.want))
			if tc.wantErr == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tc.wantErr)))
			}
		})
	}
}
