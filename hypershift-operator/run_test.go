// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/operatorwebhook"
	"github.com/openshift/hypershift/support/tenantlimits"
	"github.com/openshift/hypershift/support/testenv"
)

const (
	namespace = "clusters"
	patience  = 3 * time.Minute
	tick      = 100 * time.Millisecond
)

// TestOperator runs the complete operator as the binary does, on a real API server. It calls no reconciler directly, so
// it also tests the watches.
func TestOperator(t *testing.T) {
	config := testenv.Start(t, crds.Folders...)
	c, err := client.New(config, client.Options{Scheme: fixture.Scheme()})
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	// Run without leader election. A busy API server that does not answer for ten seconds would end the leadership,
	// and nothing restarts the operator here.
	flags := &runFlags{
		namespace: "default", metricsAddr: "0", healthAddr: "0", defaultingWebhook: true, webhookPort: testenv.FreePort(t), platforms: registry.All(),
		limits: tenantlimits.Limits{Registries: []string{"registry.example"}},
	}
	traffic := &traffic{}
	watched := rest.CopyConfig(config)
	watched.Wrap(func(next http.RoundTripper) http.RoundTripper { traffic.next = next; return traffic })
	platforms, err := flags.plugins(nil)
	g.Expect(err).NotTo(HaveOccurred())
	mgr, err := newManager(watched, flags, platforms)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(addControllers(mgr, flags, platforms, "registry.example/hypershift:1", nil, fixture.Payloads())).To(Succeed())
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("the operator ended with: %v", err)
		}
	})
	eventually := func(obj client.Object, name string, check func(g Gomega)) {
		t.Helper()
		g.Eventually(func(g Gomega) {
			ns := fixture.Hosted(namespace)
			switch obj.(type) {
			case *hyperv1.HostedCluster, *hyperv1.NodePool:
				ns = namespace
			}
			g.Expect(c.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, obj)).To(Succeed())
			if check != nil {
				check(g)
			}
		}, patience, tick).Should(Succeed())
	}

	t.Run("When a HostedCluster and a NodePool are created, it should bring up both", func(t *testing.T) {
		fixture.Create(t, c, append(fixture.Inputs(namespace), fixture.HostedCluster(namespace), fixture.NodePool(namespace))...)
		eventually(&appsv1.Deployment{}, "control-plane-operator", nil)
		hcp := &hyperv1.HostedControlPlane{}
		eventually(hcp, fixture.ClusterName, nil)

		// Create what the control-plane-operator would create.
		hosted := metav1.ObjectMeta{Namespace: fixture.Hosted(namespace)}
		named := func(name string) metav1.ObjectMeta { m := hosted; m.Name = name; return m }
		fixture.Create(t, c,
			&corev1.Secret{ObjectMeta: named("admin-kubeconfig"), Data: map[string][]byte{"kubeconfig": []byte("admin")}},
			&corev1.Secret{ObjectMeta: named("ignition-server-ca-cert"), Data: map[string][]byte{"tls.crt": []byte("CA")}},
			&corev1.Service{ObjectMeta: named("ignition-server"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 443}}}})
		g.Eventually(func() error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(hcp), hcp); err != nil {
				return err
			}
			hcp.Status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: "172.30.240.1", Port: 31443}
			hcp.Status.KubeConfig = &hyperv1.KubeconfigSecretRef{Name: "admin-kubeconfig", Key: "kubeconfig"}
			meta.SetStatusCondition(&hcp.Status.Conditions, metav1.Condition{
				Type: string(hyperv1.HostedControlPlaneAvailable), Status: metav1.ConditionTrue, Reason: hyperv1.AsExpectedReason})
			return c.Status().Update(ctx, hcp)
		}, patience, tick).Should(Succeed())

		hc := &hyperv1.HostedCluster{}
		eventually(hc, fixture.ClusterName, func(g Gomega) {
			g.Expect(meta.IsStatusConditionTrue(hc.Status.Conditions, string(hyperv1.HostedClusterAvailable))).To(BeTrue())
		})
		eventually(&appsv1.Deployment{}, "capi-provider", nil)

		// Do what the ignition-server would do.
		g.Eventually(func(g Gomega) {
			tokens := &corev1.SecretList{}
			g.Expect(c.List(ctx, tokens, client.InNamespace(hosted.Namespace))).To(Succeed())
			tokens.Items = slices.DeleteFunc(tokens.Items, func(s corev1.Secret) bool { return s.Annotations[hyperv1.IgnitionConfigAnnotation] == "" })
			g.Expect(tokens.Items).To(HaveLen(1))
			tokens.Items[0].Data["reason"], tokens.Items[0].Data["message"] = []byte(hyperv1.AsExpectedReason), []byte("rendered")
			g.Expect(c.Update(ctx, &tokens.Items[0])).To(Succeed())
		}, patience, tick).Should(Succeed())
		md := &clusterv1.MachineDeployment{}
		eventually(md, fixture.PoolName, func(g Gomega) { g.Expect(md.Spec.Replicas).To(HaveValue(BeEquivalentTo(2))) })
	})

	t.Run("When a copied Secret is deleted, it should be recreated", func(t *testing.T) {
		copied := &corev1.Secret{}
		eventually(copied, "pull-secret", nil)
		g.Expect(c.Delete(ctx, copied)).To(Succeed())
		eventually(&corev1.Secret{}, "pull-secret", func(g Gomega) {})
	})

	t.Run("When the user's Secret changes, its copy should be updated", func(t *testing.T) {
		source := &corev1.Secret{}
		g.Expect(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: fixture.SSHKey}, source)).To(Succeed())
		source.Data["id_rsa.pub"] = []byte("another key")
		g.Expect(c.Update(ctx, source)).To(Succeed())
		copied := &corev1.Secret{}
		eventually(copied, "ssh-key", func(g Gomega) { g.Expect(copied.Data["id_rsa.pub"]).To(BeEquivalentTo("another key")) })
	})

	t.Run("When it watches Secrets and ConfigMaps of other applications, it should cache only their metadata", func(t *testing.T) {
		traffic.mu.Lock()
		defer traffic.mu.Unlock()
		g.Expect(traffic.metadata).To(ContainElements("secrets", "configmaps", "deployments", "services", "namespaces"))
		for _, kind := range traffic.metadata {
			g.Expect(traffic.whole).NotTo(ContainElement(kind), "watches that bring the content")
		}
	})

	t.Run("When conditions change, it should record Events", func(t *testing.T) {
		g.Eventually(func(g Gomega) {
			list := &corev1.EventList{}
			g.Expect(c.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
			g.Expect(list.Items).To(ContainElement(HaveField("Reason", "AsExpected")))
		}, patience, tick).Should(Succeed())
	})

	t.Run("When its webhook is registered, it should set the CA bundle", func(t *testing.T) {
		registered := operatorwebhook.Configuration("default")
		others := registered.DeepCopy()
		others.Name = "others"
		fixture.Create(t, c, registered, others)
		g.Eventually(func(g Gomega) {
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(registered), registered)).To(Succeed())
			g.Expect(registered.Webhooks[0].ClientConfig.CABundle).NotTo(BeEmpty())
		}, patience, tick).Should(Succeed())
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(others), others)).To(Succeed())
		g.Expect(others.Webhooks[0].ClientConfig.CABundle).To(BeEmpty())
		g.Expect(c.Delete(ctx, others)).To(Succeed())
	})

	t.Run("When it serves conversions for Cluster API CRDs, it should set the CA bundle", func(t *testing.T) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(c.Get(ctx, client.ObjectKey{Name: "machinepools.cluster.x-k8s.io"}, crd)).To(Succeed())
		operatorwebhook.Convert(crd, "default")
		g.Expect(c.Update(ctx, crd)).To(Succeed())
		g.Eventually(func(g Gomega) {
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(crd), crd)).To(Succeed())
			g.Expect(crd.Spec.Conversion.Webhook.ClientConfig.CABundle).NotTo(BeEmpty())
		}, patience, tick).Should(Succeed())
	})

	t.Run("When the NodePool is scaled, its MachineDeployment should be scaled", func(t *testing.T) {
		pool := &hyperv1.NodePool{}
		g.Expect(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: fixture.PoolName}, pool)).To(Succeed())
		g.Expect(c.SubResource("scale").Get(ctx, pool, scaleOf(pool, 0))).To(Succeed())
		g.Expect(c.SubResource("scale").Update(ctx, pool, client.WithSubResourceBody(scaleOf(pool, 3)))).To(Succeed())
		md := &clusterv1.MachineDeployment{}
		eventually(md, fixture.PoolName, func(g Gomega) { g.Expect(md.Spec.Replicas).To(HaveValue(BeEquivalentTo(3))) })
	})
}

// traffic records the kinds that are watched in all namespaces, and whether the watch transfers their content.
type traffic struct {
	next            http.RoundTripper
	mu              sync.Mutex
	metadata, whole []string
}

func (t *traffic) RoundTrip(r *http.Request) (*http.Response, error) {
	_, kind, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/v1/")
	if found && !strings.Contains(kind, "/") && r.URL.Query().Get("watch") == "true" {
		t.mu.Lock()
		if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
			t.metadata = append(t.metadata, kind)
		} else {
			t.whole = append(t.whole, kind)
		}
		t.mu.Unlock()
	}
	return t.next.RoundTrip(r)
}

func TestMissingCRDs(t *testing.T) {
	crd := func(name string, served apiextensionsv1.ConditionStatus) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: apiextensionsv1.CustomResourceDefinitionStatus{
			Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: served}}}}
	}
	reader := func(objects ...client.Object) client.Reader {
		return fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(objects...).Build()
	}
	var core []client.Object
	for _, name := range coreCRDs {
		core = append(core, crd(name, apiextensionsv1.ConditionTrue))
	}
	const machines = "maasmachines.infrastructure.cluster.x-k8s.io"
	for _, tc := range []struct {
		name    string
		objects []client.Object
		lacks   string
	}{
		{"When all required CRDs are served, it should not wait", core, ""},
		{"When a CRD of the controllers is missing, it should name the CRD and the remedy", core[1:], coreCRDs[0] + ": run `hypershift install`"},
		{"When a CRD of a platform is not established yet, it should wait for it", append(core, crd(machines, apiextensionsv1.ConditionFalse)), machines},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := waitForCRDs(t.Context(), reader(tc.objects...), fixture.Platforms(nil), time.Millisecond)
			if tc.lacks == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.lacks)))
		})
	}
	t.Run("When a platform is not installed, it should not wait for its CRDs", func(t *testing.T) {
		err := waitForCRDs(t.Context(), reader(append(core, crd(machines, apiextensionsv1.ConditionFalse))...), fixture.Platforms(nil).Limit("none"), time.Millisecond)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
}

func TestOwnImage(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "hypershift", Name: "operator-1"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "sidecar", Image: "wrong"}, {Name: "operator", Image: "registry.example/hypershift:1"}}}, Status: corev1.PodStatus{
		ContainerStatuses: []corev1.ContainerStatus{{Name: "sidecar", ImageID: "wrong"}, {Name: "operator", ImageID: "sha256:1"}}}}
	reader := fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(pod).Build()
	t.Run("When it runs in a Pod, it should use the image of the Pod", func(t *testing.T) {
		image, id, err := ownImage(t.Context(), reader, &runFlags{namespace: "hypershift", podName: "operator-1"})
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(image).To(Equal("registry.example/hypershift:1"))
		g.Expect(id).To(Equal("sha256:1"))
	})
	t.Run("When the Pod does not exist, it should return an error that names the flag", func(t *testing.T) {
		_, _, err := ownImage(t.Context(), reader, &runFlags{namespace: "hypershift", podName: "none"})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("--operator-image")))
	})
	t.Run("When the flag is set, it should use the image of the flag", func(t *testing.T) {
		image, _, err := ownImage(t.Context(), reader, &runFlags{operatorImage: "mine"})
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(image).To(Equal("mine"))
	})
}

func scaleOf(pool *hyperv1.NodePool, replicas int32) *autoscalingv1.Scale {
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: pool.Namespace, Name: pool.Name},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
	}
}
