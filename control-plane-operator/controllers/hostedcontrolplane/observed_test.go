// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
	"github.com/openshift/hypershift/support/component"
)

// deployment returns a Deployment of the control plane, or an unrelated one in its namespace.
func deployment(name string, ours bool) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if ours {
		d.Labels = map[string]string{"hypershift.openshift.io/managed-by": "control-plane-operator"}
	}
	return d
}

// unplacedPod returns a pod that the scheduler has found no node for. It has waited for the given time.
func unplacedPod(name string, since time.Duration) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(now.Add(-since)),
	}}}}
}

// encrypted sets an encryption key, which the namespace has as key("first-key").
func encrypted(hcp *hyperv1.HostedControlPlane) {
	hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: "first-key"}}}
}

func TestObserve(t *testing.T) {
	t.Run("When all objects exist, it should observe them", func(t *testing.T) {
		g := NewWithT(t)
		kas := deployment("kube-apiserver", true)
		kas.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}
		elsewhere := &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "etcd"}}
		w := fakeWorld(t, deployment("kube-scheduler", true), kas, deployment("of-somebody-else", false), elsewhere,
			&hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-scheduler"}},
			&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd"}}, unplacedPod("etcd-0", time.Hour),
			secretOf(pki.AdminKubeconfig, nil), secretOf(pki.CustomAdminKubeconfig, nil), secretOf(kubeapiserver.EncryptionSecret, nil), key("first-key", 1))
		w.r.Health = func(context.Context, component.Endpoint) error { return errRefused }
		s := w.begin()
		encrypted(s.valid)
		s.valid.Spec.Services[0].ServicePublishingStrategy.Type = hyperv1.LoadBalancer
		s.infra = &component.Infra{}
		o, err := w.r.observe(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(o.deployments).To(ConsistOf(HaveField("Name", "kube-apiserver"), HaveField("Name", "kube-scheduler")))
		g.Expect(o.kas.Name).To(Equal("kube-apiserver"))
		g.Expect(o.etcd.Name).To(Equal("etcd"))
		g.Expect(o.components).To(ConsistOf(HaveField("Name", "kube-scheduler")))
		g.Expect(o.hasKubeconfig && o.hasCustomKubeconfig).To(BeTrue())
		g.Expect(o.secrets).To(HaveLen(5))
		g.Expect(o.encryption.Name).To(Equal(kubeapiserver.EncryptionSecret))
		g.Expect(o.encryptionKey.AESCBC.Secret.Name).To(Equal("first-key"))
		g.Expect(o.unplaced).To(ConsistOf(HaveField("Name", "etcd-0")))
		g.Expect(s.placing).To(BeTrue())
		g.Expect(o.unhealthy).To(MatchError(errRefused))
	})
	t.Run("When no object exists, it should observe none", func(t *testing.T) {
		g := NewWithT(t)
		w := fakeWorld(t)
		s := w.begin()
		o, err := w.r.observe(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(o.kas).To(BeNil())
		g.Expect(o.etcd).To(BeNil())
		g.Expect(o.hasKubeconfig || o.hasCustomKubeconfig || s.placing).To(BeFalse())
		g.Expect(o.encryption).To(BeNil())
		g.Expect(o.unhealthy).NotTo(HaveOccurred())
	})
	t.Run("When a Pod has just become unschedulable, it should observe that placement is pending", func(t *testing.T) {
		w := fakeWorld(t, unplacedPod("etcd-0", time.Second))
		s := w.begin()
		o, err := w.r.observe(t.Context(), s)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(s.placing && len(o.unplaced) == 0).To(BeTrue())
	})
	t.Run("When the user brings an etcd, it should record the answer of that etcd", func(t *testing.T) {
		w := fakeWorld(t)
		w.r.OwnEtcd = func(ctx context.Context, _ client.Reader, hcp *hyperv1.HostedControlPlane) error {
			if until, ok := ctx.Deadline(); !ok || time.Until(until) > healthTimeout {
				return errors.New("asked for ever")
			}
			return errors.New(hcp.Spec.Etcd.Unmanaged.Endpoint)
		}
		s := w.begin()
		s.valid.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged, Unmanaged: &hyperv1.UnmanagedEtcdSpec{Endpoint: "https://etcd.example"}}
		o, err := w.r.observe(t.Context(), s)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(o.ownEtcd).To(MatchError("https://etcd.example"))
	})
}

// TestUnseen checks that an object that cannot be read does not count as missing.
func TestUnseen(t *testing.T) {
	for _, what := range []string{
		"list v1.DeploymentList", "list v1beta1.ControlPlaneComponentList", "get v1.StatefulSet clusters-demo/etcd", "get v1.Secret clusters-demo/admin-kubeconfig",
		"get v1.Secret clusters-demo/custom-admin-kubeconfig", "list v1.SecretList", "get v1.Secret clusters-demo/kas-secret-encryption-config", "list v1.PodList",
		"get v1.ConfigMap clusters-demo/provider-ca", "get v1.ConfigMap clusters-demo/root-ca",
	} {
		t.Run("When the server refuses to "+what+", it should fail and write no status", func(t *testing.T) {
			g := NewWithT(t)
			w := fakeWorld(t)
			s := w.begin()
			s.valid.Spec.Configuration = &hyperv1.ClusterConfiguration{Authentication: &configv1.AuthenticationSpec{Type: configv1.AuthenticationTypeOIDC, OIDCProviders: []configv1.OIDCProvider{{
				Name: "sso", Issuer: configv1.TokenIssuer{CertificateAuthority: configv1.ConfigMapNameReference{Name: "provider-ca"}}}}}}
			old, wanted := address("old", time.Hour), address("new", 0)
			s.served, s.wanted = []hyperv1.ServedAddress{old}, &wanted
			w.refuse(what)
			g.Expect(w.r.updateStatus(t.Context(), s, nil)).To(MatchError(errRefused))
			w.get("demo", w.hcp)
			g.Expect(w.hcp.Status).To(Equal(hyperv1.HostedControlPlaneStatus{}))
		})
	}
	t.Run("When the Pods of the plugins cannot be listed, it should return an error", func(t *testing.T) {
		w := fakeWorld(t, secretOf(kubeapiserver.EncryptionSecret, nil))
		w.refuse("list v1.PodList")
		err := w.r.observeEncryption(t.Context(), w.begin(), &observed{})
		NewWithT(t).Expect(err).To(MatchError(errRefused))
	})
	t.Run("When the Pods cannot be listed, it should return an error instead of a certificate status", func(t *testing.T) {
		w := fakeWorld(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "root-ca"}})
		w.refuse("list v1.PodList")
		s := goingOver("old", "new", address("old", time.Hour))
		_, _, err := w.r.askAddresses(t.Context(), s)
		NewWithT(t).Expect(err).To(MatchError(errRefused))
	})
}

func TestUpdateStatus(t *testing.T) {
	w := fakeWorld(t, secretOf(pki.AdminKubeconfig, nil))
	g := NewWithT(t)
	s := w.begin()
	s.infra = &component.Infra{API: component.Endpoint{Host: "192.0.2.10", Port: 30443}}
	g.Expect(w.r.updateStatus(t.Context(), s, nil)).To(Succeed())
	w.get("demo", w.hcp)
	g.Expect(w.hcp.Status.ControlPlaneEndpoint).To(Equal(hyperv1.APIEndpoint{Host: "192.0.2.10", Port: 30443}))
	g.Expect(w.hcp.Status.KubeConfig.Name).To(Equal(pki.AdminKubeconfig))
	g.Expect(w.hcp.Status.Conditions).To(ContainElement(And(HaveField("Type", string(hyperv1.InfrastructureReady)), HaveField("ObservedGeneration", int64(3)))))
	t.Run("When nothing has changed, it should not write the status", func(t *testing.T) {
		again := w.begin()
		again.infra, again.served = s.infra, w.hcp.Status.ServedAddresses
		writes := w.writes.Count
		g := NewWithT(t)
		g.Expect(w.r.updateStatus(t.Context(), again, nil)).To(Succeed())
		g.Expect(w.writes.Count).To(Equal(writes))
	})
	t.Run("When the status cannot be written, it should return an error", func(t *testing.T) {
		w.refuse("update status v1beta1.HostedControlPlane clusters-demo/demo")
		NewWithT(t).Expect(w.r.updateStatus(t.Context(), w.begin(), nil)).To(MatchError(errRefused))
	})
}
