// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	kubevirtv1 "github.com/openshift/hypershift/api/kubevirt/v1alpha1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	kubevirtplugin "github.com/openshift/hypershift/hypershift-operator/platform/kubevirt"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// elsewhere is a cluster whose virtual machines and cached disk image are in an external cluster with its own API
// server.
type elsewhere struct {
	*world
	infra    *fixture.Infra
	clock    *testingclock.FakePassiveClock
	payloads fixture.Releases
}

func newElsewhere(t *testing.T, infra *fixture.Infra, prefix string) *elsewhere {
	t.Helper()
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	plugin, err := (&kubevirtplugin.Options{AllowCIDRs: "127.0.0.0/8", Clock: clock, Timeout: time.Minute}).New(platform.Environment{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	admin, operator := fixture.Start(t), fixture.AsOperator(t)
	s := kubevirt(infra, prefix+"-kubevirt")
	s.Plugin = plugin
	s.Pool = func(pool *hyperv1.NodePool) {
		pool.Spec.Platform.Kubevirt = &hyperv1.KubevirtNodePoolPlatform{RootVolume: &hyperv1.KubevirtRootVolume{
			CacheStrategy: &hyperv1.KubevirtCachingStrategy{Type: hyperv1.KubevirtCachingStrategyPVC},
			KubevirtVolume: hyperv1.KubevirtVolume{Persistent: &hyperv1.KubevirtPersistentVolume{
				StorageClass: ptr.To("fast"), AccessModes: []hyperv1.PersistentVolumeAccessMode{"ReadWriteMany"}}}}}
	}
	e := &elsewhere{world: newWorld(t, admin, operator, s, prefix), infra: infra, clock: clock, payloads: fixture.Payloads()}
	e.clusters.Releases, e.pools.Releases = e.payloads, e.payloads
	e.disk("sha256:12")
	return e
}

// disk sets the disk image that the release refers to.
func (e *elsewhere) disk(digest string) {
	var intel releaseinfo.BootArchitecture
	intel.Images.KubeVirt = releaseinfo.BootImage{DigestRef: "registry.example/rhcos@" + digest}
	e.payloads[fixture.ReleaseImage] = releaseinfo.New(fixture.ReleaseImage, releaseinfo.Payload{
		Version: "1.36.3", Distribution: releaseinfo.Kubernetes, Architecture: "amd64",
		Components: map[string]string{"cluster-capi-controllers": "registry.example/capi:1", "kube-apiserver": "registry.example/kube-apiserver:1"},
		BootImages: releaseinfo.BootImages{Architectures: map[string]releaseinfo.BootArchitecture{"x86_64": intel}},
	})
}

// later advances the clock until all cached findings have expired.
func (e *elsewhere) later() {
	e.clock.SetTime(e.clock.Now().Add(10 * time.Minute))
	e.settle()
}

func (e *elsewhere) volumes() []unstructured.Unstructured {
	e.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "DataVolumeList"})
	e.Expect(e.infra.Admin.List(e.t.Context(), list, client.InNamespace(fixture.InfraNamespace))).To(Succeed())
	return list.Items
}

func (e *elsewhere) policy() (*networkingv1.NetworkPolicy, error) {
	policy := &networkingv1.NetworkPolicy{}
	return policy, e.infra.Admin.Get(e.t.Context(), client.ObjectKey{Namespace: fixture.InfraNamespace, Name: "virt-launcher-" + infraID}, policy)
}

// useKubeconfig changes the user's Secret. It advances the clock first, because the operator delays the use of a
// kubeconfig that has changed twice within seconds.
func (e *elsewhere) useKubeconfig(user string) {
	e.t.Helper()
	e.clock.SetTime(e.clock.Now().Add(time.Minute))
	secret := &corev1.Secret{}
	e.Expect(e.admin.Get(e.t.Context(), e.key("infra"), secret)).To(Succeed())
	secret.Data["kubeconfig"] = e.infra.Kubeconfig(user)
	e.Expect(e.admin.Update(e.t.Context(), secret)).To(Succeed())
	e.settle()
}

func (e *elsewhere) poolSays(conditionType string) hyperv1.NodePoolCondition {
	e.t.Helper()
	for _, c := range e.pool().Status.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	e.t.Fatalf("the NodePool has no condition %s", conditionType)
	return hyperv1.NodePoolCondition{}
}

func (e *elsewhere) in(t *testing.T) *elsewhere {
	view := *e
	view.world = e.world.in(t)
	return &view
}

// TestVirtualMachinesElsewhere checks, on a second API server, what the operator creates and deletes there.
func TestVirtualMachinesElsewhere(t *testing.T) {
	infra := fixture.InfraElsewhere(t)
	e := newElsewhere(t, infra, "elsewhere")
	e.create()
	for _, scenario := range []struct {
		name string
		run  func(*elsewhere)
	}{
		{"When a pool caches its disk image, it should create a DataVolume in the external cluster and report its name", imageKept},
		{"When nothing changes, it should write nothing and make no calls to the external cluster", leftAlone},
		{"When the kubeconfig may read the cluster's networks, the policy should block virtual machines from them", networksBlocked},
		{"When the release has another disk image, it should replace the cached one", imageReplaced},
		{"When a cached disk is deleted, it should create another one and no new machine template", imageComesBack},
		{"When the external cluster runs an old KubeVirt version, it should report it", oldKubeVirt},
		{"When the kubeconfig is rejected, it should report it and keep the machines", unauthorized},
		{"When the kubeconfig lacks permissions, it should report which are missing", forbidden},
		{"When the external cluster is down, it should report it and not retry immediately", unreachable},
		{"When objects are deleted while the external cluster is down, it should report the wait and clean up later", goneInTheEnd},
	} {
		if !t.Run(scenario.name, func(t *testing.T) { scenario.run(e.in(t)) }) {
			return // The following scenarios depend on this one.
		}
	}
}

func imageKept(e *elsewhere) {
	e.Expect(e.volumes()).To(HaveLen(1))
	volume, pool := e.volumes()[0], e.pool()
	e.Expect(volume.GetName()).To(HavePrefix("kv-boot-image-cache-"))
	e.Expect(volume.GetLabels()).To(Equal(map[string]string{
		"hypershift.openshift.io/kubevirt-boot-image-role": "kv-boot-image-cache", "hypershift.openshift.io/nodepool-uid": string(pool.UID),
		"hypershift.openshift.io/is-kubevirt-rhcos": "true",
	}))
	e.Expect(volume.GetAnnotations()).To(Equal(map[string]string{
		"hypershift.openshift.io/kubevirt-boot-image-hash": "sha256:12",
		"cdi.kubevirt.io/storage.bind.immediate.requested": "true", "cdi.kubevirt.io/storage.deleteAfterCompletion": "false",
	}))
	want := map[string]any{
		"preallocation": true,
		"source":        map[string]any{"registry": map[string]any{"url": "docker://registry.example/rhcos@sha256:12", "pullMethod": "node"}},
		"storage": map[string]any{"storageClassName": "fast", "accessModes": []any{"ReadWriteMany"},
			"resources": map[string]any{"requests": map[string]any{"storage": "32Gi"}}},
	}
	if diff := cmp.Diff(want, volume.Object["spec"]); diff != "" {
		e.t.Errorf("DataVolume (-want +got):\n%s", diff)
	}
	e.Expect(pool.Status.Platform.KubeVirt.CacheName).To(Equal(volume.GetName()))
	e.Expect(pool.Status.Platform.KubeVirt.Credentials).To(Equal(e.cluster().Spec.Platform.Kubevirt.Credentials))
	e.Expect(e.poolSays(hyperv1.NodePoolValidPlatformImageType)).To(And(HaveField("Status", corev1.ConditionTrue),
		HaveField("Message", "Bootstrap KubeVirt Image is registry.example/rhcos@sha256:12")))
	e.Expect(e.source()).To(Equal(map[string]any{"pvc": map[string]any{"namespace": fixture.InfraNamespace, "name": volume.GetName()}}))
	e.Expect(e.condition(hyperv1.PlatformCredentialsFound).Status).To(Equal(metav1.ConditionTrue))
	e.Expect(e.condition(hyperv1.ValidKubeVirtInfraNetworkPolicyRBAC).Reason).To(Equal("InfraClusterNetworkReadFailed"))
	policy, err := e.policy()
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(policy.Spec.PodSelector.MatchLabels).To(Equal(map[string]string{"hypershift.openshift.io/infra-id": infraID, "kubevirt.io": "virt-launcher"}))
	e.Expect(policy.Spec.Egress[0].To[0].IPBlock.Except).To(BeEmpty())
	e.Expect(policy.Spec.Egress[1].To[0].IPBlock.CIDR).To(Equal("172.30.240.1/32"), "services are published there")
}

// source returns the source of the machines' disks.
func (e *elsewhere) source() any {
	e.t.Helper()
	e.Expect(e.templates()).To(HaveLen(1))
	raw, err := e.templates()[0].(*kubevirtv1.KubevirtMachineTemplate).Spec.Template.Spec.VirtualMachineTemplate.Spec.MarshalJSON()
	e.Expect(err).NotTo(HaveOccurred())
	vm := &unstructured.Unstructured{}
	e.Expect(vm.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"VM","spec":` + string(raw) + `}`))).To(Succeed())
	volumes, _, err := unstructured.NestedSlice(vm.Object, "spec", "dataVolumeTemplates")
	e.Expect(err).NotTo(HaveOccurred())
	source, _, err := unstructured.NestedMap(volumes[0].(map[string]any), "spec", "source")
	e.Expect(err).NotTo(HaveOccurred())
	return source
}

func leftAlone(e *elsewhere) {
	before := e.infra.Calls.Load()
	settled(e.world)
	e.Expect(e.infra.Calls.Load()).To(Equal(before))
}

func networksBlocked(e *elsewhere) {
	e.infra.Networks.Store(ptr.To(`{"apiVersion":"config.openshift.io/v1","kind":"Network","metadata":{"name":"cluster"},
		"spec":{"clusterNetwork":[{"cidr":"10.128.0.0/14"},{"cidr":"fd01::/48"}],"serviceNetwork":["172.30.0.0/16"]}}`))
	e.later()
	e.Expect(e.condition(hyperv1.ValidKubeVirtInfraNetworkPolicyRBAC).Status).To(Equal(metav1.ConditionTrue))
	policy, err := e.policy()
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(policy.Spec.Egress[0].To[0].IPBlock.Except).To(ConsistOf("10.128.0.0/14", "172.30.0.0/16"))
	e.Expect(policy.Spec.Egress[0].To[1].IPBlock.Except).To(ConsistOf("fd01::/48"))
}

func imageReplaced(e *elsewhere) {
	first := e.volumes()[0].GetName()
	e.disk("sha256:34")
	e.settle()
	e.Expect(e.volumes()).To(HaveLen(1))
	e.Expect(e.volumes()[0].GetName()).NotTo(Equal(first))
	e.Expect(e.volumes()[0].GetAnnotations()).To(HaveKeyWithValue("hypershift.openshift.io/kubevirt-boot-image-hash", "sha256:34"))
	e.Expect(e.pool().Status.Platform.KubeVirt.CacheName).To(Equal(e.volumes()[0].GetName()))
}

func imageComesBack(e *elsewhere) {
	volume, template := e.volumes()[0], e.templates()[0].GetName()
	e.Expect(e.infra.Admin.Delete(e.t.Context(), &volume)).To(Succeed())
	e.later()
	e.Expect(e.volumes()).To(HaveLen(1))
	e.Expect(e.source()).To(Equal(map[string]any{"pvc": map[string]any{"namespace": fixture.InfraNamespace, "name": e.volumes()[0].GetName()}}))
	e.Expect(e.templates()[0].GetName()).To(Equal(template))
}

func oldKubeVirt(e *elsewhere) {
	for version, says := range map[string]string{"v0.59.2": "runs KubeVirt 0.59.2: it must be 1.0.0 or newer", "": "KubeVirt does not run"} {
		e.infra.KubeVirt.Store(&version)
		e.later()
		e.Expect(e.condition(hyperv1.PlatformCredentialsFound)).To(And(HaveField("Reason", "InfraClusterVersionUnsupported"), HaveField("Message", ContainSubstring(says))))
	}
	e.infra.KubeVirt.Store(ptr.To("v1.0.0-beta.1"))
	e.later()
	e.Expect(e.condition(hyperv1.PlatformCredentialsFound).Status).To(Equal(metav1.ConditionTrue))
}

func unauthorized(e *elsewhere) {
	made := e.machines()
	e.useKubeconfig("nobody")
	e.Expect(e.condition(hyperv1.PlatformCredentialsFound)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "InfraClusterUnauthorized"),
		HaveField("Message", ContainSubstring("Secret elsewhere-kubevirt/infra"))))
	e.Expect(e.poolSays(hyperv1.NodePoolValidPlatformImageType).Reason).To(Equal("InfraClusterUnauthorized"))
	e.Expect(e.machines()).To(Equal(made))
	e.Expect(e.volumes()).To(HaveLen(1))
}

func forbidden(e *elsewhere) {
	e.useKubeconfig(fixture.InfraStranger)
	e.Expect(e.condition(hyperv1.PlatformCredentialsFound).Status).To(Equal(metav1.ConditionTrue), "it is a kubeconfig")
	e.Expect(e.poolSays(hyperv1.NodePoolValidPlatformImageType)).To(And(HaveField("Reason", "InfraClusterForbidden"), HaveField("Message", ContainSubstring("datavolumes"))))
	e.Expect(e.condition(hyperv1.ValidKubeVirtInfraNetworkPolicyRBAC)).To(And(HaveField("Reason", "InfraClusterNetworkPolicyCreateFailed"),
		HaveField("Message", ContainSubstring("networkpolicies"))))
	e.useKubeconfig(fixture.InfraUser)
	e.Expect(e.poolSays(hyperv1.NodePoolValidPlatformImageType).Status).To(Equal(corev1.ConditionTrue))
	e.Expect(e.condition(hyperv1.ValidKubeVirtInfraNetworkPolicyRBAC).Status).To(Equal(metav1.ConditionTrue))
}

func unreachable(e *elsewhere) {
	e.infra.Down.Store(true)
	e.later()
	e.Expect(e.condition(hyperv1.PlatformCredentialsFound).Reason).To(Equal("InfraClusterUnreachable"))
	e.Expect(e.poolSays(hyperv1.NodePoolValidPlatformImageType).Reason).To(Equal("InfraClusterUnreachable"))
	before := e.infra.Calls.Load()
	e.settle()
	e.Expect(e.infra.Calls.Load()).To(Equal(before))
}

func goneInTheEnd(e *elsewhere) {
	e.Expect(e.admin.Delete(e.t.Context(), e.pool())).To(Succeed())
	e.settle()
	e.Expect(e.poolSays(hyperv1.NodePoolReadyConditionType).Message).To(And(ContainSubstring("Waiting to delete the DataVolumes"),
		ContainSubstring("delete Secret elsewhere-kubevirt/infra to leave them behind")))
	e.Expect(e.volumes()).To(HaveLen(1))
	e.infra.Down.Store(false)
	e.later()
	e.Expect(apierrors.IsNotFound(e.admin.Get(e.t.Context(), e.key(fixture.PoolName), &hyperv1.NodePool{}))).To(BeTrue())
	e.Expect(e.volumes()).To(BeEmpty())

	e.infra.Down.Store(true)
	e.Expect(e.admin.Delete(e.t.Context(), e.cluster())).To(Succeed())
	e.later()
	e.Expect(e.condition(hyperv1.HostedClusterAvailable).Message).To(ContainSubstring("Waiting to delete NetworkPolicy vms/virt-launcher-" + infraID))
	e.infra.Down.Store(false)
	e.later()
	_, err := e.policy()
	e.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
}

// TestVirtualMachinesAbandoned deletes a cluster whose external cluster does not respond and whose kubeconfig is gone.
func TestVirtualMachinesAbandoned(t *testing.T) {
	infra := fixture.InfraHere(t)
	e := newElsewhere(t, infra, "abandoned")
	e.create()
	e.Expect(e.poolSays(hyperv1.NodePoolValidPlatformImageType).Message).To(HavePrefix("Bootstrap"))
	e.Expect(e.volumes()).To(HaveLen(1))
	infra.Down.Store(true)
	e.later()
	e.Expect(e.admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "infra"}})).To(Succeed())
	e.Expect(e.admin.Delete(t.Context(), e.pool())).To(Succeed())
	e.destroy()
	e.Expect(e.volumes()).To(HaveLen(1), "nobody could delete it")
}
