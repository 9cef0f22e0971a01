// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/support/testenv"
)

func portOfCluster(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	w.owner.Spec.ClusterNetwork.APIServerPort = 7443
	w.Expect(w.client.Update(t.Context(), w.owner)).To(Succeed())
	w.add(infrav1.MaasClusterSpec{}, nil)
	w.reconcile(0)
	w.Expect(w.infra().Spec.ControlPlaneEndpoint).To(HaveField("Port", 7443))
	w.expect("APIServerAvailable", "False APIServerNotReady", "")
	w.owner.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	w.Expect(w.client.Status().Update(t.Context(), w.owner)).To(Succeed())
	w.reconcile(time.Minute)
	w.expect("APIServerAvailable", "True APIServerAvailable", "")
}

func keepsName(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	w.add(infrav1.MaasClusterSpec{}, nil)
	w.reconcile(0)
	name := w.infra().Status.Network.DNSName
	w.credentials("consumer:token:rotated")
	w.Expect(w.client.Delete(t.Context(), w.infra())).To(Succeed())
	w.reconcile(2 * time.Minute)
	w.Expect(w.gone()).To(BeFalse(), "nobody would ever take the name away")
	w.expect("LoadBalancerReady", "False LoadBalancerFailed", "DNS name "+name+" can't be removed from MAAS")
	w.credentials(w.Key(provider))
	w.reconcile(time.Minute)
	w.Expect(w.gone()).To(BeTrue())
	w.Expect(w.dns()).To(BeEmpty())
}

// losesName covers a provider that crashed after it created the DNS name in MAAS and before it recorded the name.
func losesName(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	w.add(infrav1.MaasClusterSpec{}, nil)
	w.reconcile(0)
	infra := w.infra()
	w.Expect(w.dns()).To(HaveKey(infra.Status.Network.DNSName))
	infra.Status.Network.DNSName = ""
	w.Expect(w.client.Status().Update(t.Context(), infra)).To(Succeed())
	infra.Spec.ControlPlaneEndpoint = infrav1.APIEndpoint{}
	w.Expect(w.client.Update(t.Context(), infra)).To(Succeed())
	w.Expect(w.client.Delete(t.Context(), infra)).To(Succeed())
	w.reconcile(time.Minute)
	w.Expect(w.gone()).To(BeTrue())
	w.Expect(w.dns()).To(BeEmpty())
}

func othersName(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	c, err := maas.NewClient(maas.Config{Endpoint: w.endpoint, APIKey: w.Key(provider)})
	w.Expect(err).NotTo(HaveOccurred())
	_, err = c.CreateDNSResource(t.Context(), "api.maas", 30, []string{"192.0.2.7"})
	w.Expect(err).NotTo(HaveOccurred())
	w.add(infrav1.MaasClusterSpec{ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "api.maas", Port: 6443}}, nil)
	w.controlPlane("cp", true, "192.168.0.4")
	w.reconcile(0)
	w.expect("Ready", "True Ready", "")
	w.Expect(w.infra().Status.Network.DNSName).To(BeEmpty())
	w.Expect(w.client.DeleteAllOf(t.Context(), &infrav1.MaasMachine{}, client.InNamespace(w.namespace))).To(Succeed())
	w.Expect(w.client.Delete(t.Context(), w.infra())).To(Succeed())
	w.reconcile(time.Minute)
	w.Expect(w.gone()).To(BeTrue())
	w.Expect(w.dns()).To(HaveKeyWithValue("api.maas", []string{"192.0.2.7"}), "a person made it, and it serves others too")
}

func lettingGo(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	w.addAsked("provider")
	w.reconcile(0)
	w.Expect(w.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "maas"}})).To(Succeed())
	w.Expect(w.client.Delete(t.Context(), w.infra())).To(Succeed())
	w.reconcile(time.Minute)
	w.Expect(w.gone()).To(BeTrue(), "without credentials nobody will ever look")
	w.Expect(w.recorder.Events).To(Receive(ContainSubstring("OrphansNotLookedFor ")))
}

func pausedByCluster(t *testing.T, cfg *rest.Config) {
	w := newWorld(t, cfg)
	w.owner.Spec.Paused = ptr.To(true)
	w.Expect(w.client.Update(t.Context(), w.owner)).To(Succeed())
	w.add(infrav1.MaasClusterSpec{}, nil)
	w.reconcile(0)
	w.expect("Paused", "True Paused", "")
	w.Expect(w.Requests()).To(BeEmpty())
	w.Expect(w.client.Delete(t.Context(), w.infra())).To(Succeed())
	w.reconcile(time.Minute)
	w.Expect(w.Requests()).To(BeEmpty(), "a pause holds for a deletion too")
}

// unwritten makes the API server reject the status of the MaasCluster, once in a normal reconcile and once while it is
// paused.
func unwritten(t *testing.T, cfg *rest.Config) {
	for _, annotations := range []map[string]string{nil, {clusterv1.PausedAnnotation: "true"}} {
		w := newWorld(t, cfg)
		real := testenv.Client(t, cfg, w.client.Scheme())
		w.add(infrav1.MaasClusterSpec{}, annotations)
		w.reconciler.Client = interceptor.NewClient(real, interceptor.Funcs{
			SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
				return errors.New("etcd is away")
			},
			SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
				return errors.New("etcd is away")
			},
		})
		_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.infra())})
		w.Expect(err).To(MatchError(ContainSubstring("etcd is away")))
	}
}
