package hostedcluster

import (
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// up makes a cluster whose control plane serves.
func (s *suite) up() {
	s.t.Helper()
	s.start(nil)
	s.mustPass()
	s.serve()
	s.mustPass()
}

// mishaps are what people, outages and unlucky names do to a cluster.
func mishaps(t *testing.T, c client.WithWatch) {
	t.Run("When a pause ends while the release cannot be read, the machines should go on all the same", func(t *testing.T) {
		s := newSuite(t, c, "pause-outage")
		s.up()
		s.change(func(hc *hyperv1.HostedCluster) { hc.Spec.PausedUntil = ptr.To("true") })
		s.mustPass()
		cluster, hcp := &clusterv1.Cluster{}, &hyperv1.HostedControlPlane{}
		s.get(cluster, s.cluster().Spec.InfraID)
		s.Expect(cluster.Spec.Paused).To(HaveValue(BeTrue()))
		s.Releases = fixture.Releases{}
		s.change(func(hc *hyperv1.HostedCluster) { hc.Spec.PausedUntil = nil })
		_, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.get(cluster, s.cluster().Spec.InfraID)
		s.Expect(cluster.Spec.Paused).To(HaveValue(BeFalse()))
		s.get(hcp, fixture.ClusterName)
		s.Expect(hcp.Spec.PausedUntil).To(BeNil())
	})

	t.Run("When a paused cluster is deleted, nothing of it should stay paused", func(t *testing.T) {
		s := newSuite(t, c, "pause-delete")
		s.up()
		cluster, hcp := &clusterv1.Cluster{}, &hyperv1.HostedControlPlane{}
		s.get(cluster, s.cluster().Spec.InfraID)
		cluster.Finalizers = []string{"test/cluster-api"}
		s.Expect(c.Update(t.Context(), cluster)).To(Succeed())
		s.change(func(hc *hyperv1.HostedCluster) { hc.Spec.PausedUntil = ptr.To("true") })
		s.mustPass()
		s.Expect(c.Delete(t.Context(), s.cluster())).To(Succeed())
		_, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.get(cluster, cluster.Name)
		s.Expect(cluster.DeletionTimestamp).NotTo(BeNil())
		s.Expect(cluster.Spec.Paused).To(HaveValue(BeFalse()))
		s.get(hcp, fixture.ClusterName)
		s.Expect(hcp.Spec.PausedUntil).To(BeNil())
	})

	t.Run("When somebody deletes a manager's Deployment, it should be made again and kept as before", func(t *testing.T) {
		s := newSuite(t, c, "manager-gone")
		s.up()
		for _, name := range []string{capiManagerName, capiProviderName, controlPlaneOperatorName} {
			before, after := &appsv1.Deployment{}, &appsv1.Deployment{}
			s.get(before, name)
			s.Expect(c.Delete(t.Context(), before)).To(Succeed())
			s.mustPass()
			s.get(after, name)
			s.Expect(after.UID).NotTo(Equal(before.UID), name)
			s.Expect(after.DeletionTimestamp).To(BeNil(), name)
			s.Expect(after.Finalizers).To(Equal(before.Finalizers), name)
		}
	})

	t.Run("When a cluster is called like another one's kubeconfig, neither should touch the other's Secret", func(t *testing.T) {
		s := newSuite(t, c, "alike")
		s.up()
		other := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "demo-custom-admin-kubeconfig",
				Annotations: map[string]string{hyperv1.HostedClusterAnnotation: s.namespace + "/demo-custom"}},
			Data: map[string][]byte{"kubeconfig": []byte("demo-custom's")},
		}
		fixture.Create(t, c, other)
		s.mustPass()
		s.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(other), other)).To(Succeed())

		hcp := &hyperv1.HostedControlPlane{}
		s.get(hcp, fixture.ClusterName)
		hcp.Status.CustomKubeconfig = &hyperv1.KubeconfigSecretRef{Name: "admin-kubeconfig", Key: "kubeconfig"}
		s.Expect(c.Status().Update(t.Context(), hcp)).To(Succeed())
		_, err := s.pass()
		s.Expect(err).To(MatchError(ContainSubstring("it is HostedCluster alike/demo-custom's")))
		s.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(other), other)).To(Succeed())
		s.Expect(other.Data["kubeconfig"]).To(BeEquivalentTo("demo-custom's"))
	})

	t.Run("When the kubeconfig of its own name is not wanted any more, the copy should go", func(t *testing.T) {
		s := newSuite(t, c, "own-name")
		s.up()
		hcp := &hyperv1.HostedControlPlane{}
		s.get(hcp, fixture.ClusterName)
		hcp.Status.CustomKubeconfig = hcp.Status.KubeConfig
		s.Expect(c.Status().Update(t.Context(), hcp)).To(Succeed())
		s.mustPass()
		key := client.ObjectKey{Namespace: s.namespace, Name: customKubeconfigName(s.cluster())}
		s.Expect(c.Get(t.Context(), key, &corev1.Secret{})).To(Succeed())
		s.get(hcp, fixture.ClusterName)
		hcp.Status.CustomKubeconfig = nil
		s.Expect(c.Status().Update(t.Context(), hcp)).To(Succeed())
		s.mustPass()
		s.Expect(client.IgnoreNotFound(c.Get(t.Context(), key, &corev1.Secret{}))).To(Succeed())
		s.Expect(c.Get(t.Context(), key, &corev1.Secret{})).NotTo(Succeed())
	})

	t.Run("When a refused cluster is deleted, the one that has its namespace should keep its managers and credentials", func(t *testing.T) {
		s := newSuite(t, c, "refused")
		annotations := map[string]string{hyperv1.HostedClusterAnnotation: "a/b"}
		manager := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: capiProviderName, Finalizers: []string{componentFinalizer}, Annotations: annotations},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}},
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}},
			},
		}
		fixture.Create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.hosted(), Annotations: annotations}}, manager)
		s.start(nil)
		_, err := s.pass()
		s.Expect(err).To(HaveOccurred())
		s.Expect(c.Delete(t.Context(), s.cluster())).To(Succeed())
		_, err = s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(client.IgnoreNotFound(c.Get(t.Context(), s.request().NamespacedName, &hyperv1.HostedCluster{}))).To(Succeed())
		s.get(manager, capiProviderName)
		s.Expect(manager.Finalizers).To(ContainElement(componentFinalizer))
	})

	t.Run("When the proxy goes from the spec, what was wrong with it should go from the status", func(t *testing.T) {
		s := newSuite(t, c, "proxy")
		s.start(func(hc *hyperv1.HostedCluster) {
			hc.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{TrustedCA: configv1.ConfigMapNameReference{Name: "gone"}}}
		})
		_, err := s.pass()
		s.Expect(err).To(HaveOccurred())
		s.Expect(s.condition(hyperv1.ValidProxyConfiguration).Status).To(Equal(metav1.ConditionFalse))
		s.change(func(hc *hyperv1.HostedCluster) { hc.Spec.Configuration = nil })
		s.mustPass()
		s.Expect(meta.FindStatusCondition(s.cluster().Status.Conditions, string(hyperv1.ValidProxyConfiguration))).To(BeNil())
	})

	t.Run("When many clusters are created at once, no two should run as the same user", func(t *testing.T) {
		s := newSuite(t, c, "crowd")
		const clusters = 12
		var all sync.WaitGroup
		failures := make([]error, clusters)
		for i := range clusters {
			scope := newScope(fixture.HostedCluster(fmt.Sprintf("crowd-%d", i)))
			all.Go(func() { _, failures[i] = s.reconcileNamespace(t.Context(), scope) })
		}
		all.Wait()
		s.Expect(failures).To(HaveEach(BeNil()))
		namespaces := &corev1.NamespaceList{}
		s.Expect(c.List(t.Context(), namespaces, client.MatchingLabels{hyperv1.ControlPlaneNamespaceLabel: "true"})).To(Succeed())
		owners := map[string]string{}
		for i := range namespaces.Items {
			uid := namespaces.Items[i].Annotations[hyperv1.DefaultSecurityContextUIDAnnotation]
			s.Expect(owners).NotTo(HaveKey(uid), "both %s and %s", owners[uid], namespaces.Items[i].Name)
			owners[uid] = namespaces.Items[i].Name
		}
	})
}
