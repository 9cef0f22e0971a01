// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/crds"
	"github.com/openshift/hypershift/support/operatorwebhook"
	"github.com/openshift/hypershift/support/testenv"
)

func TestEveryServedVersionIsConverted(t *testing.T) {
	convert, err := newConverter(meta.NewDefaultRESTMapper(nil))
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Load(crds.ClusterAPI)
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range definitions {
		for _, from := range crd.Spec.Versions {
			for _, to := range crd.Spec.Versions {
				if to.Name == from.Name {
					continue
				}
				t.Run("When a "+crd.Spec.Names.Kind+" of "+from.Name+" is requested as "+to.Name+", it should be converted", func(t *testing.T) {
					g := NewWithT(t)
					group := crd.Spec.Group + "/"
					object := map[string]any{"apiVersion": group + from.Name, "kind": crd.Spec.Names.Kind, "metadata": map[string]any{"name": "x", "uid": "u"}}
					got := review(g, convert, group+to.Name, object)
					g.Expect(got.GetAPIVersion()).To(Equal(group + to.Name))
					g.Expect(got.GetKind()).To(Equal(crd.Spec.Names.Kind))
					g.Expect(got.GetName()).To(Equal("x"))
				})
			}
		}
	}
}

// review sends a conversion request as the API server does, and returns the response.
func review(g Gomega, convert http.Handler, version string, object map[string]any) *unstructured.Unstructured {
	raw, err := json.Marshal(object)
	g.Expect(err).NotTo(HaveOccurred())
	asked, err := json.Marshal(apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"},
		Request:  &apiextensionsv1.ConversionRequest{UID: "1", DesiredAPIVersion: version, Objects: []runtime.RawExtension{{Raw: raw}}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	recorder := httptest.NewRecorder()
	convert.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, operatorwebhook.ConversionPath, strings.NewReader(string(asked))))
	answer := &apiextensionsv1.ConversionReview{}
	g.Expect(json.Unmarshal(recorder.Body.Bytes(), answer)).To(Succeed())
	g.Expect(answer.Response.Result.Status).To(Equal(metav1.StatusSuccess), answer.Response.Result.Message)
	g.Expect(answer.Response.ConvertedObjects).To(HaveLen(1))
	got := &unstructured.Unstructured{}
	g.Expect(json.Unmarshal(answer.Response.ConvertedObjects[0].Raw, got)).To(Succeed())
	return got
}

func TestReferenceToAnUnknownKind(t *testing.T) {
	g := NewWithT(t)
	_, err := newConverter(meta.NewDefaultRESTMapper(nil))
	g.Expect(err).NotTo(HaveOccurred())
	machine := &clusterv1.Machine{Spec: clusterv1.MachineSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
		APIGroup: "infrastructure.example", Kind: "Rack", Name: "r",
	}}}
	err = (&clusterv1beta1.Machine{}).ConvertFrom(machine)
	g.Expect(err).To(MatchError(ContainSubstring("Rack.infrastructure.example")))
}

// convertedBy configures the API server to send conversion requests to this process, as the installer does for the
// operator.
func convertedBy(t *testing.T, c client.Client, port int) {
	t.Helper()
	fixture.Create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}}, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: operatorwebhook.Service},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	})
	for _, name := range crds.Names(crds.ClusterAPI) {
		g := NewWithT(t)
		g.Eventually(func(g Gomega) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			g.Expect(c.Get(t.Context(), client.ObjectKey{Name: name}, crd)).To(Succeed())
			operatorwebhook.Convert(crd, operatorNamespace)
			crd.Spec.Conversion.Webhook.ClientConfig.Service.Port = ptr.To(int32(port))
			g.Expect(c.Update(t.Context(), crd)).To(Succeed())
		}, patience, tick).Should(Succeed())
	}
}

// converted is a management cluster whose API server uses an operator to convert Cluster API's kinds, with clients of
// both versions.
type converted struct {
	*WithT
	config *rest.Config
	// stored uses v1beta2, old uses v1beta1.
	stored, old client.Client
	port        int
}

func newConverted(t *testing.T) converted {
	t.Helper()
	config := testenv.Start(t, crds.HyperShift, crds.ClusterAPI, crds.Infrastructure)
	w := converted{WithT: NewWithT(t), config: config}
	var err error
	w.stored, err = client.New(config, client.Options{Scheme: fixture.Scheme()})
	w.Expect(err).NotTo(HaveOccurred())
	scheme := runtime.NewScheme()
	w.Expect(clusterv1beta1.AddToScheme(scheme)).To(Succeed())
	w.old, err = client.New(config, client.Options{Scheme: scheme})
	w.Expect(err).NotTo(HaveOccurred())
	w.port = testenv.FreePort(t)
	convertedBy(t, w.stored, w.port)
	return w
}

// awaitConversion waits until the CA is configured for each of the kinds: the operator updates one CRD after another.
func (w converted) awaitConversion(ctx context.Context) {
	deployment := oldDeployment("probe")
	set := &clusterv1beta1.MachineSet{ObjectMeta: deployment.ObjectMeta, Spec: clusterv1beta1.MachineSetSpec{
		ClusterName: "demo", Selector: deployment.Spec.Selector, Template: deployment.Spec.Template,
	}}
	w.Eventually(func(g Gomega) {
		g.Expect(w.old.Create(ctx, deployment.DeepCopy(), client.DryRunAll)).To(Succeed())
		g.Expect(w.old.Create(ctx, set.DeepCopy(), client.DryRunAll)).To(Succeed())
		g.Expect(w.authorities(ctx, g)).To(And(HaveLen(1), Not(HaveKey(""))), "one authority for all kinds")
	}, patience, tick).Should(Succeed())
}

// authorities returns the CAs that the API server trusts for the conversion of Cluster API's kinds.
func (w converted) authorities(ctx context.Context, g Gomega) map[string]string {
	list, seen := &apiextensionsv1.CustomResourceDefinitionList{}, map[string]string{}
	g.Expect(w.stored.List(ctx, list, clusterAPI)).To(Succeed())
	for _, crd := range list.Items {
		seen[string(crd.Spec.Conversion.Webhook.ClientConfig.CABundle)] = crd.Name
	}
	return seen
}

// oldDeployment returns an object as a config operator of an OpenShift payload or an older Cluster API would write.
func oldDeployment(name string) *clusterv1beta1.MachineDeployment {
	return &clusterv1beta1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: clusterv1beta1.MachineDeploymentSpec{
			ClusterName: "demo", Replicas: ptr.To[int32](2),
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": name}},
			Template: clusterv1beta1.MachineTemplateSpec{
				ObjectMeta: clusterv1beta1.ObjectMeta{Labels: map[string]string{"pool": name}},
				Spec: clusterv1beta1.MachineSpec{
					ClusterName: "demo", Version: ptr.To("v1.36.3"), NodeDrainTimeout: &metav1.Duration{Duration: 90e9},
					Bootstrap:         clusterv1beta1.Bootstrap{DataSecretName: ptr.To("user-data")},
					InfrastructureRef: corev1.ObjectReference{APIVersion: "infrastructure.cluster.x-k8s.io/v1beta1", Kind: "MaasMachineTemplate", Name: "t", Namespace: "default"},
				},
			},
		},
	}
}

func TestConversion(t *testing.T) {
	w := newConverted(t)
	stop := serve(t, w.config, w.port)
	second := serve(t, w.config, testenv.FreePort(t))
	ctx := t.Context()
	w.awaitConversion(ctx)
	key := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: "default", Name: name} }

	t.Run("When an object is written as v1beta1, it should read as v1beta2 and back as v1beta1 without loss", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.old.Create(ctx, oldDeployment("old"))).To(Succeed())
		stored := &clusterv1.MachineDeployment{}
		g.Expect(w.stored.Get(ctx, key("old"), stored)).To(Succeed())
		g.Expect(stored.Spec.Template.Spec.InfrastructureRef).To(Equal(clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "MaasMachineTemplate", Name: "t",
		}))
		g.Expect(stored.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds).To(HaveValue(BeEquivalentTo(90)))
		again := &clusterv1beta1.MachineDeployment{}
		g.Expect(w.old.Get(ctx, key("old"), again)).To(Succeed())
		g.Expect(again.Spec.Template.Spec).To(Equal(oldDeployment("old").Spec.Template.Spec))
	})

	t.Run("When an object is written as v1beta2, a v1beta1 watch should report it with v1beta1 references", func(t *testing.T) {
		g := NewWithT(t)
		watching, err := client.NewWithWatch(w.config, client.Options{Scheme: w.old.Scheme()})
		g.Expect(err).NotTo(HaveOccurred())
		watch, err := watching.Watch(ctx, &clusterv1beta1.MachineSetList{}, client.InNamespace("default"))
		g.Expect(err).NotTo(HaveOccurred())
		defer watch.Stop()
		set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "new"}, Spec: clusterv1.MachineSetSpec{
			ClusterName: "demo", Replicas: ptr.To[int32](1), Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"a": "b"}},
				Spec: clusterv1.MachineSpec{
					ClusterName: "demo", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("user-data")},
					InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "MaasMachineTemplate", Name: "t"},
				},
			},
		}}
		g.Expect(w.stored.Create(ctx, set)).To(Succeed())
		event := <-watch.ResultChan()
		got, ok := event.Object.(*clusterv1beta1.MachineSet)
		g.Expect(ok).To(BeTrue(), "%v", event)
		g.Expect(got.Spec.Template.Spec.InfrastructureRef.GroupVersionKind()).To(Equal(
			schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Kind: "MaasMachineTemplate"}))
	})

	t.Run("When a CRD is reinstalled, it should set the CA bundle again", func(t *testing.T) {
		g := NewWithT(t)
		g.Eventually(func() error {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := w.stored.Get(ctx, client.ObjectKey{Name: crds.Names(crds.ClusterAPI)[0]}, crd); err != nil {
				return err
			}
			crd.Spec.Conversion.Webhook.ClientConfig.CABundle = nil
			return w.stored.Update(ctx, crd)
		}, patience, tick).Should(Succeed())
		g.Eventually(func(g Gomega) {
			g.Expect(w.authorities(ctx, g)).NotTo(HaveKey(""), "nothing else would tell of it for twelve hours")
		}, patience, tick).Should(Succeed())
	})

	t.Run("When the CA is replaced, conversion should work with every replica", func(t *testing.T) {
		g := NewWithT(t)
		before := w.authorities(ctx, g)
		g.Expect(w.stored.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: caSecret}})).To(Succeed())
		g.Eventually(func(g Gomega) {
			g.Expect(w.old.Get(ctx, key("old"), &clusterv1beta1.MachineDeployment{})).To(Succeed())
			after := w.authorities(ctx, g)
			g.Expect(after).To(HaveLen(1))
			for bundle := range after {
				g.Expect(before).NotTo(HaveKey(bundle))
			}
		}, patience, tick).Should(Succeed())
	})

	t.Run("When the operator is down, v1beta2 clients should still work", func(t *testing.T) {
		g := NewWithT(t)
		stop()
		second()
		g.Eventually(func() error { return w.old.Get(ctx, key("new"), &clusterv1beta1.MachineSet{}) }, patience, tick).ShouldNot(Succeed())
		set := &clusterv1.MachineSet{}
		g.Expect(w.stored.Get(ctx, key("new"), set)).To(Succeed())
		set.Spec.Replicas = ptr.To[int32](3)
		g.Expect(w.stored.Update(ctx, set)).To(Succeed())
		deployment := &clusterv1.MachineDeployment{}
		g.Expect(w.stored.Get(ctx, key("old"), deployment)).To(Succeed())
		deployment.Spec.Replicas = ptr.To[int32](5)
		g.Expect(w.stored.Update(ctx, deployment)).To(Succeed(), "also of what was written as v1beta1")
		g.Expect(w.stored.Delete(ctx, deployment)).To(Succeed())
	})
}
