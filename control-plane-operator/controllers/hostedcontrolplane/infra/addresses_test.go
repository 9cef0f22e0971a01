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
		{name: "nothing is published it should be none"},
		{name: "the status tells of them it should be those", endpoint: hyperv1.APIEndpoint{Host: "192.0.2.10", Port: 31234}, served: said, want: said},
		{
			name: "an older status has a node port it should be that", endpoint: hyperv1.APIEndpoint{Host: "192.0.2.10", Port: 31234},
			want: since(address(hyperv1.NodePort, "192.0.2.10", 31234, "192.0.2.11")),
		},
		{
			name: "an older status has a load balancer it should be that", endpoint: hyperv1.APIEndpoint{Host: "203.0.113.7", Port: 6443},
			want: since(address(hyperv1.LoadBalancer, "203.0.113.7", 6443, "192.0.2.11")),
		},
		{
			name: "an older status has a route it should be that", endpoint: hyperv1.APIEndpoint{Host: "api.example.com", Port: 443},
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
		"When only the time differs it should be the same": {later, true},
		"When its port differs it should be another":       {address(hyperv1.NodePort, "192.0.2.10", 31235, "192.0.2.11"), false},
		"When ignition's differs it should be another":     {address(hyperv1.NodePort, "192.0.2.10", 31234, "192.0.2.12"), false},
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
			name: "nothing changes the names should be the first's alone", served: []hyperv1.ServedAddress{former}, wanted: []hyperv1.ServedAddress{former},
			want: &component.Infra{API: component.Endpoint{Host: "192.0.2.10", Port: 31234}, Ignition: component.Endpoint{Host: "192.0.2.10"}},
		},
		{
			name:   "another is wanted certificates should name it before anybody is sent there, each name once",
			served: []hyperv1.ServedAddress{former, moved}, wanted: []hyperv1.ServedAddress{route, route},
			want: &component.Infra{
				API: component.Endpoint{Host: "192.0.2.10", Port: 31234}, Ignition: component.Endpoint{Host: "192.0.2.10"},
				APINames: []string{"192.0.2.20", "api.example.com"}, IgnitionNames: []string{"ignition.example.com"},
			},
		},
		{
			name: "ignition has no host no name should be made of that", served: []hyperv1.ServedAddress{former, address(hyperv1.NodePort, "192.0.2.10", 31235, "")},
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
		{name: "nothing is said it should be a day", want: 24 * time.Hour},
		{name: "it is said it should be that", annotations: map[string]string{hyperv1.AddressOverlapAnnotation: "90m"}, want: 90 * time.Minute},
		{name: "none is wanted it should be none", annotations: map[string]string{hyperv1.AddressOverlapAnnotation: "0s"}},
		{
			name: "it is no duration it should stay a day and say so", annotations: map[string]string{hyperv1.AddressOverlapAnnotation: "a day"},
			want: 24 * time.Hour, wantErr: `"a day" is not a duration; write it as in 24h`,
		},
		{
			name: "it is below zero it should stay a day and say so", annotations: map[string]string{hyperv1.AddressOverlapAnnotation: "-1h"},
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
