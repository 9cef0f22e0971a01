// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	kubevirtv1 "github.com/openshift/hypershift/api/kubevirt/v1alpha1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/releaseinfo"
)

const payloadDisk = "quay.example/rhcos@sha256:12"

// testPool returns a pool of an OpenShift release with the API server's defaults.
func testPool(change func(*hyperv1.KubevirtNodePoolPlatform)) platform.Pool {
	var intel releaseinfo.BootArchitecture
	intel.Images.KubeVirt = releaseinfo.BootImage{DigestRef: payloadDisk}
	pool := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "workers"}}
	block := &hyperv1.KubevirtNodePoolPlatform{
		RootVolume: &hyperv1.KubevirtRootVolume{KubevirtVolume: hyperv1.KubevirtVolume{Type: hyperv1.KubevirtVolumeTypePersistent,
			Persistent: &hyperv1.KubevirtPersistentVolume{Size: ptr.To(resource.MustParse("32Gi"))}}},
		Compute:                    &hyperv1.KubevirtCompute{Memory: ptr.To(resource.MustParse("8Gi")), Cores: ptr.To[uint32](2)},
		NetworkInterfaceMultiQueue: ptr.To(hyperv1.MultiQueueEnable),
	}
	if change != nil {
		change(block)
	}
	pool.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.KubevirtPlatform, Kubevirt: block}
	return platform.Pool{NodePool: pool, HostedCluster: testCluster(nil).HostedCluster, Release: releaseinfo.New("", releaseinfo.Payload{
		Distribution: releaseinfo.OpenShift, BootImages: releaseinfo.BootImages{Architectures: map[string]releaseinfo.BootArchitecture{"x86_64": intel}}})}
}

// vm returns the template of the pool's virtual machines as KubeVirt reads it.
func vm(t *testing.T, pool platform.Pool) map[string]any {
	t.Helper()
	template := (&Platform{}).MachineTemplate(pool).(*kubevirtv1.KubevirtMachineTemplate)
	raw, err := json.Marshal(template.Spec.Template.Spec)
	if err != nil {
		t.Fatal(err)
	}
	var spec map[string]any
	if err := json.Unmarshal(raw, &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// at returns the value at a path of keys and indexes; nil if it does not exist.
func at(value any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			fields, _ := value.(map[string]any)
			value = fields[step]
		case int:
			items, _ := value.([]any)
			if step >= len(items) {
				return nil
			}
			value = items[step]
		}
	}
	return value
}

func cachedPool(name string) platform.Pool {
	pool := testPool(func(block *hyperv1.KubevirtNodePoolPlatform) {
		block.RootVolume.CacheStrategy = &hyperv1.KubevirtCachingStrategy{Type: hyperv1.KubevirtCachingStrategyPVC}
	})
	pool.Kept = &hyperv1.NodePoolPlatformStatus{KubeVirt: &hyperv1.KubeVirtNodePoolStatus{CacheName: name}}
	return pool
}

func TestKeptImage(t *testing.T) {
	p, g := &Platform{}, NewWithT(t)
	one, other := p.MachineTemplate(cachedPool("kv-boot-image-cache-a")), p.MachineTemplate(cachedPool("kv-boot-image-cache-b"))
	g.Expect(at(vm(t, cachedPool("kv-boot-image-cache-a")), "virtualMachineTemplate", "spec", "dataVolumeTemplates", 0, "spec", "source")).To(Equal(
		map[string]any{"pvc": map[string]any{"namespace": "clusters-demo", "name": "kv-boot-image-cache-a"}}))
	g.Expect(one).NotTo(Equal(other))
	unkept := cachedPool("")
	for _, kept := range []*hyperv1.NodePoolPlatformStatus{nil, {}} {
		unkept.Kept = kept
		g.Expect(p.RollingTemplate(p.MachineTemplate(unkept))).To(Equal(p.RollingTemplate(one)), "while the volume is not there, the template is that of later")
	}
	g.Expect(p.RollingTemplate(one)).To(Equal(p.RollingTemplate(other)), "the same disk in another volume replaces no machine")
	g.Expect(p.RollingTemplate(one)).NotTo(Equal(p.RollingTemplate(p.MachineTemplate(testPool(nil)))))

	named := cachedPool("")
	named.NodePool.Spec.Platform.Kubevirt.RootVolume.Image = &hyperv1.KubevirtDiskImage{ContainerDiskImage: ptr.To("registry.example/mine:1")}
	g.Expect(at(vm(t, named), "virtualMachineTemplate", "spec", "dataVolumeTemplates", 0, "spec", "source", "registry", "url")).To(Equal("docker://registry.example/mine:1"))
	g.Expect(p.WithoutEffect(named.NodePool)).To(ConsistOf("platform.kubevirt.rootVolume.cacheStrategy"))
	g.Expect(p.WithoutEffect(cachedPool("").NodePool)).To(BeEmpty())
	g.Expect(p.WithoutEffect(testPool(nil).NodePool)).To(BeEmpty())
}

func TestOlderRelease(t *testing.T) {
	g, pool := NewWithT(t), testPool(nil)
	var intel releaseinfo.BootArchitecture
	intel.Artifacts.OpenStack.Formats = map[string]map[string]releaseinfo.BootFile{"qcow2.gz": {"disk": {Location: "https://mirror.example/rhcos.qcow2.gz"}}}
	pool.Release = releaseinfo.New("", releaseinfo.Payload{Distribution: releaseinfo.OpenShift,
		BootImages: releaseinfo.BootImages{Architectures: map[string]releaseinfo.BootArchitecture{"x86_64": intel}}})
	var fault *platform.Fault
	g.Expect(errors.As((&Platform{}).ValidateNodePool(pool), &fault)).To(BeTrue())
	g.Expect(fault.Condition).To(Equal("ValidPlatformImage"))
	pool.NodePool.Annotations = map[string]string{hyperv1.AllowUnsupportedKubeVirtRHCOSVariantsAnnotation: "True"}
	g.Expect((&Platform{}).ValidateNodePool(pool)).To(Succeed())
	g.Expect(at(vm(t, pool), "virtualMachineTemplate", "spec", "dataVolumeTemplates", 0, "spec", "source")).To(Equal(
		map[string]any{"http": map[string]any{"url": "https://mirror.example/rhcos.qcow2.gz"}}))
}

// Paths of the fields that are compared.
var (
	machinePath  = []any{"virtualMachineTemplate", "spec", "template", "spec"}
	domainPath   = append(machinePath[:4:4], "domain")
	devicesPath  = append(domainPath[:5:5], "devices")
	volumePath   = []any{"virtualMachineTemplate", "spec", "dataVolumeTemplates", 0}
	storagePath  = append(volumePath[:4:4], "spec", "storage")
	registryPath = append(volumePath[:4:4], "spec", "source", "registry", "url")
)

func TestTemplate(t *testing.T) {
	object, list := func(pairs map[string]any) any { return pairs }, func(items ...any) any { return items }
	for _, tc := range []struct {
		name   string
		change func(*hyperv1.KubevirtNodePoolPlatform)
		path   []any
		want   any
	}{
		{"When nothing is set, it should create the volume from the payload's disk image", nil, volumePath, object(map[string]any{
			"metadata": object(map[string]any{"name": "rhcos", "labels": object(map[string]any{"hypershift.openshift.io/is-kubevirt-rhcos": "true"})}),
			"spec": object(map[string]any{
				"source":  object(map[string]any{"registry": object(map[string]any{"url": "docker://" + payloadDisk, "pullMethod": "node"})}),
				"storage": object(map[string]any{"resources": object(map[string]any{"requests": object(map[string]any{"storage": "32Gi"})})}),
			}),
		})},
		{"When a disk image is set, it should take precedence", func(k *hyperv1.KubevirtNodePoolPlatform) {
			k.RootVolume.Image = &hyperv1.KubevirtDiskImage{ContainerDiskImage: ptr.To("mine:1")}
		}, registryPath, "docker://mine:1"},
		{"When the volume settings are set, it should use them", func(k *hyperv1.KubevirtNodePoolPlatform) {
			k.RootVolume.Persistent = &hyperv1.KubevirtPersistentVolume{Size: ptr.To(resource.MustParse("100Gi")), StorageClass: ptr.To("fast"),
				AccessModes: []hyperv1.PersistentVolumeAccessMode{"ReadWriteMany"}, VolumeMode: ptr.To("Block")}
		}, storagePath, object(map[string]any{"storageClassName": "fast", "accessModes": list("ReadWriteMany"), "volumeMode": "Block",
			"resources": object(map[string]any{"requests": object(map[string]any{"storage": "100Gi"})})})},
		{"When the pod is burstable, it should set the guest's memory", nil, append(domainPath[:5:5], "memory"), object(map[string]any{"guest": "8Gi"})},
		{"When the pod is burstable, it should set no resources", nil, append(domainPath[:5:5], "resources"), nil},
		{"When cores is set, it should set the number of cores", func(k *hyperv1.KubevirtNodePoolPlatform) { k.Compute.Cores = ptr.To[uint32](6) },
			append(domainPath[:5:5], "cpu"), object(map[string]any{"cores": float64(6)})},
		{"When the pod is guaranteed, it should set requests equal to limits", func(k *hyperv1.KubevirtNodePoolPlatform) { k.Compute.QosClass = ptr.To(hyperv1.QoSClassGuaranteed) },
			append(domainPath[:5:5], "resources"), object(map[string]any{
				"requests": object(map[string]any{"cpu": "2", "memory": "8Gi"}), "limits": object(map[string]any{"cpu": "2", "memory": "8Gi"})})},
		{"When the pod is guaranteed, it should not set the guest's memory", func(k *hyperv1.KubevirtNodePoolPlatform) { k.Compute.QosClass = ptr.To(hyperv1.QoSClassGuaranteed) },
			append(domainPath[:5:5], "memory"), nil},
		{"When multiqueue is not set, it should enable it", nil, append(devicesPath[:6:6], "networkInterfaceMultiqueue"), true},
		{"When multiqueue is disabled, it should omit the field",
			func(k *hyperv1.KubevirtNodePoolPlatform) {
				k.NetworkInterfaceMultiQueue = ptr.To(hyperv1.MultiQueueDisable)
			},
			append(devicesPath[:6:6], "networkInterfaceMultiqueue"), nil},
		{"When no networks are set, it should attach only the pod network", nil, append(machinePath[:4:4], "networks"),
			list(object(map[string]any{"name": "default", "pod": object(map[string]any{})}))},
		{"When an additional network is set, it should attach it second", func(k *hyperv1.KubevirtNodePoolPlatform) {
			k.AdditionalNetworks = []hyperv1.KubevirtNetwork{{Name: "lab/storage"}}
		}, append(machinePath[:4:4], "networks", 1), object(map[string]any{"name": "iface1_lab-storage", "multus": object(map[string]any{"networkName": "lab/storage"})})},
		{"When the default network is not attached, it should attach only the additional one", func(k *hyperv1.KubevirtNodePoolPlatform) {
			k.AdditionalNetworks, k.AttachDefaultNetwork = []hyperv1.KubevirtNetwork{{Name: "lab/storage"}}, ptr.To(false)
		}, append(devicesPath[:6:6], "interfaces"), list(object(map[string]any{"name": "iface1_lab-storage", "bridge": object(map[string]any{})}))},
		{"When a node selector is set, it should use it", func(k *hyperv1.KubevirtNodePoolPlatform) { k.NodeSelector = map[string]string{"gpu": "yes"} },
			append(machinePath[:4:4], "nodeSelector"), object(map[string]any{"gpu": "yes"})},
		{"When host devices are set, it should give each a distinct name", func(k *hyperv1.KubevirtNodePoolPlatform) {
			k.KubevirtHostDevices = []hyperv1.KubevirtHostDevice{{DeviceName: "example.com/a", Count: 2}, {DeviceName: "example.com/b"}}
		}, append(devicesPath[:6:6], "hostDevices"), list(object(map[string]any{"name": "hostdevice-1", "deviceName": "example.com/a"}),
			object(map[string]any{"name": "hostdevice-2", "deviceName": "example.com/a"}), object(map[string]any{"name": "hostdevice-3", "deviceName": "example.com/b"}))},
		{"When one host device is set, it should attach it", func(k *hyperv1.KubevirtNodePoolPlatform) {
			k.KubevirtHostDevices = []hyperv1.KubevirtHostDevice{{DeviceName: "example.com/a", Count: 1}}
		}, append(devicesPath[:6:6], "hostDevices"), list(object(map[string]any{"name": "hostdevice-1", "deviceName": "example.com/a"}))},
		{"When nothing is set, it should disable the provider's bootstrap check", nil, []any{"virtualMachineBootstrapCheck"}, object(map[string]any{"checkStrategy": "none"})},
		{"When nothing is set, it should label virtual machines with the pool and the infra ID", nil, []any{"virtualMachineTemplate", "metadata"}, object(map[string]any{
			"labels": object(map[string]any{"hypershift.openshift.io/nodepool-name": "workers", "hypershift.openshift.io/infra-id": "demo-abcde"})})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, at(vm(t, testPool(tc.change)), tc.path...)); diff != "" {
				t.Errorf("%v (-want +got):\n%s", tc.path, diff)
			}
		})
	}
	t.Run("When virtual machines are in an external cluster, it should set its namespace", func(t *testing.T) {
		pool := testPool(nil)
		pool.HostedCluster = testCluster(elsewhere()).HostedCluster
		NewWithT(t).Expect(at(vm(t, pool), "virtualMachineTemplate", "metadata", "namespace")).To(Equal("vms"))
	})
	t.Run("When the architecture is not amd64, it should set the architecture", func(t *testing.T) {
		g, pool := NewWithT(t), testPool(nil)
		g.Expect(at(vm(t, pool), append(machinePath[:4:4], "architecture")...)).To(BeNil())
		pool.NodePool.Spec.Arch = "s390x"
		g.Expect(at(vm(t, pool), append(machinePath[:4:4], "architecture")...)).To(Equal("s390x"))
	})
	t.Run("When the template is generated twice, it should be the same", func(t *testing.T) {
		g, p := NewWithT(t), &Platform{}
		g.Expect(p.RollingTemplate(p.MachineTemplate(testPool(nil)))).To(Equal(p.MachineTemplate(testPool(nil))))
	})
}

// TestWholeTemplate checks the complete template of a pool with default settings. Without any part of it, machines
// would not start, be spread or be found, or their hosts could not be drained.
func TestWholeTemplate(t *testing.T) {
	want := map[string]any{}
	if err := json.Unmarshal([]byte(`{
  "runStrategy": "Always",
  "dataVolumeTemplates": [{
    "metadata": {"name": "rhcos", "labels": {"hypershift.openshift.io/is-kubevirt-rhcos": "true"}},
    "spec": {"source": {"registry": {"url": "docker://`+payloadDisk+`", "pullMethod": "node"}}, "storage": {"resources": {"requests": {"storage": "32Gi"}}}}}],
  "template": {
    "metadata": {
      "labels": {"hypershift.openshift.io/nodepool-name": "workers", "hypershift.openshift.io/infra-id": "demo-abcde"},
      "annotations": {
        "kubevirt.io/allow-pod-bridge-network-live-migration": "",
        "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes":
          "private,public,sockets,virt-bin-share-dir,libvirt-runtime,ephemeral-disks,container-disks,hotplug-disks"}},
    "spec": {
      "domain": {
        "cpu": {"cores": 2}, "memory": {"guest": "8Gi"},
        "devices": {"disks": [{"name": "rhcos", "disk": {"bus": "virtio"}}], "interfaces": [{"name": "default", "bridge": {}}], "networkInterfaceMultiqueue": true}},
      "networks": [{"name": "default", "pod": {}}],
      "volumes": [{"name": "rhcos", "dataVolume": {"name": "rhcos"}}],
      "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"hypershift.openshift.io/nodepool-name": "workers"}}}]}}}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(want), at(vm(t, testPool(nil)), "virtualMachineTemplate", "spec")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPatches(t *testing.T) {
	const patch = `[{"op":"add","path":"/spec/template/spec/domain/cpu/dedicatedCpuPlacement","value":true},{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]`
	pool := testPool(nil)
	pool.NodePool.Annotations = map[string]string{hyperv1.JSONPatchAnnotation: patch}
	t.Run("When virtual machines are in the management cluster, it should reject a JSON patch", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect((&Platform{}).ValidateNodePool(pool)).To(MatchError(ContainSubstring(hyperv1.JSONPatchAnnotation)))
	})
	pool.HostedCluster = testCluster(elsewhere()).HostedCluster
	t.Run("When virtual machines are in an external cluster, it should apply the cluster's patch before the pool's", func(t *testing.T) {
		g := NewWithT(t)
		pool := pool
		pool.HostedCluster = pool.HostedCluster.DeepCopy()
		pool.HostedCluster.Annotations = map[string]string{hyperv1.JSONPatchAnnotation: `[{"op":"replace","path":"/spec/template/spec/domain/cpu","value":{"model":"host"}}]`}
		g.Expect((&Platform{}).ValidateNodePool(pool)).To(Succeed())
		g.Expect(at(vm(t, pool), append(domainPath[:5:5], "cpu")...)).To(Equal(map[string]any{"model": "host", "dedicatedCpuPlacement": true}))
		g.Expect(at(vm(t, pool), "virtualMachineTemplate", "metadata", "annotations", "a")).To(Equal("b"))
	})
	for name, patch := range map[string]string{
		"When the annotation is not a JSON patch, it should return an error":          `{"op":"add"}`,
		"When the patch's path does not exist, it should return an error":             `[{"op":"replace","path":"/spec/none/there","value":1}]`,
		"When the patched result is not a virtual machine, it should return an error": `[{"op":"replace","path":"/spec","value":1}]`,
	} {
		t.Run(name, func(t *testing.T) {
			pool := pool
			pool.NodePool = pool.NodePool.DeepCopy()
			pool.NodePool.Annotations[hyperv1.JSONPatchAnnotation] = patch
			NewWithT(t).Expect((&Platform{}).ValidateNodePool(pool)).To(MatchError(ContainSubstring("annotation " + hyperv1.JSONPatchAnnotation)))
		})
	}
}

func TestValidateNodePool(t *testing.T) {
	kubernetes := func(disk string) platform.Pool {
		pool := testPool(func(k *hyperv1.KubevirtNodePoolPlatform) {
			if disk != "" {
				k.RootVolume.Image = &hyperv1.KubevirtDiskImage{ContainerDiskImage: &disk}
			}
		})
		pool.Release = releaseinfo.New("", releaseinfo.Payload{Distribution: releaseinfo.Kubernetes})
		return pool
	}
	unread := testPool(nil)
	unread.Release = nil
	arm := testPool(nil)
	arm.NodePool.Spec.Arch = "s390x"
	for _, tc := range []struct {
		name   string
		pool   platform.Pool
		says   string
		format hyperv1.UserDataFormat
	}{
		{"When the payload has a disk image, it should accept the pool", testPool(nil), "", hyperv1.UserDataIgnition},
		{"When the payload is not known yet, it should accept the pool", unread, "", hyperv1.UserDataIgnition},
		{"When the payload has no disk image for the architecture, it should ask for one", arm, "architecture s390x", hyperv1.UserDataIgnition},
		{"When a Kubernetes pool sets no disk image, it should ask for one", kubernetes(""), "containerDiskImage is empty", hyperv1.UserDataCloudConfig},
		{"When the disk image is Ubuntu, it should use cloud-config", kubernetes("quay.io/containerdisks/ubuntu:24.04"), "", hyperv1.UserDataCloudConfig},
		{"When the disk image is Flatcar, it should use Ignition", kubernetes("ghcr.io/example/flatcar:stable"), "", hyperv1.UserDataIgnition},
		{"When the disk image is Fedora CoreOS, it should use Ignition", kubernetes("quay.io/containerdisks/fedora-coreos:stable"), "", hyperv1.UserDataIgnition},
		{"When no network would be attached, it should return an error", testPool(func(k *hyperv1.KubevirtNodePoolPlatform) { k.AttachDefaultNetwork = ptr.To(false) }),
			"attachDefaultNetwork is false", hyperv1.UserDataIgnition},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			err := (&Platform{}).ValidateNodePool(tc.pool)
			if tc.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
			}
			g.Expect((&Platform{}).UserDataFormat(t.Context(), nil, tc.pool, false)).To(Equal(platform.UserData{Format: tc.format}))
		})
	}
	t.Run("When the pool has no KubeVirt block, it should use the default number of cores", func(t *testing.T) {
		pool := testPool(nil)
		pool.NodePool.Spec.Platform.Kubevirt = nil
		NewWithT(t).Expect(at(vm(t, pool), append(domainPath[:5:5], "cpu", "cores")...)).To(Equal(float64(2)))
	})
}
