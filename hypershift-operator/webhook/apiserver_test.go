// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/operatorwebhook"
	"github.com/openshift/hypershift/support/readthrough"
	"github.com/openshift/hypershift/support/testenv"
)

const (
	patience = 3 * time.Minute
	tick     = 100 * time.Millisecond
)

// serve runs one replica of the operator's webhook until the test ends or stop is called.
func serve(t *testing.T, config *rest.Config, port int) (stop func()) {
	t.Helper()
	g := NewWithT(t)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: fixture.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		// This process runs several replicas.
		Controller: controllerconfig.Controller{SkipNameValidation: ptr.To(true)},
		// Use the operator's own client: a metadata event with older content in the cache would be missed otherwise.
		NewClient: readthrough.NewClient(client.New, &corev1.Secret{}),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Setup(mgr, Options{Namespace: operatorNamespace, Port: port, Defaults: true, Clock: clock.RealClock{}})).To(Succeed())
	return testenv.Run(t, mgr)
}

// install registers the webhook as the installer does. The API server normally finds the operator by its Service; here
// it connects to this process.
func install(t *testing.T, c client.Client, port int) {
	t.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: operatorwebhook.Service},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}
	config := operatorwebhook.Configuration(operatorNamespace)
	for i := range config.Webhooks {
		config.Webhooks[i].ClientConfig.Service.Port = ptr.To(int32(port))
		// The API server ignores a late response and rejects the object. A busy machine needs the maximum timeout.
		config.Webhooks[i].TimeoutSeconds = ptr.To[int32](30)
	}
	fixture.Create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}}, service, config)
}

// pool returns a NodePool with only the required fields.
func pool(name, cluster string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": hyperv1.GroupVersion.String(), "kind": "NodePool",
		"metadata": map[string]any{"namespace": "clusters", "name": name},
		"spec":     map[string]any{"clusterName": cluster, "replicas": int64(1), "platform": map[string]any{"maas": map[string]any{}}},
	}}
}

func TestWithAPIServer(t *testing.T) {
	g := NewWithT(t)
	config := testenv.Start(t, "hypershift")
	c, err := client.New(config, client.Options{Scheme: fixture.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	port := testenv.FreePort(t)
	install(t, c, port)
	stop := serve(t, config, port)
	ctx := t.Context()
	fixture.Create(t, c, append(fixture.Inputs("clusters"), fixture.HostedCluster("clusters"))...)
	works := func(g Gomega) {
		g.Expect(c.Create(ctx, pool("probe", fixture.ClusterName), client.DryRunAll)).To(Succeed())
	}
	g.Eventually(works, patience, tick).Should(Succeed())

	t.Run("When a client offers HTTP/2, it should negotiate HTTP/1.1", func(t *testing.T) {
		g := NewWithT(t)
		dialer := &tls.Dialer{Config: &tls.Config{NextProtos: []string{"h2", "http/1.1"}, InsecureSkipVerify: true}}
		connection, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("localhost:%d", port))
		g.Expect(err).NotTo(HaveOccurred())
		defer connection.Close()
		g.Expect(connection.(*tls.Conn).ConnectionState().NegotiatedProtocol).To(Equal("http/1.1"))
	})

	t.Run("When a NodePool has no release, it should get the release of its cluster", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(c.Create(ctx, pool("small", fixture.ClusterName))).To(Succeed())
		got := &hyperv1.NodePool{}
		g.Expect(c.Get(ctx, client.ObjectKey{Namespace: "clusters", Name: "small"}, got)).To(Succeed())
		g.Expect(got.Spec.Release.Image).To(Equal(fixture.ReleaseImage))
		g.Expect(got.Spec.Platform.Type).To(Equal(hyperv1.MAASPlatform))
		g.Expect(got.Spec.Management.UpgradeType).To(Equal(hyperv1.UpgradeTypeReplace))
		g.Expect(got.Spec.Management.Replace).NotTo(BeNil(), "the schema's defaults come after ours")
		g.Expect(got.Spec.Arch).To(Equal("amd64"))
	})

	t.Run("When a NodePool is applied again, it should keep its release after a cluster upgrade", func(t *testing.T) {
		g := NewWithT(t)
		apply := func() error {
			return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(pool("applied", fixture.ClusterName)), client.FieldOwner("user"), client.ForceOwnership)
		}
		g.Expect(apply()).To(Succeed())
		hc := &hyperv1.HostedCluster{}
		g.Expect(c.Get(ctx, client.ObjectKey{Namespace: "clusters", Name: fixture.ClusterName}, hc)).To(Succeed())
		before := hc.DeepCopy()
		hc.Spec.Release.Image = "registry.example/release:1.36.4"
		g.Expect(c.Patch(ctx, hc, client.MergeFrom(before))).To(Succeed())
		g.Expect(apply()).To(Succeed())
		got := &hyperv1.NodePool{}
		g.Expect(c.Get(ctx, client.ObjectKey{Namespace: "clusters", Name: "applied"}, got)).To(Succeed())
		g.Expect(got.Spec.Release.Image).To(Equal(fixture.ReleaseImage), "an upgrade is the user's choice")
	})

	t.Run("When the cluster of a NodePool does not exist, the schema should reject it", func(t *testing.T) {
		g := NewWithT(t)
		err := c.Create(ctx, pool("orphan", "nobody"))
		g.Expect(err).To(MatchError(And(ContainSubstring("spec.release: Required value"), ContainSubstring("spec.management: Required value"))))
	})

	t.Run("When a HostedCluster has no node port address, it should get the address of the first Ready node", func(t *testing.T) {
		g := NewWithT(t)
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fixture.HostedCluster("clusters"))
		g.Expect(err).NotTo(HaveOccurred())
		hc := &unstructured.Unstructured{Object: raw}
		hc.SetGroupVersionKind(hyperv1.GroupVersion.WithKind("HostedCluster"))
		hc.SetName("second")
		services, _, err := unstructured.NestedSlice(raw, "spec", "services")
		g.Expect(err).NotTo(HaveOccurred())
		for _, service := range services {
			unstructured.RemoveNestedField(service.(map[string]any), "servicePublishingStrategy", "nodePort")
		}
		g.Expect(unstructured.SetNestedSlice(raw, services, "spec", "services")).To(Succeed())
		g.Expect(c.Create(ctx, hc.DeepCopy())).NotTo(Succeed(), "there is no node yet")
		ready := node("a", "10.0.0.7", corev1.ConditionTrue)
		status := ready.Status
		g.Expect(c.Create(ctx, ready)).To(Succeed())
		ready.Status = status
		g.Expect(c.Status().Update(ctx, ready)).To(Succeed())
		g.Expect(c.Create(ctx, hc)).To(Succeed())
		got, err := json.Marshal(hc)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(got)).To(ContainSubstring(`"nodePort":{"address":"10.0.0.7"`))
	})

	t.Run("When the CA is replaced, the webhook configuration should be updated", func(t *testing.T) {
		g := NewWithT(t)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: caSecret}}
		bundle := func(g Gomega) string {
			config := &admissionv1.MutatingWebhookConfiguration{}
			g.Expect(c.Get(ctx, client.ObjectKey{Name: operatorwebhook.Name}, config)).To(Succeed())
			g.Expect(x509.NewCertPool().AppendCertsFromPEM(config.Webhooks[1].ClientConfig.CABundle)).To(BeTrue())
			g.Expect(config.Webhooks[0].ClientConfig.CABundle).To(Equal(config.Webhooks[1].ClientConfig.CABundle))
			return string(config.Webhooks[1].ClientConfig.CABundle)
		}
		old := bundle(g)
		g.Expect(c.Delete(ctx, secret)).To(Succeed())
		g.Eventually(bundle, patience, tick).ShouldNot(Equal(old))
		g.Eventually(works, patience, tick).Should(Succeed())
	})

	t.Run("When a user clears the CA bundle, it should be set again", func(t *testing.T) {
		g := NewWithT(t)
		config := &admissionv1.MutatingWebhookConfiguration{}
		g.Expect(c.Get(ctx, client.ObjectKey{Name: operatorwebhook.Name}, config)).To(Succeed())
		config.Webhooks[1].ClientConfig.CABundle = nil
		g.Expect(c.Update(ctx, config)).To(Succeed())
		g.Eventually(func(g Gomega) {
			g.Expect(c.Get(ctx, client.ObjectKey{Name: operatorwebhook.Name}, config)).To(Succeed())
			g.Expect(config.Webhooks[1].ClientConfig.CABundle).NotTo(BeEmpty())
		}, patience, tick).Should(Succeed())
	})

	t.Run("When the operator is down, it should not block complete objects", func(t *testing.T) {
		g := NewWithT(t)
		stop()
		complete := fixture.NodePool("clusters")
		complete.Name = "complete"
		g.Expect(c.Create(ctx, complete)).To(Succeed())
		g.Expect(c.Create(ctx, pool("lacking", fixture.ClusterName))).To(MatchError(ContainSubstring("spec.release: Required value")))
	})
}
