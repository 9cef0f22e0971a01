// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/cluster"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/phase"
	"github.com/openshift/hypershift/support/tenantlimits"
)

func TestReconcileConfiguration(t *testing.T) {
	for name, tc := range map[string]struct {
		platform hyperv1.PlatformType
		mutate   func(*hyperv1.HostedCluster)
		want     map[hyperv1.ConditionType]string
	}{
		"When the spec is valid, it should continue": {hyperv1.MAASPlatform, func(*hyperv1.HostedCluster) {},
			map[hyperv1.ConditionType]string{"SupportedHostedCluster": "True/AsExpected", "ValidConfiguration": "True/AsExpected"}},
		"When no plugin serves the platform, it should stop with SupportedHostedCluster False": {"Nowhere", func(*hyperv1.HostedCluster) {},
			map[hyperv1.ConditionType]string{"SupportedHostedCluster": "False/UnsupportedHostedCluster"}},
		"When the spec is invalid, it should stop with ValidConfiguration False": {hyperv1.MAASPlatform, func(hc *hyperv1.HostedCluster) { hc.Spec.ClusterID = "demo" },
			map[hyperv1.ConditionType]string{"SupportedHostedCluster": "True/AsExpected", "ValidConfiguration": "False/InvalidConfiguration"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, d, s := NewWithT(t), newDesk(), withScope()
			tc.mutate(s.HC)
			s.HC.Spec.Platform.Type = tc.platform
			s.Platform, s.PlatformServed = d.Platforms.For(tc.platform)
			_, err := d.reconcileConfiguration(t.Context(), s)
			said, stops := map[hyperv1.ConditionType]string{}, false
			for kind, c := range s.Conditions {
				said[hyperv1.ConditionType(kind)] = string(c.Status) + "/" + c.Reason
				stops = stops || c.Status == "False"
			}
			g.Expect(said).To(Equal(tc.want))
			g.Expect(errors.Is(err, phase.ErrStop)).To(Equal(stops))
			if c := s.Conditions["SupportedHostedCluster"]; c.Status == "False" {
				g.Expect(c.Message).To(ContainSubstring("platform Nowhere"))
			}
			if c := s.Conditions["ValidConfiguration"]; c.Status == "False" {
				g.Expect(c.Message).To(ContainSubstring("spec.clusterID"))
			}
		})
	}
}

func TestValidateLimits(t *testing.T) {
	g, d, hc := NewWithT(t), newDesk(), fixture.HostedCluster("clusters")
	g.Expect(d.validateLimits(hc)).To(Succeed(), "nothing is limited")
	d.Settings.Limits = &tenantlimits.Limits{Registries: []string{"registry.elsewhere"}}
	hc.Annotations = map[string]string{hyperv1.ControlPlaneOperatorImageAnnotation: "registry.example/a:1", hyperv1.ClusterAPIManagerImage: "registry.example/b:1"}
	refusals := d.Settings.Limits.HostedCluster(hc)
	g.Expect(len(refusals)).To(BeNumerically(">", 1))
	err := d.validateLimits(hc)
	for _, refusal := range refusals {
		g.Expect(err).To(MatchError(ContainSubstring(refusal)))
	}
	g.Expect(d.validate(&scope{Scope: &cluster.Scope{HC: hc, Platform: &plugged{}}})).To(MatchError(ContainSubstring(refusals[0])), "the limits are part of what is refused")
}

// byRoute and byLoadBalancer publish a service under a hostname.
func byRoute(hostname string) hyperv1.ServicePublishingStrategy {
	return hyperv1.ServicePublishingStrategy{Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: hostname}}
}

func byLoadBalancer(hostname string) hyperv1.ServicePublishingStrategy {
	return hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer, LoadBalancer: &hyperv1.LoadBalancerPublishingStrategy{Hostname: hostname}}
}

// unsure is a RESTMapper whose discovery fails.
type unsure struct{ meta.RESTMapper }

func (unsure) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errNotNow
}

func TestValidateServices(t *testing.T) {
	routes := schema.GroupVersion{Group: "route.openshift.io", Version: "v1"}
	known := meta.NewDefaultRESTMapper([]schema.GroupVersion{routes})
	known.Add(routes.WithKind("Route"), meta.RESTScopeNamespace)
	for name, tc := range map[string]struct {
		mapper   meta.RESTMapper
		services []hyperv1.ServicePublishingStrategy
		want     []string
	}{
		"When the cluster has no Route API, it should reject every service that is published by Route": {meta.NewDefaultRESTMapper(nil),
			[]hyperv1.ServicePublishingStrategy{byRoute("a"), byLoadBalancer("b"), byRoute("c")}, []string{"APIServer is published by Route", "Konnectivity is published by Route"}},
		"When the cluster has the Route API, it should accept Routes":      {known, []hyperv1.ServicePublishingStrategy{byRoute("a"), byRoute("c")}, nil},
		"When the Route API cannot be discovered, it should accept Routes": {unsure{known}, []hyperv1.ServicePublishingStrategy{byRoute("a")}, nil},
		"When hostnames are empty, they should not count as equal":         {known, []hyperv1.ServicePublishingStrategy{byRoute(""), byRoute(""), byLoadBalancer(""), byLoadBalancer(""), {Type: hyperv1.NodePort}}, nil},
		"When two services have the same hostname, it should name both, even with an unnamed one in between": {known,
			[]hyperv1.ServicePublishingStrategy{byRoute("a"), {}, byLoadBalancer("a")}, []string{"APIServer and Konnectivity have the same hostname a:"}},
		"When three services have the same hostname, it should name each service with the previous one": {known,
			[]hyperv1.ServicePublishingStrategy{byRoute("a"), byRoute("a"), byRoute("a")}, []string{"APIServer and OAuthServer have", "OAuthServer and Konnectivity have"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, hc := NewWithT(t), fixture.HostedCluster("clusters")
			hc.Spec.Services = nil
			for i, strategy := range tc.services {
				hc.Spec.Services = append(hc.Spec.Services, hyperv1.ServicePublishingStrategyMapping{
					Service: []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition, hyperv1.OIDC}[i], ServicePublishingStrategy: strategy})
			}
			r := &Reconciler{Client: fake.NewClientBuilder().WithRESTMapper(tc.mapper).Build()}
			err := r.validateServices(hc)
			if tc.want == nil {
				g.Expect(err).NotTo(HaveOccurred())
			}
			for _, want := range tc.want {
				g.Expect(err).To(MatchError(ContainSubstring(want)))
			}
		})
	}
}

func TestAllowedBlocks(t *testing.T) {
	blocks := &hyperv1.APIServerNetworking{AllowedCIDRBlocks: []hyperv1.CIDRBlock{"203.0.113.0/24"}}
	for name, tc := range map[string]struct {
		api     *hyperv1.APIServerNetworking
		service hyperv1.ServiceType
		by      hyperv1.PublishingStrategyType
		refused bool
	}{
		"the API server has no settings":                                   {nil, hyperv1.APIServer, hyperv1.NodePort, false},
		"no CIDR block is set":                                             {&hyperv1.APIServerNetworking{}, hyperv1.APIServer, hyperv1.NodePort, false},
		"the API server has CIDR blocks and is published by NodePort":      {blocks, hyperv1.APIServer, hyperv1.NodePort, true},
		"the API server has CIDR blocks and is published by LoadBalancer":  {blocks, hyperv1.APIServer, hyperv1.LoadBalancer, false},
		"CIDR blocks are set and another service is published by NodePort": {blocks, hyperv1.Ignition, hyperv1.NodePort, false},
	} {
		t.Run("When "+name+", it should reject only blocks that cannot be enforced", func(t *testing.T) {
			hc := fixture.HostedCluster("clusters")
			hc.Spec.Networking.APIServer = tc.api
			hc.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{{Service: tc.service, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: tc.by}}}
			NewWithT(t).Expect(validateAllowedBlocks(hc) != nil).To(Equal(tc.refused))
		})
	}
}

// entries returns cluster networks with the given CIDRs.
func entries(cidrs ...string) (networks []hyperv1.ClusterNetworkEntry) {
	for _, cidr := range cidrs {
		networks = append(networks, hyperv1.ClusterNetworkEntry{CIDR: *ipnet.MustParseCIDR(cidr)})
	}
	return networks
}

func TestNetworks(t *testing.T) {
	for name, tc := range map[string]struct {
		mutate func(*hyperv1.HostedCluster)
		want   []string
	}{
		"When there is a network of each IP family, they should not overlap": {func(hc *hyperv1.HostedCluster) {
			hc.Spec.Networking.ClusterNetwork = entries("10.132.0.0/14", "fd01::/48")
		}, nil},
		"When two cluster networks overlap, it should reject them": {func(hc *hyperv1.HostedCluster) {
			hc.Spec.Networking.ClusterNetwork = entries("10.132.0.7/14", "10.135.255.9/24")
		}, []string{"the cluster network 10.132.0.0/14 and the cluster network 10.135.255.0/24 overlap"}},
		"When one network begins where the other ends, it should accept them": {func(hc *hyperv1.HostedCluster) {
			hc.Spec.Networking.ClusterNetwork = entries("10.132.0.0/14", "10.136.0.0/14")
		}, nil},
		"When several networks overlap, it should name each pair": {func(hc *hyperv1.HostedCluster) {
			hc.Spec.Networking.ClusterNetwork = entries("10.0.0.0/8", "10.132.0.0/14")
			hc.Spec.Networking.MachineNetwork = []hyperv1.MachineNetworkEntry{{CIDR: *ipnet.MustParseCIDR("10.132.0.0/24")}}
		}, []string{"10.0.0.0/8 and the cluster network 10.132.0.0/14", "10.0.0.0/8 and the machine network 10.132.0.0/24", "10.132.0.0/14 and the machine network"}},
		"When all networks are empty, it should name each of them": {func(hc *hyperv1.HostedCluster) {
			hc.Spec.Networking.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{}}
			hc.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{}}
			hc.Spec.Networking.MachineNetwork = []hyperv1.MachineNetworkEntry{{}}
		}, []string{"the cluster network", "the service network", "the machine network"}},
		"When the advertise address is in the machine network, it should accept the address": {func(hc *hyperv1.HostedCluster) {
			hc.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AdvertiseAddress: ptr.To("192.0.2.1")}
			hc.Spec.Networking.MachineNetwork = []hyperv1.MachineNetworkEntry{{CIDR: *ipnet.MustParseCIDR("192.0.2.0/24")}}
		}, nil},
		"When an advertise address is set, it should not check the default address": {func(hc *hyperv1.HostedCluster) {
			hc.Spec.Networking.ServiceNetwork[0].CIDR = *ipnet.MustParseCIDR("172.20.0.0/16")
			hc.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{AdvertiseAddress: ptr.To("192.0.2.1")}
		}, nil},
		"When the API server has settings but no advertise address, it should check the default address": {func(hc *hyperv1.HostedCluster) {
			hc.Spec.Networking.ServiceNetwork[0].CIDR = *ipnet.MustParseCIDR("172.20.0.0/16")
			hc.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{Port: ptr.To[int32](6443)}
		}, []string{"172.20.0.1 lies inside the service network 172.20.0.0/16"}},
		"When a service is published at an address in the cluster network, it should accept the address": {func(hc *hyperv1.HostedCluster) {
			hc.Spec.Services[0].ServicePublishingStrategy.NodePort.Address = "10.132.0.9"
		}, nil},
		"When services are published by NodePort in the service network, it should name each of them": {func(hc *hyperv1.HostedCluster) {
			hc.Spec.Services[0].ServicePublishingStrategy = byLoadBalancer("api.example")
			hc.Spec.Services[1].ServicePublishingStrategy.NodePort.Address = "172.31.0.9"
			hc.Spec.Services[3].ServicePublishingStrategy.NodePort.Address = "172.31.255.255"
		}, []string{"172.31.0.9 of OAuthServer lies inside the service network 172.31.0.0/16", "172.31.255.255 of Ignition lies"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, hc := NewWithT(t), fixture.HostedCluster("clusters")
			tc.mutate(hc)
			err := validateNetworks(hc)
			if tc.want == nil {
				g.Expect(err).NotTo(HaveOccurred())
			}
			for _, want := range tc.want {
				g.Expect(err).To(MatchError(ContainSubstring(want)))
			}
		})
	}
}
