// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/identity"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/testenv"
	"github.com/openshift/hypershift/test/maas-simulator/simulator/simtest"
)

const madeName = "demo-1b9f10.maas"

// endpointScope returns a MaasCluster without an endpoint.
func endpointScope(change ...func(*scope)) *scope {
	s := &scope{owner: &clusterv1.Cluster{}, infra: &infrav1.MaasCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo", UID: "0f3c61f2-3f43-4f0b-8c55-1f0a5a1b9f10"},
		Spec: infrav1.MaasClusterSpec{DNSDomain: "maas"}}}
	for _, do := range change {
		do(s)
	}
	return s
}

func annotatedWith(key string) func(*scope) {
	return func(s *scope) { s.infra.Annotations = map[string]string{key: ""} }
}

func ownerNames(host string) func(*scope) {
	return func(s *scope) { s.owner.Spec.ControlPlaneEndpoint.Host = host }
}

func infraNames(host string) func(*scope) {
	return func(s *scope) { s.infra.Spec.ControlPlaneEndpoint.Host = host }
}

func made(name string) func(*scope) {
	return func(s *scope) { s.infra.Status.Network.DNSName = name }
}

func TestGiven(t *testing.T) {
	for name, tc := range map[string]struct {
		scope *scope
		want  bool
	}{
		"no endpoint is set":  {endpointScope(), false},
		"its Cluster is gone": {endpointScope(func(s *scope) { s.owner = nil }), false},
		"an annotation marks the endpoint as managed externally":         {endpointScope(annotatedWith(infrav1.CustomDNSAnnotation)), true},
		"the managed-by annotation marks it as managed externally":       {endpointScope(annotatedWith(clusterv1.ManagedByAnnotation)), true},
		"the Cluster sets an endpoint":                                   {endpointScope(ownerNames("vip.example")), true},
		"the Cluster has the DNS name that the provider created":         {endpointScope(ownerNames(madeName), made(madeName)), false},
		"the Cluster has another endpoint than the created DNS name":     {endpointScope(ownerNames("vip.example"), made(madeName)), true},
		"the spec sets an endpoint":                                      {endpointScope(infraNames("vip.example")), true},
		"the spec has the DNS name that the provider created":            {endpointScope(infraNames("old.maas"), made("old.maas")), false},
		"the spec has the DNS name that the provider is about to create": {endpointScope(infraNames(madeName)), false},
		"the spec has another endpoint than the created DNS name":        {endpointScope(infraNames("vip.example"), made(madeName)), true},
		"DNS was created, and no endpoint is set":                        {endpointScope(made(madeName)), false},
	} {
		t.Run("When "+name+", it should report whether the provider creates the endpoint", func(t *testing.T) {
			if got := tc.scope.given(); got != tc.want {
				t.Errorf("given by others: %t", got)
			}
		})
	}
}

func TestDNSName(t *testing.T) {
	for want, s := range map[string]*scope{
		madeName:        endpointScope(),
		"old.maas":      endpointScope(made("old.maas")),
		"demo-short.xy": endpointScope(func(s *scope) { s.infra.UID, s.infra.Spec.DNSDomain = "sho-rt", "xy" }),
	} {
		if got := s.dnsName(); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// TestNoNameWithoutMAAS checks that a problem with MAAS also appears in the endpoint condition, where users look for
// the missing DNS name.
func TestNoNameWithoutMAAS(t *testing.T) {
	s := endpointScope(func(s *scope) { s.problem = &machine.Problem{Reason: "MAASUnreachable", Message: "no answer"} })
	result, err := (&Reconciler{}).ensureEndpoint(t.Context(), s)
	if err != nil || !result.IsZero() {
		t.Errorf("result %v, error %v", result, err)
	}
	if diff := cmp.Diff(&machine.Problem{Reason: "WaitForDNSName", Message: "no answer"}, s.endpoint); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func controlPlaneMachine(ready bool, ips ...string) infrav1.MaasMachine {
	m := infrav1.MaasMachine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}}}
	m.Status.Ready = ready
	for _, ip := range ips {
		m.Status.Addresses = append(m.Status.Addresses, infrav1.MachineAddress{Type: infrav1.MachineExternalIP, Address: ip},
			infrav1.MachineAddress{Type: infrav1.MachineHostname, Address: "host-of-" + ip})
	}
	return m
}

func TestControlPlaneIPs(t *testing.T) {
	worker, going := controlPlaneMachine(true, "10.0.0.9"), controlPlaneMachine(true, "10.0.0.8")
	worker.Labels = nil
	going.DeletionTimestamp = ptr.To(metav1.Now())
	type addresses struct {
		IPs  []string
		Keep bool
	}
	for name, tc := range map[string]struct {
		machines []infrav1.MaasMachine
		subnets  []string
		want     addresses
	}{
		"there is no machine":                                         {},
		"one runs":                                                    {[]infrav1.MaasMachine{controlPlaneMachine(true, "10.0.0.1")}, nil, addresses{IPs: []string{"10.0.0.1"}}},
		"the only machine does not run":                               {[]infrav1.MaasMachine{controlPlaneMachine(false, "10.0.0.1")}, nil, addresses{Keep: true}},
		"one of two machines runs":                                    {[]infrav1.MaasMachine{controlPlaneMachine(false, "10.0.0.1"), controlPlaneMachine(true, "10.0.0.2")}, nil, addresses{IPs: []string{"10.0.0.2"}}},
		"the only machine is being deleted":                           {[]infrav1.MaasMachine{going}, nil, addresses{}},
		"there is a worker":                                           {[]infrav1.MaasMachine{worker}, nil, addresses{}},
		"there is a worker next to a control plane machine":           {[]infrav1.MaasMachine{worker, controlPlaneMachine(true, "10.0.0.1")}, nil, addresses{IPs: []string{"10.0.0.1"}}},
		"a machine has several addresses, and no subnet is preferred": {[]infrav1.MaasMachine{controlPlaneMachine(true, "10.0.0.1", "fd00::1")}, nil, addresses{IPs: []string{"10.0.0.1", "fd00::1"}}},
		"the most preferred subnet contains an address":               {[]infrav1.MaasMachine{controlPlaneMachine(true, "10.0.0.1", "fd00::1")}, []string{"fd00::/8", "10.0.0.0/8"}, addresses{IPs: []string{"fd00::1"}}},
		"only the second preferred subnet contains an address":        {[]infrav1.MaasMachine{controlPlaneMachine(true, "10.0.0.1")}, []string{"fd00::/8", "10.0.0.0/8"}, addresses{IPs: []string{"10.0.0.1"}}},
		"the desired value is no subnet":                              {[]infrav1.MaasMachine{controlPlaneMachine(true, "10.0.0.1")}, []string{"10", "10.0.0.0/8"}, addresses{IPs: []string{"10.0.0.1"}}},
		"no preferred subnet contains an address":                     {[]infrav1.MaasMachine{controlPlaneMachine(true, "10.0.0.1")}, []string{"fd00::/8"}, addresses{Keep: true}},
		"an address is invalid":                                       {[]infrav1.MaasMachine{controlPlaneMachine(true, "ten")}, []string{"10.0.0.0/8"}, addresses{Keep: true}},
	} {
		t.Run("When "+name+", it should return the addresses to publish in DNS", func(t *testing.T) {
			ips, keep := controlPlaneIPs(tc.machines, tc.subnets)
			if diff := cmp.Diff(tc.want, addresses{ips, keep}); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// answering returns the identity of a MAAS that answers every request with the same text.
func answering(t *testing.T, text string) *identity.Identity {
	t.Helper()
	c, err := maas.NewClient(maas.Config{Endpoint: "http://maas.example/MAAS", APIKey: "a:b:c", Transport: testenv.RoundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	return &identity.Identity{Client: c}
}

// TestFindDNS checks that the automatic DNS names of machines are skipped. MAAS lists them without an ID, and they
// cannot be changed.
func TestFindDNS(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want int
	}{
		"MAAS has no DNS name":           {`[]`, 0},
		"only a machine has that name":   {`[{"id": -1, "fqdn": "demo.maas"}]`, 0},
		"the provider created it":        {`[{"id": -1, "fqdn": "demo.maas"}, {"id": 7, "fqdn": "demo.maas"}]`, 7},
		"MAAS also has another DNS name": {`[{"id": 3, "fqdn": "another.maas"}, {"id": 7, "fqdn": "demo.maas"}]`, 7},
	} {
		t.Run("When "+name+", it should return the ID of the DNS name", func(t *testing.T) {
			g := NewWithT(t)
			found, err := (&scope{identity: answering(t, tc.text)}).findDNS(t.Context(), "demo.maas")
			g.Expect(err).NotTo(HaveOccurred())
			if tc.want == 0 {
				g.Expect(found).To(BeNil())
				return
			}
			g.Expect(found.ID).To(Equal(tc.want))
		})
	}
}

// TestRemoveDNS covers a DNS name that cannot be removed because MAAS is unreachable, and a name that the provider did
// not create.
func TestRemoveDNS(t *testing.T) {
	away := func(s *scope) { s.problem = &machine.Problem{Reason: "MAASUnreachable", Message: "no answer"} }
	for name, tc := range map[string]struct {
		scope *scope
		want  *machine.Problem
	}{
		"another component created the endpoint":                {endpointScope(infraNames("vip.example")), nil},
		"another component created it, and MAAS is unreachable": {endpointScope(infraNames("vip.example"), away), nil},
		"no name was created, and MAAS is unreachable":          {endpointScope(away), nil},
		"a name was created, and MAAS is unreachable":           {endpointScope(made(madeName), away), &machine.Problem{Reason: "LoadBalancerFailed", Message: "DNS name " + madeName + " can't be removed from MAAS: no answer"}},
		"the provider created it before an endpoint was set":    {endpointScope(made(madeName), infraNames("vip.example"), away), &machine.Problem{Reason: "LoadBalancerFailed", Message: "DNS name " + madeName + " can't be removed from MAAS: no answer"}},
	} {
		t.Run("When "+name+", it should report a DNS name that may remain", func(t *testing.T) {
			result, err := (&Reconciler{}).removeDNS(t.Context(), tc.scope)
			if err != nil || !result.IsZero() {
				t.Errorf("result %v, error %v", result, err)
			}
			if diff := cmp.Diff(tc.want, tc.scope.endpoint); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestNameThatStays covers a MAAS that rejects the lookup or the removal of the DNS name.
func TestNameThatStays(t *testing.T) {
	for _, operation := range []string{"dnsresources.read", "dnsresource.delete"} {
		t.Run("When MAAS rejects "+operation+", the MaasCluster should report it and retry soon", func(t *testing.T) {
			g := NewWithT(t)
			p := newPlace(t, "admin", func(infra *infrav1.MaasCluster) error {
				infra.Spec.DNSDomain = "maas"
				infra.Status.Network.DNSName = "demo.maas"
				return nil
			}, nil)
			_, err := p.scope.identity.Client.CreateDNSResource(t.Context(), "demo.maas", 10, nil)
			g.Expect(err).NotTo(HaveOccurred())
			accept := simtest.Refuse(t, p.site.Simulator, operation, "", http.StatusServiceUnavailable, "busy")
			result, err := p.removeDNS(t.Context(), p.scope)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.RequeueAfter).To(Equal(15 * time.Second))
			g.Expect(p.endpoint).To(HaveValue(And(HaveField("Reason", "LoadBalancerFailed"), HaveField("Message", ContainSubstring("busy")))))
			accept()
			p.endpoint = nil
			_, err = p.removeDNS(t.Context(), p.scope)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.endpoint).To(BeNil())
			g.Expect(p.site.DB.DNSResources.All()).To(BeEmpty())
		})
	}
}
