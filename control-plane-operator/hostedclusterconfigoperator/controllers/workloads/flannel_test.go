// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// flannelFollowsPayload checks that Flannel runs only with a payload that has it.
func flannelFollowsPayload(w *world, step func(string, func(*testing.T))) {
	config := client.ObjectKey{Namespace: guestNS, Name: "flannel"}

	step("runs only the agent, with the pod template of 0.1.0, if the payload has no Flannel", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.pass()).To(Succeed())
		network := &appsv1.DaemonSet{}
		w.get(guestNS, "node-network", network)
		pod := network.Spec.Template.Spec
		g.Expect(pod.Containers).To(HaveLen(1))
		g.Expect(pod.Containers[0].Args).To(ConsistOf("--cluster-network=10.132.0.0/14"))
		g.Expect(pod.Containers[0].VolumeMounts).To(HaveLen(2))
		g.Expect(pod.Volumes).To(HaveLen(2))
		g.Expect(apierrors.IsNotFound(w.client.Get(t.Context(), config, &corev1.ConfigMap{}))).To(BeTrue())
	})
	step("runs Flannel beside the agent if the payload has it", func(t *testing.T) {
		g := NewWithT(t)
		with := release("1.36.4")
		with["flannel"] = "registry/flannel:1"
		w.r.Releases = with
		g.Expect(w.pass()).To(Succeed())
		network := &appsv1.DaemonSet{}
		w.get(guestNS, "node-network", network)
		containers := network.Spec.Template.Spec.Containers
		g.Expect(containers).To(HaveLen(2))
		g.Expect(containers[0].Args).To(ConsistOf("--cluster-network=10.132.0.0/14", "--flannel"))
		g.Expect(containers[1].Image).To(Equal("registry/flannel:1"))
		g.Expect(containers[1].Env).To(ContainElement(corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: "192.0.2.10"}))
		settings := &corev1.ConfigMap{}
		w.get(guestNS, "flannel", settings)
		g.Expect(settings.Data["net-conf.json"]).To(MatchJSON(
			`{"Network": "10.132.0.0/14", "EnableIPv4": true, "EnableIPv6": false, "Backend": {"Type": "vxlan", "DirectRouting": true, "Port": 8472}}`))
		role := &rbacv1.ClusterRole{}
		w.get("", "node-network", role)
		g.Expect(role.Rules).To(ContainElement(HaveField("Resources", []string{"nodes/status"})))
	})
	step("removes Flannel if the next payload has none", func(t *testing.T) {
		g := NewWithT(t)
		w.r.Releases = release("1.36.4")
		g.Expect(w.pass()).To(Succeed())
		network := &appsv1.DaemonSet{}
		w.get(guestNS, "node-network", network)
		g.Expect(network.Spec.Template.Spec.Containers).To(HaveLen(1))
		g.Expect(apierrors.IsNotFound(w.client.Get(t.Context(), config, &corev1.ConfigMap{}))).To(BeTrue())
	})
}
