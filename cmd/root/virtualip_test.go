// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestVirtualIP adds a virtual IP to the nodes of a management cluster, has a cluster use it, and removes it.
func TestVirtualIP(t *testing.T) {
	u := newUser(t)
	t.Setenv("HYPERSHIFT_IMAGE", "registry.example/hypershift:1")
	t.Setenv("MAAS_API_KEY", apiKey)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	u.Expect(u.client.Create(t.Context(), node)).To(Succeed())
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	u.Expect(u.client.Status().Update(t.Context(), node)).To(Succeed())
	install := func(flags ...string) outcome {
		return u.types("", append([]string{"install"}, flags...)...)
	}
	refused := func(says string, flags ...string) {
		t.Helper()
		o := install(flags...)
		u.Expect(o.code).NotTo(BeZero())
		u.Expect(o.stderr).To(ContainSubstring(says))
	}
	refused("--api-virtual-ip 10.0.0.1 is the address of node a", "--api-virtual-ip", "10.0.0.1")
	for _, foolish := range []string{"vip.example", "127.0.0.1", "169.254.1.1", "0.0.0.0", "fe80::1%eth0"} {
		refused("use addresses of the nodes' subnet", "--api-virtual-ip", foolish)
	}
	refused("needs --api-virtual-ip", "--api-virtual-ip-interface", "eth0")
	refused("must be 6s or more", "--api-virtual-ip", "10.0.0.5", "--api-virtual-ip-lease-duration", "1s")
	refused("--development leaves out", "--api-virtual-ip", "10.0.0.5", "--development")

	u.Expect(install("--api-virtual-ip", "10.0.0.5").code).To(BeZero())
	set := &appsv1.DaemonSet{}
	u.Expect(u.gets(set, "hypershift-virtual-ip", "api-virtual-ip")).To(Succeed())
	u.Expect(set.Spec.Template.Spec.Containers[0].Args).To(ContainElement("--address=10.0.0.5"))

	o := u.succeeds("", "create", "cluster", "maas", "--name", "demo", "--release-image", "quay.example/release:1.36.3", "--maas-endpoint", "https://maas.example:5443/MAAS", "--render")
	u.Expect(o.stdout).To(ContainSubstring("address: 10.0.0.5"))
	u.Expect(o.stdout).NotTo(ContainSubstring("address: 10.0.0.1"))

	refused("keep it with --api-virtual-ip 10.0.0.5, or remove it with --api-virtual-ip ''")
	u.Expect(u.gets(set, "hypershift-virtual-ip", "api-virtual-ip")).To(Succeed(), "hosted clusters live on it")
	u.Expect(install("--install-scope", "crds").code).To(BeZero())

	u.Expect(install("--api-virtual-ip", "").code).To(BeZero())
	namespace := &corev1.Namespace{}
	u.Expect(u.gets(namespace, "", "hypershift-virtual-ip")).To(Succeed())
	u.Expect(namespace.DeletionTimestamp).NotTo(BeNil())
	u.Expect(u.gets(&rbacv1.ClusterRoleBinding{}, "", "hypershift-virtual-ip")).NotTo(Succeed())
}
