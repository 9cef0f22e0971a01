// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/testenv"
)

// TestPreferredSubnetsOfCAPMAAS checks that the ConfigMap of CAPMAAS applies if the spec has no preferred subnets.
func TestPreferredSubnetsOfCAPMAAS(t *testing.T) {
	w := newWorld(t, testenv.Shared(t, crds.Infrastructure, crds.ClusterAPI))
	subnets := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "maas-preferred-subnet"}, Data: map[string]string{"preferredSubnets": "172.16.0.0/12, 10.1.0.0/16\n"}}
	w.create(subnets)
	w.add(infrav1.MaasClusterSpec{}, nil)
	w.controlPlane("cp-1", true, "192.168.0.4", "10.1.0.4")
	w.reconcile(0)
	name := w.infra().Status.Network.DNSName
	w.Expect(w.dns()[name]).To(Equal([]string{"10.1.0.4"}))

	subnets.Data["preferredSubnets"] = "10.1.0"
	w.Expect(w.client.Update(t.Context(), subnets)).To(Succeed())
	w.reconcile(time.Minute)
	w.expect("LoadBalancerReady", "False LoadBalancerFailed", `"10.1.0" in preferredSubnets of ConfigMap `+w.namespace+`/maas-preferred-subnet is not a network`)
	w.Expect(w.dns()[name]).To(Equal([]string{"10.1.0.4"}), "a typo takes no cluster off the net")

	infra := w.infra()
	infra.Spec.PreferredSubnets = []string{"192.168.0.0/16"}
	w.Expect(w.client.Update(t.Context(), infra)).To(Succeed())
	w.reconcile(time.Minute)
	w.Expect(w.dns()[name]).To(Equal([]string{"192.168.0.4"}), "the spec goes first")
}
