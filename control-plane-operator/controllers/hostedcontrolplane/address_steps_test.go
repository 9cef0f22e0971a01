// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/infra"
	"github.com/openshift/hypershift/support/component"
)

// address returns a load balancer's address that was published before now. age is the time since then.
func address(host string, age time.Duration) hyperv1.ServedAddress {
	return hyperv1.ServedAddress{Type: hyperv1.LoadBalancer, Host: host, Port: 6443, Since: metav1.NewTime(now.Add(-age))}
}

// goingOver returns the state of a reconcile for a control plane that migrates from the published to the desired
// address. It serves the addresses in served.
func goingOver(published, wanted string, served ...hyperv1.ServedAddress) *scope {
	s, _ := healthy()
	s.infra.API = component.Endpoint{Host: published, Port: 6443}
	s.hcp.Status.ServedAddresses = served
	s.served = served
	if wanted != "" {
		w := address(wanted, 0)
		w.Since = metav1.Time{} // It is not published yet.
		s.wanted = &w
	}
	return s
}

func (s *scope) seen(of hyperv1.ServedAddress, arrived, remaining int32) *scope {
	s.hcp.Status.AddressUse = &hyperv1.AddressUse{Since: of.Since, Arrived: arrived, Remaining: remaining, Message: "node a"}
	return s
}

// TestNextAddresses takes one step from each state of a migration from old to new.
func TestNextAddresses(t *testing.T) {
	const day = 24 * time.Hour
	several := []hyperv1.ServedAddress{}
	for _, host := range strings.Split("abcdefgh", "") {
		several = append(several, address(host, day))
	}
	fresh, earlier := address("new", day), address("old", 4*day)
	for name, test := range map[string]struct {
		scope    *scope
		observed observed
		served   string
		endpoint string
	}{
		"nothing is published yet":                                        {goingOver("old", "old"), observed{}, "old", "old"},
		"nothing changes":                                                 {goingOver("old", "old", address("old", day)), observed{}, "old", "old"},
		"the new address is still pending":                                {goingOver("old", "", address("old", day)), observed{}, "old", "old"},
		"a server certificate does not name the new address":              {goingOver("old", "new", address("old", day)), observed{unnamed: errors.New("pod")}, "old", "old"},
		"all server certificates name the new address":                    {goingOver("old", "new", address("old", day)), observed{}, "new old", "old"},
		"the maximum number of addresses is served":                       {goingOver("a", "new", several...), observed{}, "a b c d e f g h", "a"},
		"one address fewer than the maximum is served":                    {goingOver("a", "new", several[1:]...), observed{}, "new b c d e f g h", "a"},
		"the spec goes back to the old address":                           {goingOver("old", "old", fresh, earlier), observed{}, "old new", "old"},
		"the new address was not reached":                                 {goingOver("old", "new", fresh, earlier), observed{unreached: errors.New("no route")}, "new old", "old"},
		"the control plane reaches the new address":                       {goingOver("old", "new", fresh, earlier), observed{}, "new old", "new"},
		"a node has reached the new address":                              {goingOver("old", "new", fresh, earlier).seen(fresh, 1, 2), observed{unreached: errors.New("no route")}, "new old", "new"},
		"no node has reached the new address":                             {goingOver("old", "new", fresh, earlier).seen(fresh, 0, 2), observed{unreached: errors.New("no route")}, "new old", "old"},
		"a node has reached the new address in an earlier migration only": {goingOver("old", "new", fresh, earlier).seen(address("new", 2*day), 1, 2), observed{unreached: errors.New("no route")}, "new old", "old"},
		"a node still uses the old address":                               {goingOver("new", "new", fresh, earlier).seen(fresh, 1, 1), observed{}, "new old", "new"},
		"the users of the old address are unknown":                        {goingOver("new", "new", fresh, earlier), observed{}, "new old", "new"},
		"the users of the old address were seen before":                   {goingOver("new", "new", fresh, earlier).seen(address("new", 2*day), 2, 0), observed{}, "new old", "new"},
		"no node uses the old address, and a day is over":                 {goingOver("new", "new", fresh, earlier).seen(fresh, 2, 0), observed{}, "new", "new"},
		"no node has used the old address for some hours": {goingOver("new", "new", address("new", day-time.Second), address("old", day)).seen(address("new", day-time.Second), 2, 0),
			observed{}, "new old", "new"},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(test.scope.served)
			served, endpoint := nextAddresses(test.scope, test.observed, now.Add(300*time.Millisecond))
			var hosts []string
			for _, a := range served {
				hosts = append(hosts, a.Host)
			}
			if diff := cmp.Diff([]string{test.served, test.endpoint}, []string{strings.Join(hosts, " "), endpoint.Host}); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if diff := cmp.Diff(before, test.scope.served); diff != "" {
				t.Errorf("what the status says was changed in place: -before +after\n%s", diff)
			}
			moved := len(before) == 0 || served[0].Host != before[0].Host || endpoint.Host != test.scope.infra.API.Host
			if moved && !served[0].Since.Time.Equal(now) {
				t.Errorf("since %s, want %s: whole seconds of this pass, as the status keeps them", served[0].Since, now)
			}
			if !moved && !served[0].Since.Time.Equal(before[0].Since.Time) {
				t.Errorf("since %s, and nothing moved", served[0].Since)
			}
		})
	}
}

func TestPublishedPort(t *testing.T) {
	fresh := address("new", time.Hour)
	fresh.Port = 30443
	s := goingOver("old", "new", fresh, address("old", 2*time.Hour))
	s.wanted.Port = 30443
	_, endpoint := nextAddresses(s, observed{}, now)
	if diff := cmp.Diff(hyperv1.APIEndpoint{Host: "new", Port: 30443}, endpoint); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestAddressUpToDate checks what the condition names: the address, what is missing, and when a previous address is
// dropped.
func TestAddressUpToDate(t *testing.T) {
	const day = 24 * time.Hour
	old, fresh := address("old", 3*day), address("new", time.Hour)
	annotated := goingOver("new", "new", fresh, old).seen(fresh, 2, 0)
	annotated.hcp.Annotations = map[string]string{hyperv1.AddressOverlapAnnotation: "soon"}
	shorter := goingOver("new", "new", fresh, old).seen(fresh, 2, 0)
	shorter.hcp.Annotations = map[string]string{hyperv1.AddressOverlapAnnotation: "2h"}
	waiting := goingOver("old", "", old)
	waiting.waiting = "Service x has no address"
	elsewhere := address("new", time.Hour)
	elsewhere.Since = metav1.NewTime(elsewhere.Since.In(time.FixedZone("elsewhere", 7200)))
	full := goingOver("old", "new", slices.Repeat([]hyperv1.ServedAddress{old}, infra.MaxServed)...)
	for name, test := range map[string]struct {
		scope    *scope
		observed observed
		want     string
		says     []string
	}{
		"the migration is completed":                         {goingOver("old", "old", old), observed{}, "True/AsExpected", nil},
		"the new address is still pending":                   {waiting, observed{}, "False/WaitingForAddress", []string{"Service x has no address", "old:6443"}},
		"a server certificate does not name the new address": {goingOver("old", "new", old), observed{unnamed: errors.New("pod a")}, "False/CertificateInProgress", []string{"new", "old:6443", "pod a"}},
		"the maximum number of addresses is served already":  {full, observed{}, "False/WaitingForAddress", []string{"8 addresses", "new:6443"}},
		"nodes migrate to the new address":                   {goingOver("old", "new", fresh, old), observed{}, "False/NodesMoving", []string{"new:6443", "old:6443"}},
		"the new address is not reached":                     {goingOver("old", "new", fresh, old), observed{unreached: errors.New("no route")}, "False/AddressNotReached", []string{"new:6443", "old:6443", "no route"}},
		"nodes were not checked yet":                         {goingOver("new", "new", fresh, old), observed{}, "False/NodesMoving", []string{"new:6443", "old:6443 is"}},
		"two previous addresses are still served":            {goingOver("new", "new", fresh, old, address("older", day)), observed{}, "False/NodesMoving", []string{"old:6443, older:6443 are"}},
		"a node still uses the old address":                  {goingOver("new", "new", fresh, old).seen(fresh, 1, 1), observed{}, "False/NodesMoving", []string{"node a", "old:6443 is"}},
		"the overlap of one day is not over":                 {goingOver("new", "new", fresh, old).seen(fresh, 2, 0), observed{}, "True/FormerAddressServed", []string{"2026-11-21T11:00:00Z", "old:6443 is"}},
		"the end of the overlap is reported in UTC":          {goingOver("new", "new", elsewhere, old).seen(elsewhere, 2, 0), observed{}, "True/FormerAddressServed", []string{"2026-11-21T11:00:00Z"}},
		"the annotation shortens the overlap":                {shorter, observed{}, "True/FormerAddressServed", []string{"2026-11-20T13:00:00Z"}},
		"the annotation is not a duration":                   {annotated, observed{}, "True/FormerAddressServed", []string{"2026-11-21T11:00:00Z", hyperv1.AddressOverlapAnnotation, "soon"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			next := hyperv1.HostedControlPlaneStatus{ServedAddresses: test.scope.served, AddressUse: test.scope.hcp.Status.AddressUse,
				ControlPlaneEndpoint: hyperv1.APIEndpoint{Host: test.scope.infra.API.Host, Port: 6443}}
			c, known := addressUpToDate(test.scope, test.observed, next)
			g.Expect(known).To(BeTrue())
			g.Expect(string(c.Status) + "/" + c.Reason).To(Equal(test.want))
			for _, fact := range test.says {
				g.Expect(c.Message).To(ContainSubstring(fact))
			}
			g.Expect(c.Message == "").To(Equal(len(test.says) == 0), c.Message)
		})
	}
	t.Run("no address is published", func(t *testing.T) {
		s := goingOver("old", "old")
		_, known := addressUpToDate(s, observed{}, hyperv1.HostedControlPlaneStatus{})
		NewWithT(t).Expect(known).To(BeFalse())
		s.infra = nil
		_, known = addressUpToDate(s, observed{}, hyperv1.HostedControlPlaneStatus{ServedAddresses: []hyperv1.ServedAddress{old}})
		NewWithT(t).Expect(known).To(BeFalse(), "what is there could not be looked at")
	})
}
