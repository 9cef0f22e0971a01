// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/platform"
)

// object is a part of a KubeVirt manifest, whose types cannot be imported. Its keys are encoded in sorted order, so
// that the same pool produces the same text.
type object = map[string]any

const (
	// rootVolume is the name of the disk, its volume, and the template of its DataVolume. The payload's operators find it
	// by its label.
	rootVolume      = "rhcos"
	rootVolumeLabel = "hypershift.openshift.io/is-kubevirt-rhcos"
	defaultNetwork  = "default"
)

// localVolumes are volumes of a virtual machine's pod whose data need not survive a drain.
var localVolumes = []string{
	"private", "public", "sockets", "virt-bin-share-dir", "libvirt-runtime", "ephemeral-disks", "container-disks", "hotplug-disks",
}

// labels returns the labels by which virtual machines and their pods are found. A payload's cloud provider and storage
// driver use the second one.
func labels(pool platform.Pool) map[string]string {
	return map[string]string{hyperv1.NodePoolNameLabel: pool.NodePool.Name, hyperv1.InfraIDLabel: pool.HostedCluster.Spec.InfraID}
}

// virtualMachine returns the spec of the pool's VirtualMachines.
func virtualMachine(pool platform.Pool) object {
	return object{
		"runStrategy":         "Always",
		"dataVolumeTemplates": []object{dataVolume(pool)},
		"template": object{
			"metadata": object{
				"labels": labels(pool),
				"annotations": object{
					"kubevirt.io/allow-pod-bridge-network-live-migration":          "",
					"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": strings.Join(localVolumes, ","),
				},
			},
			"spec": instance(pool),
		},
	}
}

// instance returns the spec of the VirtualMachineInstances.
func instance(pool platform.Pool) object {
	block := settings(pool)
	interfaces, networks := attachments(block)
	spec := object{
		"domain":   domain(block, interfaces),
		"networks": networks,
		"volumes":  []object{{"name": rootVolume, "dataVolume": object{"name": rootVolume}}},
		"topologySpreadConstraints": []object{{
			"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
			"labelSelector": object{"matchLabels": object{hyperv1.NodePoolNameLabel: pool.NodePool.Name}},
		}},
	}
	if len(block.NodeSelector) > 0 {
		spec["nodeSelector"] = maps.Clone(block.NodeSelector)
	}
	if arch := architecture(pool); arch != hyperv1.ArchitectureAMD64 {
		spec["architecture"] = arch
	}
	return spec
}

// domain returns the hardware. The guaranteed QoS class sets only resources, from which KubeVirt derives cores and
// memory.
func domain(block hyperv1.KubevirtNodePoolPlatform, interfaces []object) object {
	devices := object{
		"disks":      []object{{"name": rootVolume, "disk": object{"bus": "virtio"}}},
		"interfaces": interfaces,
	}
	if ptr.Deref(block.NetworkInterfaceMultiQueue, "") == hyperv1.MultiQueueEnable {
		devices["networkInterfaceMultiqueue"] = true
	}
	if hosts := hostDevices(block); len(hosts) > 0 {
		devices["hostDevices"] = hosts
	}
	domain := object{"devices": devices}
	compute := ptr.Deref(block.Compute, hyperv1.KubevirtCompute{Cores: ptr.To[uint32](2)})
	memory := ptr.Deref(compute.Memory, resource.MustParse("8Gi"))
	if ptr.Deref(compute.QosClass, hyperv1.QoSClassBurstable) == hyperv1.QoSClassGuaranteed {
		resources := object{"memory": memory.String()}
		if compute.Cores != nil {
			resources["cpu"] = fmt.Sprint(*compute.Cores)
		}
		domain["resources"] = object{"requests": resources, "limits": resources}
		return domain
	}
	domain["memory"] = object{"guest": memory.String()}
	if compute.Cores != nil {
		domain["cpu"] = object{"cores": *compute.Cores}
	}
	return domain
}

// hostDevices returns the devices with numbered names, because KubeVirt requires unique names.
func hostDevices(block hyperv1.KubevirtNodePoolPlatform) []object {
	var devices []object
	for _, device := range block.KubevirtHostDevices {
		for range max(device.Count, 1) {
			devices = append(devices, object{"name": fmt.Sprintf("hostdevice-%d", len(devices)+1), "deviceName": device.DeviceName})
		}
	}
	return devices
}

// attachments returns the interfaces and their networks.
func attachments(block hyperv1.KubevirtNodePoolPlatform) (interfaces, networks []object) {
	attach := func(name, kind string, source object) {
		interfaces = append(interfaces, object{"name": name, "bridge": object{}})
		networks = append(networks, object{"name": name, kind: source})
	}
	if ptr.Deref(block.AttachDefaultNetwork, true) {
		attach(defaultNetwork, "pod", object{})
	}
	for i, network := range block.AdditionalNetworks {
		name := fmt.Sprintf("iface%d_%s", i+1, strings.ReplaceAll(network.Name, "/", "-"))
		attach(name, "multus", object{"networkName": network.Name})
	}
	return interfaces, networks
}

// dataVolume returns the root volume of each virtual machine, which is filled from the disk image or its cache.
func dataVolume(pool platform.Pool) object {
	spec := object{"source": source(pool)}
	if cached(pool.NodePool) {
		spec["source"] = object{"pvc": object{"namespace": namespaceOf(pool), "name": keptName(pool)}}
	}
	if volume := settings(pool).RootVolume; volume != nil && volume.Persistent != nil {
		spec["storage"] = storage(volume.Persistent)
	}
	return object{"metadata": object{"name": rootVolume, "labels": object{rootVolumeLabel: "true"}}, "spec": spec}
}

// source returns the source of the disk: a container image, or a file on a web server.
func source(pool platform.Pool) object {
	if disk := image(pool); strings.HasPrefix(disk, "https://") {
		return object{"http": object{"url": disk}}
	}
	return object{"registry": object{"url": "docker://" + image(pool), "pullMethod": "node"}}
}

// namespaceOf returns the namespace of the pool's virtual machines.
func namespaceOf(pool platform.Pool) string {
	if credentials := external(pool.HostedCluster); credentials != nil {
		return credentials.InfraNamespace
	}
	return naming.ControlPlaneNamespace(pool.HostedCluster)
}

// keptName returns the volume with the cached disk; empty while there is none.
func keptName(pool platform.Pool) string {
	if pool.Kept == nil || pool.Kept.KubeVirt == nil {
		return ""
	}
	return pool.Kept.KubeVirt.CacheName
}

func storage(volume *hyperv1.KubevirtPersistentVolume) object {
	size := ptr.Deref(volume.Size, resource.MustParse("32Gi"))
	spec := object{"resources": object{"requests": object{"storage": size.String()}}}
	if len(volume.AccessModes) > 0 {
		var modes []any
		for _, mode := range volume.AccessModes {
			modes = append(modes, string(mode))
		}
		spec["accessModes"] = modes
	}
	if class := ptr.Deref(volume.StorageClass, ""); class != "" {
		spec["storageClassName"] = class
	}
	if mode := ptr.Deref(volume.VolumeMode, ""); mode != "" {
		spec["volumeMode"] = mode
	}
	return spec
}
