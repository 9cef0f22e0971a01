// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/testenv"
)

// TestRefusals removes all objects that the controller created from a guest. The server fails each request once when
// the controller creates them again.
func TestRefusals(t *testing.T) {
	w, g := newWorld(t), NewWithT(t)
	w.trusts(t)
	w.change(t, func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.Configuration.Network = &configv1.NetworkSpec{NetworkType: "Other", ServiceNetwork: []string{"192.0.2.0/24"}}
	})
	w.mustPass(t)
	objects := []client.Object{&rbacv1.ClusterRoleBinding{}}
	objects[0].SetName("create-csrs-for-bootstrapping")
	for _, obj := range []client.Object{
		&configv1.Infrastructure{}, &configv1.DNS{}, &configv1.Ingress{}, &configv1.Network{}, &configv1.Proxy{}, &configv1.Image{},
		&configv1.APIServer{}, &configv1.Authentication{}, &configv1.FeatureGate{}, &configv1.Scheduler{},
	} {
		obj.SetName("cluster")
		objects = append(objects, obj)
	}
	for _, obj := range objects {
		g.Expect(w.client.Delete(t.Context(), obj)).To(Succeed())
	}
	server := testenv.NewGrudging(w.client)
	w.r.Guest, w.r.Management = server, server
	server.Exhaust(t, func() (ctrl.Result, error) {
		return w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
	}, func() any {
		g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(w.hcp), w.hcp)).To(Succeed())
		return w.hcp.Status.Conditions
	})
	for _, obj := range objects {
		w.get(t, "", obj.GetName(), obj)
	}
	g.Expect(objects[4].(*configv1.Network).Spec.ServiceNetwork).To(Equal([]string{"10.0.0.0/24"}), "the cluster's networking says that")
	g.Expect(objects[1].(*configv1.Infrastructure).Status.EtcdDiscoveryDomain).To(Equal("demo.example.com"))
	g.Expect(objects[5].(*configv1.Proxy).Status.HTTPSProxy).To(Equal("http://proxy.example.com:3128"))
}
