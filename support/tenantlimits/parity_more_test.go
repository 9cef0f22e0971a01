// SPDX-License-Identifier: Apache-2.0

package tenantlimits_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func TestRequests(t *testing.T) {
	clusters := newServer(t, limited(), "hostedclusters")
	for value, allowed := range map[string]bool{
		"cpu=2":                    true,
		"cpu=500m,memory=4Gi":      true,
		"cpu=500m, memory=4Gi":     true,
		"cpu=10000":                false,
		"cpu=2001m":                false,
		"memory=5Gi":               false,
		"memory=4Gi,cpu=10000":     false,
		"cpu=-1":                   false,
		"cpu":                      false,
		"cpu=":                     false,
		"cpu=much":                 false,
		"example.com/gpu=1":        false,
		"ephemeral-storage=1":      false,
		"":                         false,
		"cpu=1e9":                  false,
		"cpu=1,":                   false,
		"cpu=99999999999999999999": false,
		"cpu=1e0":                  true,
		// Comparing these two would take hours.
		"cpu=1e2000000000":  false,
		"cpu=1e-2000000000": false,
	} {
		t.Run("When a request is "+value+", API server and operator should agree", func(t *testing.T) {
			clusters.agree(t, annotated(hyperv1.ResourceRequestOverrideAnnotationPrefix+"/etcd.etcd", value), allowed)
		})
	}
	t.Run("When there is no limit, it should allow every request", func(t *testing.T) {
		l := limited()
		l.Resources = []string{"*"}
		newServer(t, l, "hostedclusters").agree(t, annotated(hyperv1.ResourceRequestOverrideAnnotationPrefix+"/etcd.etcd",
			"cpu=10000"), true)
	})
}

func TestHostNames(t *testing.T) {
	clusters := newServer(t, limited(), "hostedclusters")
	for name, allowed := range map[string]bool{
		"":                           true,
		"clusters.example":           true,
		"api.demo.clusters.example":  true,
		"api.red.example":            true,
		"evil.example":               false,
		"evilclusters.example":       false,
		"clusters.example.evil.test": false,
	} {
		t.Run("When a host name is "+name+", API server and operator should agree", func(t *testing.T) {
			for _, publish := range []func(*hyperv1.HostedCluster){
				func(hc *hyperv1.HostedCluster) { hc.Spec.KubeAPIServerDNSName = name },
				func(hc *hyperv1.HostedCluster) {
					hc.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{{Service: hyperv1.APIServer,
						ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{
							Type: hyperv1.Route, Route: &hyperv1.RoutePublishingStrategy{Hostname: name}}}}
				},
				func(hc *hyperv1.HostedCluster) {
					hc.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{{Service: hyperv1.APIServer,
						ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{
							Type: hyperv1.LoadBalancer, LoadBalancer: &hyperv1.LoadBalancerPublishingStrategy{Hostname: name}}}}
				},
			} {
				clusters.agree(t, cluster(publish), allowed)
			}
		})
	}
}

func TestVirtualMachines(t *testing.T) {
	pools := newServer(t, limited(), "nodepools")
	for name, tc := range map[string]struct {
		block   hyperv1.KubevirtNodePoolPlatform
		allowed bool
	}{
		"nothing":                    {hyperv1.KubevirtNodePoolPlatform{}, true},
		"an allowed disk":            {disk("a.example/disk:1"), true},
		"a disk of another registry": {disk("evil.example/disk:1"), false},
		"a file on a web server":     {disk("https://a.example/disk"), false},
		"a node selector with an allowed label": {
			hyperv1.KubevirtNodePoolPlatform{NodeSelector: map[string]string{"team": "red"}}, true},
		"a node selector with a node role": {
			hyperv1.KubevirtNodePoolPlatform{NodeSelector: map[string]string{"node-role.kubernetes.io/control-plane": ""}},
			false},
		"a network without a namespace":               {network("blue"), true},
		"a network of the tenant's namespace":         {network("tenant/blue"), true},
		"a network of the hosted namespace":           {network("tenant-c/blue"), true},
		"a network of another tenant":                 {network("tenant2/blue"), false},
		"a network of another tenant's control plane": {network("tenant-d/blue"), false},
		"a shared network":                            {network("shared/blue"), true},
		"another network beside":                      {network("shared/bluer"), false},
		"a network in a shared namespace":             {network("public/any"), true},
		"an allowed device":                           {device("example.com/gpu"), true},
		"another device":                              {device("example.com/disk-controller"), false},
	} {
		t.Run("When a pool of virtual machines has "+name+", API server and operator should agree",
			func(t *testing.T) {
				g, pool := NewWithT(t), &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "p"}}
				pool.Spec.ClusterName, pool.Spec.Release.Image, pool.Spec.Platform.Kubevirt = "c", release, &tc.block
				g.Expect(len(pools.limits.NodePool(pool)) == 0).To(Equal(tc.allowed), "the operator: %v",
					pools.limits.NodePool(pool))
				g.Expect(len(pools.refusals(pool, nil)) == 0).To(Equal(tc.allowed), "the API server: %v", pools.refusals(pool, nil))
			})
	}
}

func disk(image string) hyperv1.KubevirtNodePoolPlatform {
	return hyperv1.KubevirtNodePoolPlatform{
		RootVolume: &hyperv1.KubevirtRootVolume{Image: &hyperv1.KubevirtDiskImage{ContainerDiskImage: &image}}}
}

func network(name string) hyperv1.KubevirtNodePoolPlatform {
	return hyperv1.KubevirtNodePoolPlatform{AdditionalNetworks: []hyperv1.KubevirtNetwork{{Name: name}}}
}

func device(name string) hyperv1.KubevirtNodePoolPlatform {
	return hyperv1.KubevirtNodePoolPlatform{KubevirtHostDevices: []hyperv1.KubevirtHostDevice{{DeviceName: name}}}
}
