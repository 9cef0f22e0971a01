// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	kubevirtv1 "github.com/openshift/hypershift/api/kubevirt/v1alpha1"
	"github.com/openshift/hypershift/api/util/contract"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

// TestCacheVolume checks that the data importer fetches the disk at once and keeps it, on the same storage as the
// virtual machines' own disks.
func TestCacheVolume(t *testing.T) {
	source := map[string]any{"registry": map[string]any{"url": "docker://" + payloadDisk, "pullMethod": "node"}}
	for _, tc := range []struct {
		name   string
		volume *hyperv1.KubevirtPersistentVolume
		want   map[string]any
	}{
		{"When the storage is not set, it should use the cluster's defaults", nil, map[string]any{"preallocation": true, "source": source}},
		{"When the storage is set, it should use its settings", &hyperv1.KubevirtPersistentVolume{StorageClass: ptr.To("fast"), VolumeMode: ptr.To("Block"),
			AccessModes: []hyperv1.PersistentVolumeAccessMode{"ReadWriteMany", "ReadOnlyMany"}}, map[string]any{"preallocation": true, "source": source,
			"storage": map[string]any{"storageClassName": "fast", "volumeMode": "Block", "accessModes": []any{"ReadWriteMany", "ReadOnlyMany"},
				"resources": map[string]any{"requests": map[string]any{"storage": "32Gi"}}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, a := NewWithT(t), newAbroad(t)
			pool := keepingPool(elsewhere(), "")
			pool.NodePool.Spec.Platform.Kubevirt.RootVolume.Persistent = tc.volume
			kept, err := a.KeepImage(t.Context(), a.here, pool)
			g.Expect(err).NotTo(HaveOccurred())
			made := volume("vms", kept.Status.KubeVirt.CacheName, "", "")
			g.Expect(a.there.Get(t.Context(), client.ObjectKeyFromObject(made), made)).To(Succeed())
			if diff := cmp.Diff(tc.want, made.Object["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			g.Expect(made.GetAnnotations()).To(And(HaveKeyWithValue("cdi.kubevirt.io/storage.bind.immediate.requested", "true"),
				HaveKeyWithValue("cdi.kubevirt.io/storage.deleteAfterCompletion", "false")))
			g.Expect(made.GetLabels()).To(HaveKeyWithValue("hypershift.openshift.io/is-kubevirt-rhcos", "true"), "the payload's operators know disks by it")
		})
	}
}

// TestCachesInAnyOrder checks that all reconciles choose the same volume, although the client's cache lists objects in
// any order.
func TestCachesInAnyOrder(t *testing.T) {
	g, turned := NewWithT(t), false
	c := interceptor.NewClient(otherCluster(t, volume("clusters-demo", "a", "pool-1", payloadDigest), volume("clusters-demo", "b", "pool-1", payloadDigest)), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			slices.Reverse(list.(*unstructured.UnstructuredList).Items)
			turned = true
			return err
		}})
	kept, err := (&Platform{}).KeepImage(t.Context(), c, keepingPool(nil, ""))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(turned).To(BeTrue())
	g.Expect(kept.Status.KubeVirt.CacheName).To(Equal("a"))
}

// TestWithoutEffect checks that a pool reports a cache strategy without effect, but not one that it does not set.
func TestWithoutEffect(t *testing.T) {
	named := func(strategy *hyperv1.KubevirtCachingStrategy) *hyperv1.KubevirtNodePoolPlatform {
		return &hyperv1.KubevirtNodePoolPlatform{RootVolume: &hyperv1.KubevirtRootVolume{CacheStrategy: strategy,
			Image: &hyperv1.KubevirtDiskImage{ContainerDiskImage: ptr.To("mine:1")}}}
	}
	for _, tc := range []struct {
		name  string
		block *hyperv1.KubevirtNodePoolPlatform
		want  []string
	}{
		{"When the pool has no KubeVirt block, it should report no field without effect", nil, nil},
		{"When the pool has no root volume, it should report no field without effect", &hyperv1.KubevirtNodePoolPlatform{}, nil},
		{"When the pool sets a disk and no cache strategy, it should report no field without effect", named(nil), nil},
		{"When the pool sets a disk and the cache strategy None, it should report no field without effect", named(&hyperv1.KubevirtCachingStrategy{Type: hyperv1.KubevirtCachingStrategyNone}), nil},
		{"When the pool sets a disk and a cache strategy, it should report the strategy as without effect", named(&hyperv1.KubevirtCachingStrategy{Type: hyperv1.KubevirtCachingStrategyPVC}),
			[]string{"platform.kubevirt.rootVolume.cacheStrategy"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pool := testPool(nil)
			pool.NodePool.Spec.Platform.Kubevirt = tc.block
			g := NewWithT(t)
			g.Expect((&Platform{}).WithoutEffect(pool.NodePool)).To(Equal(tc.want))
			kept, err := (&Platform{}).KeepImage(t.Context(), failingClient(otherCluster(t), "", unanswered), pool)
			g.Expect(err).NotTo(HaveOccurred(), "what has no effect calls nobody")
			g.Expect(kept.Status).To(BeNil())
		})
	}
}

// TestMovable checks what a pool reports about machines without live migration.
func TestMovable(t *testing.T) {
	machine := func(name string, status metav1.ConditionStatus, reason string) client.Object {
		return &kubevirtv1.KubevirtMachine{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: kubevirtv1.KubevirtMachineStatus{
			Conditions: []contract.Condition{{Type: "VMLiveMigratable", Status: status, Reason: reason, Message: "why " + name}}}}
	}
	for _, tc := range []struct {
		name     string
		machines []client.Object
		status   metav1.ConditionStatus
		reason   string
		message  string
	}{
		{"When several machines are not migratable for one reason, it should report that reason once", []client.Object{machine("b", "False", "Disk"), machine("a", "False", "Disk")}, "False", "Disk",
			"2 of 2 machines cannot be moved while they run\nMachine a: Disk: why a\nMachine b: Disk: why b"},
		{"When machines are not migratable for several reasons, it should report the reasons in order", []client.Object{machine("a", "False", "Network"), machine("b", "False", "Disk"), machine("c", "True", "")},
			"False", "Disk,Network", "2 of 3 machines cannot be moved while they run\nMachine a: Network: why a\nMachine b: Disk: why b"},
		{"When migratability is unknown, it should not report the machine", []client.Object{machine("a", "Unknown", "New"), &kubevirtv1.KubevirtMachine{}}, "True", "AsExpected", "All is well"},
		{"When an object is not a KubevirtMachine, it should ignore the object", []client.Object{&corev1.Pod{}}, "True", "AsExpected", "All is well"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			said := (&Platform{}).MachineConditions(tc.machines)
			g.Expect(said).To(ConsistOf(And(HaveField("Type", "KubeVirtNodesLiveMigratable"), HaveField("Status", tc.status), HaveField("Reason", tc.reason), HaveField("Message", tc.message))))
		})
	}
}

// TestOrphans checks why a deletion waits.
func TestOrphans(t *testing.T) {
	machine := func(name, namespace string, conditions ...contract.Condition) client.Object {
		return &kubevirtv1.KubevirtMachine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Status: kubevirtv1.KubevirtMachineStatus{Conditions: conditions}}
	}
	stuck := contract.Condition{Type: "Ready", Status: "False", Message: "the volume is in use"}
	for _, tc := range []struct {
		name    string
		cluster platform.Cluster
		objects []client.Object
		want    string
	}{
		{"When there are no machines, it should wait for nothing", testCluster(nil), nil, ""},
		{"When only another cluster has a machine, it should wait for nothing", testCluster(nil), []client.Object{machine("a", "clusters-other")}, ""},
		{"When there is one machine, it should name the machine", testCluster(nil), []client.Object{machine("a", "clusters-demo")}, "Waiting for 1 virtual machine to be deleted; KubevirtMachine a"},
		{"When there are several machines, it should count them and repeat the provider's message for one", testCluster(nil),
			[]client.Object{machine("a", "clusters-demo", stuck), machine("b", "clusters-demo")},
			"Waiting for 2 virtual machines to be deleted; KubevirtMachine a: the volume is in use"},
		{"When the machines are in an external cluster, it should name the kubeconfig that deletes them", testCluster(elsewhere()), []client.Object{machine("a", "clusters-demo", stuck)},
			"Waiting for 1 virtual machine to be deleted; KubevirtMachine a by the kubeconfig of Secret clusters/infra: the volume is in use"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect((&Platform{}).OrphanedMachines(t.Context(), testClient(t, tc.objects...), tc.cluster)).To(Equal(tc.want))
		})
	}
	_, err := (&Platform{}).OrphanedMachines(t.Context(), failingClient(testClient(t).(client.WithWatch), "list", unanswered), testCluster(nil))
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("listing KubevirtMachines of namespace clusters-demo")))
}

// TestPatchedText checks that the template is always in the API server's canonical form, however a user writes a
// patch. Otherwise every reconcile would write it again.
func TestPatchedText(t *testing.T) {
	pool := testPool(nil)
	pool.HostedCluster = testCluster(elsewhere()).HostedCluster
	pool.NodePool.Annotations = map[string]string{hyperv1.JSONPatchAnnotation: `[{"op":"add","path":"/spec/zone","value":{"b":1,"a":2}},{"op":"add","path":"/spec/another","value":true}]`}
	g := NewWithT(t)
	raw := (&Platform{}).MachineTemplate(pool).(*kubevirtv1.KubevirtMachineTemplate).Spec.Template.Spec.VirtualMachineTemplate.Spec.Raw
	var spec map[string]any
	g.Expect(json.Unmarshal(raw, &spec)).To(Succeed())
	g.Expect(spec).To(And(HaveKey("zone"), HaveKey("another"), HaveKey("runStrategy")))
	again, err := json.Marshal(spec)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(raw)).To(Equal(string(again)))
}

// TestRollingTemplate checks that a template of another platform, or one that cannot be parsed, is compared unchanged.
func TestRollingTemplate(t *testing.T) {
	g, p := NewWithT(t), &Platform{}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	g.Expect(p.RollingTemplate(pod)).To(BeIdenticalTo(pod))
	for what, raw := range map[string]string{"no JSON": "{", "a list": "[]", "volumes that are none": `{"dataVolumeTemplates":["a",1]}`, "no volumes": `{"runStrategy":"Always"}`} {
		template := &kubevirtv1.KubevirtMachineTemplate{}
		template.Spec.Template.Spec.VirtualMachineTemplate.Spec = runtime.RawExtension{Raw: []byte(raw)}
		g.Expect(p.RollingTemplate(template)).To(Equal(template), what)
	}
	made := p.MachineTemplate(cachedPool("kv-boot-image-cache-a"))
	before := made.DeepCopyObject()
	p.RollingTemplate(made)
	g.Expect(made).To(Equal(before), "the template itself keeps the name")
}

// TestProviderWithItsOwnName checks that the provider is deployed under the common name of all providers.
func TestProviderWithItsOwnName(t *testing.T) {
	g := NewWithT(t)
	provider := (&Platform{}).Provider(testCluster(nil))
	g.Expect(provider.Name).To(Equal(platform.ProviderName))
	for _, name := range []string{"deployment.yaml", "role.yaml"} {
		file, err := provider.Manifests.Open(name)
		g.Expect(err).NotTo(HaveOccurred(), name)
		g.Expect(file.Close()).To(Succeed())
	}
}
