// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/machine"
	"github.com/openshift/hypershift/support/maas"
)

// TestConditions checks the conditions of a MaasCluster, written as "Type Status Reason Message".
func TestConditions(t *testing.T) {
	problem := &machine.Problem{Reason: "MAASUnreachable", Message: "no answer"}
	noName := &machine.Problem{Reason: "WaitForEndpoint", Message: "waiting for the Cluster to set it"}
	deleted := func(s *scope) { s.infra.DeletionTimestamp = ptr.To(metav1.Now()) }
	const idle = "APIServerAvailable False APIServerNotReady the control plane is not initialized yet|Paused False NotPaused "
	for name, tc := range map[string]struct {
		scope *scope
		want  string
	}{
		"all is well": {endpointScope(infraNames("h")), "LoadBalancerReady True LoadBalancerReady h|MAASAvailable True AsExpected |Ready True Ready |" + idle},
		"its control plane was seen": {endpointScope(infraNames("h"), func(s *scope) { s.owner.Status.Initialization.ControlPlaneInitialized = ptr.To(true) }),
			"LoadBalancerReady True LoadBalancerReady h|MAASAvailable True AsExpected |Ready True Ready |APIServerAvailable True APIServerAvailable |Paused False NotPaused "},
		"its Cluster is gone": {endpointScope(infraNames("h"), func(s *scope) { s.owner = nil }), "LoadBalancerReady True LoadBalancerReady h|MAASAvailable True AsExpected |Ready True Ready |" + idle},
		"there is no endpoint": {endpointScope(func(s *scope) { s.endpoint = noName }),
			"LoadBalancerReady False WaitForEndpoint waiting for the Cluster to set it|MAASAvailable True AsExpected |Ready False WaitForEndpoint waiting for the Cluster to set it|" + idle},
		"MAAS is unreachable": {endpointScope(infraNames("h"), func(s *scope) { s.problem = problem }),
			"LoadBalancerReady True LoadBalancerReady h|MAASAvailable False MAASUnreachable no answer|Ready False MAASUnreachable no answer|" + idle},
		"there is no endpoint, and MAAS is unreachable": {endpointScope(func(s *scope) { s.endpoint, s.problem = noName, problem }),
			"LoadBalancerReady False WaitForEndpoint waiting for the Cluster to set it|MAASAvailable False MAASUnreachable no answer|Ready False MAASUnreachable no answer|" + idle},
		"machines are left, and the MaasCluster is not deleted": {endpointScope(infraNames("h"), func(s *scope) { s.left = problem }),
			"LoadBalancerReady True LoadBalancerReady h|MAASAvailable True AsExpected |Ready True Ready |" + idle},
		"machines are left, and the MaasCluster is deleted": {endpointScope(infraNames("h"), deleted, func(s *scope) { s.left = problem }),
			"LoadBalancerReady True LoadBalancerReady h|MAASAvailable True AsExpected |Ready True Ready |" + idle + "|Deleting True MAASUnreachable no answer"},
		"no machine is left, and the MaasCluster is deleted": {endpointScope(infraNames("h"), deleted), "LoadBalancerReady True LoadBalancerReady h|MAASAvailable True AsExpected |Ready True Ready |" + idle},
		"lxdConfig is set but disabled": {endpointScope(infraNames("h"), func(s *scope) { s.infra.Spec.LXDConfig = &infrav1.LXDHostConfig{Enabled: ptr.To(false)} }),
			"LoadBalancerReady True LoadBalancerReady h|MAASAvailable True AsExpected |Ready True Ready |" + idle},
	} {
		t.Run("When "+name+", the conditions should report it", func(t *testing.T) {
			var told []string
			for _, c := range tc.scope.conditions() {
				told = append(told, fmt.Sprintf("%s %s %s %s", c.Type, c.Status, c.Reason, c.Message))
			}
			if diff := cmp.Diff(tc.want, strings.Join(told, "|")); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestFailureDomains(t *testing.T) {
	zones := func(names ...string) (all []maas.Zone) {
		for _, name := range names {
			all = append(all, maas.Zone{Name: name})
		}
		return all
	}
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf("az%03d", i)
	}
	for name, tc := range map[string]struct {
		spec, want []string
		zones      []maas.Zone
	}{
		"the zones were not read":                       {},
		"MAAS has some":                                 {zones: zones("b", "a"), want: []string{"a", "b"}},
		"the spec sets failure domains":                 {spec: []string{"z", "y", "z"}, zones: zones("a"), want: []string{"y", "z"}},
		"MAAS has more zones than the status may list":  {zones: zones(many...), want: many[:100]},
		"MAAS has as many zones as the status may list": {zones: zones(many[:100]...), want: many[:100]},
	} {
		t.Run("When "+name+", these should be the failure domains", func(t *testing.T) {
			var got []string
			for _, domain := range endpointScope(func(s *scope) { s.infra.Spec.FailureDomains, s.zones = tc.spec, tc.zones }).failureDomains() {
				got = append(got, domain.Name)
				if !*domain.ControlPlane {
					t.Errorf("%s is none for control planes", domain.Name)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestComputeStatus checks that the status keeps its values while MAAS or the endpoint is unavailable.
func TestComputeStatus(t *testing.T) {
	g := NewWithT(t)
	p := newPlace(t, "admin", func(infra *infrav1.MaasCluster) error { return nil }, nil)
	p.dns, p.zones = madeName, []maas.Zone{{Name: "az1"}}
	p.computeStatus(p.scope)
	status := &p.infra.Status
	g.Expect(status.Network.DNSName).To(Equal(madeName))
	g.Expect(status.Ready).To(BeFalse())
	g.Expect(status.Initialization.Provisioned).To(BeNil())
	p.infra.Spec.ControlPlaneEndpoint = infrav1.APIEndpoint{Host: "h", Port: 1}
	p.endpoint = &machine.Problem{}
	p.computeStatus(p.scope)
	g.Expect(status.Ready).To(BeFalse(), "what is in the spec is not served yet")
	p.endpoint = nil
	p.computeStatus(p.scope)
	g.Expect(status.Ready).To(BeTrue())
	g.Expect(status.Initialization.Provisioned).To(HaveValue(BeTrue()))
	g.Expect(status.FailureDomains).To(HaveLen(1))
	p.dns, p.zones, p.problem = "", nil, &machine.Problem{}
	p.computeStatus(p.scope)
	g.Expect(status.Network.DNSName).To(Equal(madeName))
	g.Expect(status.Ready).To(BeTrue())
	g.Expect(status.FailureDomains).To(HaveLen(1))
	for _, c := range status.Conditions {
		g.Expect(c.LastTransitionTime.Time).To(BeTemporally("==", p.Clock.Now()), c.Type)
	}
}

// TestReportOnce checks that an event is sent when a MaasCluster becomes not ready or when the reason changes, but not
// on each reconcile.
func TestReportOnce(t *testing.T) {
	g := NewWithT(t)
	p := newPlace(t, "admin", func(infra *infrav1.MaasCluster) error {
		infra.Annotations = map[string]string{clusterv1.ManagedByAnnotation: ""}
		return nil
	}, nil)
	p.owner = &clusterv1.Cluster{}
	told := func(problem *machine.Problem) []string {
		p.problem = problem
		g.Expect(p.report(t.Context(), p.scope, nil)).To(Succeed())
		return p.told()
	}
	away := &machine.Problem{Reason: "MAASUnreachable", Message: "no answer"}
	g.Expect(told(nil)).To(BeEmpty())
	g.Expect(told(away)).To(Equal([]string{"Warning MAASUnreachable no answer"}))
	g.Expect(told(away)).To(BeEmpty())
	g.Expect(told(&machine.Problem{Reason: "MAASUnauthorized", Message: "the key is wrong"})).To(Equal([]string{"Warning MAASUnauthorized the key is wrong"}))
	g.Expect(told(nil)).To(BeEmpty())
	p.identity, p.problem = nil, nil
	p.infra.Status.Conditions = nil
	g.Expect(p.report(t.Context(), p.scope, nil)).To(Succeed())
	g.Expect(p.infra.Status.Conditions).To(BeEmpty(), "nobody was asked")
}
