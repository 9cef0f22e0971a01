// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/hypershift-operator/platform/registry"
)

func lower(platformType hyperv1.PlatformType) string { return strings.ToLower(string(platformType)) }

// nodePort returns a port that depends only on the namespace.
func nodePort(namespace string) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(namespace))
	return 30000 + int32(h.Sum32()%2700)
}

// made expects the objects that the provider reconciles, or none if the platform creates no machines.
func made(w *world) {
	w.Expect(w.condition(hyperv1.SupportedHostedCluster).Status).To(Equal(metav1.ConditionTrue))
	w.Expect(w.condition(hyperv1.ValidHostedClusterConfiguration).Status).To(Equal(metav1.ConditionTrue))
	w.Expect(w.condition(hyperv1.PlatformCredentialsFound).Status).To(Equal(metav1.ConditionTrue))
	cluster := &clusterv1.Cluster{}
	err := w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.hosted(), Name: infraID}, cluster)
	if w.subject.Plugin.MachineTemplates() == nil {
		w.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the platform creates no machines")
		return
	}
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(cluster.Spec.ControlPlaneRef.Kind).To(Equal("HostedControlPlane"))
	w.Expect(w.kindsOfPlugin()).To(ContainElement(cluster.Spec.InfrastructureRef.Kind))
	for _, name := range []string{"cluster-api", platform.ProviderName} {
		w.Expect(w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.hosted(), Name: name}, &appsv1.Deployment{})).To(Succeed())
	}
	w.Expect(w.machines().InfrastructureRef.Name).To(Equal(w.templates()[0].GetName()))
	w.Expect(w.machines().Bootstrap.DataSecretName).NotTo(BeNil())
}

// machines returns the machine spec of the pool's MachineDeployment or MachineSet.
func (w *world) machines() clusterv1.MachineSpec {
	w.t.Helper()
	key := client.ObjectKey{Namespace: w.hosted(), Name: fixture.PoolName}
	deployment, set := &clusterv1.MachineDeployment{}, &clusterv1.MachineSet{}
	if err := w.admin.Get(w.t.Context(), key, deployment); err == nil {
		return deployment.Spec.Template.Spec
	}
	w.Expect(w.admin.Get(w.t.Context(), key, set)).To(Succeed())
	return set.Spec.Template.Spec
}

func (w *world) kindsOfPlugin() []string {
	var kinds []string
	for _, obj := range w.subject.Plugin.Watched() {
		gvk, err := apiutil.GVKForObject(obj, w.admin.Scheme())
		w.Expect(err).NotTo(HaveOccurred())
		kinds = append(kinds, gvk.Kind)
	}
	return kinds
}

// templates returns the platform's templates in the hosted control plane namespace.
func (w *world) templates() []client.Object {
	w.t.Helper()
	list := w.subject.Plugin.MachineTemplates()
	w.Expect(w.admin.List(w.t.Context(), list, client.InNamespace(w.hosted()))).To(Succeed())
	items, err := meta.ExtractList(list)
	w.Expect(err).NotTo(HaveOccurred())
	var templates []client.Object
	for _, item := range items {
		templates = append(templates, item.(client.Object))
	}
	return templates
}

func settled(w *world) {
	operator := w.clusters.LiveReader.(client.WithWatch)
	counted := fixture.NewFaulty(operator)
	w.act(counted)
	w.settle()
	w.Expect(counted.Log).To(BeEmpty())
	w.act(operator)
}

func paused(w *world) {
	pause := func(until *string) {
		hc, pool := w.cluster(), w.pool()
		hc.Spec.PausedUntil, pool.Spec.PausedUntil = until, until
		w.Expect(w.admin.Update(w.t.Context(), hc)).To(Succeed())
		w.Expect(w.admin.Update(w.t.Context(), pool)).To(Succeed())
		w.settle()
	}
	isPaused := func() bool {
		cluster := &clusterv1.Cluster{}
		w.Expect(w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.hosted(), Name: infraID}, cluster)).To(Succeed())
		return ptr.Deref(cluster.Spec.Paused, false)
	}
	pause(ptr.To("true"))
	if w.subject.Plugin.MachineTemplates() != nil {
		w.Expect(isPaused()).To(BeTrue())
	}
	w.Expect(w.condition(hyperv1.ReconciliationActive).Status).To(Equal(metav1.ConditionFalse))
	pause(nil)
	if w.subject.Plugin.MachineTemplates() != nil {
		w.Expect(isPaused()).To(BeFalse())
	}
	w.Expect(w.condition(hyperv1.ReconciliationActive).Status).To(Equal(metav1.ConditionTrue))
}

func (w *world) pool() *hyperv1.NodePool {
	w.t.Helper()
	pool := &hyperv1.NodePool{}
	w.Expect(w.admin.Get(w.t.Context(), w.key(fixture.PoolName), pool)).To(Succeed())
	return pool
}

// rolled changes the pool while a MachineSet still has machines of the first template.
func rolled(w *world) {
	if w.subject.Roll == nil {
		w.Expect(w.subject.Plugin.MachineTemplates()).To(BeNil(), "a platform that makes machines says what rolls them")
		return
	}
	first := w.templates()
	w.Expect(first).To(HaveLen(1))
	older := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.hosted(), Name: "older"}, Spec: clusterv1.MachineSetSpec{
		ClusterName: infraID, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"set": "older"}},
		Template: clusterv1.MachineTemplateSpec{ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"set": "older"}}, Spec: w.machines()},
	}}
	older.Spec.Template.Spec.ClusterName = infraID
	w.Expect(w.admin.Create(w.t.Context(), older)).To(Succeed())
	pool := w.pool()
	w.subject.Roll(pool)
	w.Expect(w.admin.Update(w.t.Context(), pool)).To(Succeed())
	w.settle()
	w.Expect(w.templates()).To(HaveLen(2))
	kept := w.templates()[slices.IndexFunc(w.templates(), func(o client.Object) bool { return o.GetName() == first[0].GetName() })]
	w.Expect(kept).To(Equal(first[0]), "a template that machines were made from never changes")
	w.Expect(w.machines().InfrastructureRef.Name).NotTo(Equal(first[0].GetName()))

	w.Expect(w.admin.Delete(w.t.Context(), older)).To(Succeed())
	w.settle()
	w.Expect(w.templates()).To(HaveLen(1))
	w.Expect(w.templates()[0].GetName()).To(Equal(w.machines().InfrastructureRef.Name))
}

// rotationTimeout is longer than any platform keeps using its previous credentials. KubeVirt does so for 10 s.
const rotationTimeout = time.Minute

// rotated changes the user's Secret and expects a changed hash, which rolls the pods of a provider.
func rotated(w *world) {
	name := w.subject.Plugin.CredentialsSecret(w.cluster())
	if w.subject.Rotate == nil {
		w.Expect(name).To(BeEmpty(), "a platform with credentials says how they change")
		return
	}
	hash := func(g Gomega) string {
		credentials, err := w.subject.Plugin.ReconcileCredentials(w.t.Context(), w.clusters.Client, platform.Cluster{
			HostedCluster: w.cluster(), Namespace: w.hosted(), OperatorImage: operatorImage})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(credentials.Condition.Status).To(Equal(metav1.ConditionTrue), credentials.Condition.Message)
		return credentials.Hash
	}
	before, after := hash(w), ""
	secret := &corev1.Secret{}
	w.Expect(w.admin.Get(w.t.Context(), w.key(name), secret)).To(Succeed())
	w.subject.Rotate(secret)
	w.Expect(w.admin.Update(w.t.Context(), secret)).To(Succeed())
	// A platform may use its current credentials for some time.
	w.Eventually(func(g Gomega) { after = hash(g) }).WithTimeout(rotationTimeout).Should(Succeed())
	w.Expect(after).NotTo(Equal(before))
	w.settle()
}

// leastRights checks the provider's rights in the hosted control plane namespace. The operator created all objects with
// its own rights.
func leastRights(w *world) {
	role := &rbacv1.Role{}
	err := w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.hosted(), Name: platform.ProviderName}, role)
	if w.subject.Plugin.MachineTemplates() == nil {
		w.Expect(apierrors.IsNotFound(err)).To(BeTrue())
		return
	}
	w.Expect(err).NotTo(HaveOccurred())
	for _, rule := range role.Rules {
		w.Expect(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs)).NotTo(ContainElement("*"))
	}
}

func deleted(w *world) {
	w.outsideIsThere()
	w.Expect(w.admin.Delete(w.t.Context(), w.pool())).To(Succeed())
	w.destroy()
	if w.subject.Plugin.MachineTemplates() != nil {
		w.Expect(w.templates()).To(BeEmpty())
	}
	w.nothingOutside()
}

// destroy deletes the cluster and finalizes its namespace, because no namespace controller runs here.
func (w *world) destroy() {
	w.t.Helper()
	w.Expect(w.admin.Delete(w.t.Context(), w.cluster())).To(Succeed())
	for range 4 * settlingPasses {
		w.pass()
		namespace := &corev1.Namespace{}
		if err := w.admin.Get(w.t.Context(), client.ObjectKey{Name: w.hosted()}, namespace); err == nil && namespace.DeletionTimestamp != nil {
			namespace.Spec.Finalizers = nil
			w.Expect(w.admin.SubResource("finalize").Update(w.t.Context(), namespace)).To(Succeed())
		}
	}
	err := w.admin.Get(w.t.Context(), w.key(fixture.ClusterName), &hyperv1.HostedCluster{})
	w.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the HostedCluster is still there: %v", err)
	err = w.admin.Get(w.t.Context(), w.key(fixture.PoolName), &hyperv1.NodePool{})
	w.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the NodePool is still there: %v", err)
}

// nothingOutside expects that the plugin's objects outside the hosted control plane namespace are deleted.
func (w *world) nothingOutside() {
	w.t.Helper()
	for _, obj := range w.subject.Outside {
		obj := obj.DeepCopyObject().(client.Object)
		obj.SetName(strings.ReplaceAll(obj.GetName(), "HOSTED", w.hosted()))
		err := w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj)
		w.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%T %s is left", obj, obj.GetName())
	}
}

// outsideIsThere expects that the same objects exist before the deletion. Otherwise their later absence would prove
// nothing.
func (w *world) outsideIsThere() {
	w.t.Helper()
	for _, obj := range w.subject.Outside {
		obj := obj.DeepCopyObject().(client.Object)
		obj.SetName(strings.ReplaceAll(obj.GetName(), "HOSTED", w.hosted()))
		w.Expect(w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	}
}

// withoutKinds creates a cluster, then restarts the operator without the platform's kinds.
func withoutKinds(t *testing.T, admin, operator client.WithWatch, s Subject) {
	if len(s.Plugin.CRDs()) == 0 {
		return
	}
	w := newWorld(t, admin, operator, s, "bare")
	w.create()
	w.outsideIsThere()
	for _, template := range w.templates() {
		w.Expect(admin.Delete(t.Context(), template)).To(Succeed())
	}
	plugins := registry.Of(map[hyperv1.PlatformType]platform.Platform{s.Type: s.Plugin})
	blind := interceptor.NewClient(operator, w.unserved())
	w.Expect(plugins.SwitchOff(t.Context(), blind)).To(Succeed())
	w.clusters.Platforms, w.pools.Platforms = plugins, plugins
	w.act(blind)
	w.settle()
	told := w.condition(hyperv1.SupportedHostedCluster)
	w.Expect(told.Status).To(Equal(metav1.ConditionFalse))
	w.Expect(told.Message).To(And(ContainSubstring(s.Plugin.CRDs()[0]), ContainSubstring("hypershift install")))

	w.Expect(admin.Delete(t.Context(), w.pool())).To(Succeed())
	w.destroy()
	w.nothingOutside()
}

// unserved returns the errors of an API server that does not serve the platform's kinds.
func (w *world) unserved() interceptor.Funcs {
	refused := func(obj any) error {
		crds := w.subject.Plugin.CRDs()
		if named, ok := obj.(client.ObjectKey); ok && slices.Contains(crds, named.Name) {
			return apierrors.NewNotFound(corev1.Resource("customresourcedefinitions"), named.Name)
		}
		typed, ok := obj.(client.Object)
		if !ok {
			return nil
		}
		gvk, err := apiutil.GVKForObject(typed, w.admin.Scheme())
		if err == nil && slices.Contains(crds, strings.ToLower(gvk.Kind)+"s."+gvk.Group) {
			return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
		}
		return nil
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := refused(key); err != nil {
				return err
			}
			if err := refused(obj); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			gvk, err := apiutil.GVKForObject(list, w.admin.Scheme())
			kind := strings.ToLower(strings.TrimSuffix(gvk.Kind, "List"))
			if err == nil && slices.Contains(w.subject.Plugin.CRDs(), kind+"s."+gvk.Group) {
				return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
			}
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := refused(obj); err != nil {
				return err
			}
			return c.Create(ctx, obj, opts...)
		},
	}
}
