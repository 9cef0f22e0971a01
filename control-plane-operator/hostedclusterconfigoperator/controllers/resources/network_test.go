// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
)

func TestResolve(t *testing.T) {
	cases := []struct {
		name, host string
		found      []string
		err        error
		want       []string
		wrong      string
	}{
		{name: "an address", host: "192.0.2.10", want: []string{"192.0.2.10"}},
		{name: "a name with several addresses", host: "api", found: []string{"192.0.2.2", "192.0.2.1", "192.0.2.2"}, want: []string{"192.0.2.1", "192.0.2.2"}},
		{name: "a name with addresses of both families", host: "api", found: []string{"2001:db8::1", "192.0.2.1"}, want: []string{"192.0.2.1"}},
		{name: "a name with IPv6 addresses only", host: "api", found: []string{"2001:db8::1"}, want: []string{"2001:db8::1"}},
		{name: "a name without an address", host: "api", wrong: "has no address"},
		{name: "a name that does not resolve", host: "api", err: errors.New("no such host"), wrong: "resolving the published name of the API: no such host"},
	}
	for _, tc := range cases {
		t.Run("When the API is published under "+tc.name+" the guest should get addresses of one family", func(t *testing.T) {
			g := NewWithT(t)
			r := &Reconciler{Lookup: func(context.Context, string) ([]string, error) { return tc.found, tc.err }}
			got, err := r.resolve(t.Context(), tc.host)
			if tc.wrong != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.wrong)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestEndpointSliceFamily(t *testing.T) {
	g := NewWithT(t)
	g.Expect(apiEndpointSlice([]string{"192.0.2.1"}, 6443).AddressType).To(Equal(discoveryv1.AddressTypeIPv4))
	g.Expect(apiEndpointSlice([]string{"2001:db8::1"}, 6443).AddressType).To(Equal(discoveryv1.AddressTypeIPv6))
	g.Expect(apiEndpoints([]string{"192.0.2.1"}, 6443).Labels).To(HaveKeyWithValue("endpointslice.kubernetes.io/skip-mirror", "true"))
}

func TestBaseDomain(t *testing.T) {
	cases := map[string]struct {
		prefix *string
		want   string
	}{
		"no prefix":       {nil, "demo.example.com"},
		"a prefix":        {ptr.To("prod"), "prod.example.com"},
		"an empty prefix": {ptr.To(""), "example.com"},
	}
	for name, tc := range cases {
		t.Run("When the DNS spec has "+name+" it should return the cluster's domain", func(t *testing.T) {
			hcp := fixture.GuestControlPlane()
			hcp.Spec.DNS.BaseDomainPrefix = tc.prefix
			NewWithT(t).Expect(baseDomain(hcp)).To(Equal(tc.want))
		})
	}
}

func TestInfrastructureStatus(t *testing.T) {
	g := NewWithT(t)
	hcp := fixture.GuestControlPlane()
	hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "192.0.2.10", Port: 30443}
	hcp.Spec.KubeAPIServerDNSName = "kube.example.com"
	hcp.Spec.InfrastructureAvailabilityPolicy = hyperv1.HighlyAvailable
	var status configv1.InfrastructureStatus
	setInfrastructureStatus(hcp, configv1.NonePlatformType, &status)
	g.Expect(status.APIServerURL).To(Equal("https://kube.example.com:30443"))
	g.Expect(status.APIServerInternalURL).To(Equal("https://192.0.2.10:30443"))
	g.Expect(status.InfrastructureTopology).To(Equal(configv1.HighlyAvailableTopologyMode))
}
