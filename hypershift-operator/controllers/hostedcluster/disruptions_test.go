// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/hostedcluster/secrets"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/hosted"
)

// up creates a cluster with a running control plane.
func (s *world) up() {
	s.t.Helper()
	s.start(nil)
	s.mustPass()
	s.serve()
	s.mustPass()
}

// disruptions tests user errors, outages and colliding names.
func disruptions(t *testing.T, c client.WithWatch) {
	t.Run("When a pause ends while the release cannot be read, the machines should still be resumed", func(t *testing.T) {
		s := newWorld(t, c, "pause-outage")
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

	t.Run("When a paused cluster is deleted, it should resume its Cluster and control plane", func(t *testing.T) {
		s := newWorld(t, c, "pause-delete")
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

	t.Run("When a manager's Deployment is deleted, it should be created again with its finalizer", func(t *testing.T) {
		s := newWorld(t, c, "manager-gone")
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

	t.Run("When a cluster has the name of another cluster's kubeconfig Secret, neither should change the other's Secret", func(t *testing.T) {
		s := newWorld(t, c, "alike")
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
		s.Expect(err).To(MatchError(ContainSubstring("it belongs to HostedCluster alike/demo-custom,")))
		s.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(other), other)).To(Succeed())
		s.Expect(other.Data["kubeconfig"]).To(BeEquivalentTo("demo-custom's"))
	})

	t.Run("When the custom kubeconfig is no longer requested, its copy should be deleted", func(t *testing.T) {
		s := newWorld(t, c, "own-name")
		s.up()
		hcp := &hyperv1.HostedControlPlane{}
		s.get(hcp, fixture.ClusterName)
		hcp.Status.CustomKubeconfig = hcp.Status.KubeConfig
		s.Expect(c.Status().Update(t.Context(), hcp)).To(Succeed())
		s.mustPass()
		key := client.ObjectKey{Namespace: s.namespace, Name: secrets.CustomKubeconfigName(s.cluster())}
		s.Expect(c.Get(t.Context(), key, &corev1.Secret{})).To(Succeed())
		s.Expect(s.cluster().Status.CustomKubeconfig).To(HaveValue(HaveField("Name", key.Name)))
		s.get(hcp, fixture.ClusterName)
		hcp.Status.CustomKubeconfig = nil
		s.Expect(c.Status().Update(t.Context(), hcp)).To(Succeed())
		s.mustPass()
		s.Expect(client.IgnoreNotFound(c.Get(t.Context(), key, &corev1.Secret{}))).To(Succeed())
		s.Expect(c.Get(t.Context(), key, &corev1.Secret{})).NotTo(Succeed())
		s.Expect(s.cluster().Status.CustomKubeconfig).To(BeNil(), "the status names no Secret that is gone")
	})

	t.Run("When the Secret copies of a paused cluster are deleted, the status should no longer name them", func(t *testing.T) {
		s := newWorld(t, c, "paused-access")
		s.up()
		hcp := &hyperv1.HostedControlPlane{}
		s.get(hcp, fixture.ClusterName)
		hcp.Status.KubeadminPassword = &corev1.LocalObjectReference{Name: "admin-kubeconfig"}
		s.Expect(c.Status().Update(t.Context(), hcp)).To(Succeed())
		s.mustPass()
		s.Expect(s.cluster().Status.KubeadminPassword).To(HaveValue(HaveField("Name", "demo-kubeadmin-password")))
		s.change(func(hc *hyperv1.HostedCluster) { hc.Spec.PausedUntil = ptr.To("true") })
		for _, name := range []string{"demo-kubeadmin-password", "demo-admin-kubeconfig"} {
			s.Expect(c.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}})).To(Succeed())
		}
		s.mustPass()
		s.Expect(s.cluster().Status).To(And(HaveField("KubeadminPassword", BeNil()), HaveField("KubeConfig", BeNil())))
	})

	t.Run("When a rejected cluster is deleted, the owner of its namespace should keep its managers and credentials", func(t *testing.T) {
		s := newWorld(t, c, "refused")
		annotations := map[string]string{hyperv1.HostedClusterAnnotation: "a/b"}
		manager := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: capiProviderName, Finalizers: []string{hyperv1.ControlPlaneComponentFinalizer}, Annotations: annotations},
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
		s.Expect(manager.Finalizers).To(ContainElement(hyperv1.ControlPlaneComponentFinalizer))
	})

	t.Run("When a user deletes the Cluster, its machines should be released before the managers are", func(t *testing.T) {
		s := newWorld(t, c, "orphans")
		s.up()
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: s.cluster().Spec.InfraID}}
		s.Expect(c.Delete(t.Context(), cluster)).To(Succeed())
		machine := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: "left", Finalizers: []string{clusterv1.MachineFinalizer}},
			Spec: clusterv1.MachineSpec{ClusterName: cluster.Name, Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("x")},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "MaasMachine", Name: "left"}},
		}
		infra := &infrav1.MaasMachine{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.hosted(), Name: "left", Finalizers: []string{infrav1.MachineFinalizer}},
			Spec:       infrav1.MaasMachineSpec{MinCPU: ptr.To(1), MinMemory: ptr.To(1024), Image: "custom/x"},
		}
		fixture.Create(t, c, machine, infra)
		s.Expect(c.Delete(t.Context(), s.cluster())).To(Succeed())
		_, err := s.pass()
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.condition(hyperv1.HostedClusterAvailable).Message).To(ContainSubstring("Waiting for 1 machine that outlived their Cluster to be released: left. "))
		s.get(infra, "left")
		s.Expect(infra.DeletionTimestamp).NotTo(BeNil())
		provider := &appsv1.Deployment{}
		s.get(provider, capiProviderName)
		s.Expect(provider.Finalizers).To(ContainElement(hyperv1.ControlPlaneComponentFinalizer))

		infra.Finalizers = nil
		s.Expect(c.Update(t.Context(), infra)).To(Succeed())
		s.mustPass()
		s.Expect(s.missing(machine, "left")).To(BeTrue())
		s.Expect(s.condition(hyperv1.HostedClusterAvailable).Message).To(ContainSubstring("Waiting for namespace"))
	})

	t.Run("When the proxy is removed from the spec, the condition about its CA should be removed", func(t *testing.T) {
		s := newWorld(t, c, "proxy")
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

	t.Run("When a part of the status cannot be read, it should keep its last value and write the rest", func(t *testing.T) {
		s := newWorld(t, c, "unread")
		s.up()
		endpoint := s.cluster().Status.IgnitionEndpoint
		s.Expect(endpoint).NotTo(BeEmpty())
		s.Reconciler.Client = interceptor.NewClient(c, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if _, is := obj.(*corev1.Service); is {
					return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
				}
				return c.Get(ctx, key, obj, opts...)
			},
		})
		_, err := s.pass()
		s.Expect(err).To(MatchError(ContainSubstring("leader changed")))
		s.Expect(s.condition(hyperv1.ReconciliationSucceeded).Message).To(ContainSubstring("reading Service unread-demo/ignition-server"))
		s.Expect(s.cluster().Status.IgnitionEndpoint).To(Equal(endpoint))
	})

	t.Run("When the CA of the proxy has the name of the trust bundle's copy, both should be copied",
		func(t *testing.T) {
			s := newWorld(t, c, "proxy-ca")
			s.start(func(hc *hyperv1.HostedCluster) {
				hc.Spec.AdditionalTrustBundle = nil
				hc.Spec.Configuration = &hyperv1.ClusterConfiguration{
					Proxy: &configv1.ProxySpec{TrustedCA: configv1.ConfigMapNameReference{Name: naming.TrustBundle}}}
			})
			fixture.Create(t, c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace,
				Name: naming.TrustBundle},
				Data: map[string]string{naming.TrustBundleKey: "proxy's"}})
			s.mustPass()
			counted := fixture.NewFaulty(c)
			s.Reconciler.Client = counted
			s.mustPass()
			s.Expect(counted.Log).To(BeEmpty())
			s.Reconciler.Client = c
			s.change(func(hc *hyperv1.HostedCluster) {
				hc.Spec.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: fixture.TrustBundle}
			})
			s.mustPass()
			bundle, proxys := &corev1.ConfigMap{}, &corev1.ConfigMap{}
			s.get(bundle, naming.TrustBundle)
			s.Expect(bundle.Data).To(HaveKey(naming.TrustBundleKey))
			s.Expect(bundle.Data).NotTo(HaveKeyWithValue(naming.TrustBundleKey, "proxy's"))
			s.get(proxys, hosted.CopyName(hosted.UseConfiguration, naming.TrustBundle))
			s.Expect(proxys.Data).To(HaveKeyWithValue(naming.TrustBundleKey, "proxy's"))
		})

	t.Run("When a referenced Secret has the name of a control plane Secret, it should not overwrite that Secret", func(t *testing.T) {
		s := newWorld(t, c, "pull-secret-name")
		s.start(func(hc *hyperv1.HostedCluster) {
			hc.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{ServingCerts: configv1.APIServerServingCerts{
				NamedCertificates: []configv1.APIServerNamedServingCert{{Names: []string{"api.example"}, ServingCertificate: configv1.SecretNameReference{Name: naming.PullSecret}}},
			}}}
		})
		s.user(naming.PullSecret, map[string][]byte{"tls.crt": []byte("not a pull secret")})
		s.mustPass()
		secret := &corev1.Secret{}
		s.get(secret, naming.PullSecret)
		s.Expect(secret.Data).To(And(HaveKey(corev1.DockerConfigJsonKey), Not(HaveKey("tls.crt"))))
		s.Expect(s.copied(hosted.UseConfiguration, naming.PullSecret)).To(HaveKeyWithValue("tls.crt", "not a pull secret"))
	})

	t.Run("When many clusters are created at once, each should get its own user ID", func(t *testing.T) {
		s := newWorld(t, c, "crowd")
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
