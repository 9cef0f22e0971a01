// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// NodePool is platform KubeVirt for `create nodepool`, and the machine flags of `create cluster`.
type NodePool struct {
	memory, storageClass, accessModes, volumeMode, cache, multiQueue, qos, disk string
	size, cores                                                                 uint32
	networks, devices                                                           []string
	attachDefault                                                               bool
	nodeSelector                                                                map[string]string
	block                                                                       hyperv1.KubevirtNodePoolPlatform
}

// Type implements nodepool.Platform.
func (*NodePool) Type() hyperv1.PlatformType { return hyperv1.KubevirtPlatform }

// Example implements nodepool.Platform.
func (*NodePool) Example() string {
	return "--memory 8Gi --cores 4"
}

// AddFlags implements nodepool.Platform.
func (p *NodePool) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&p.memory, "memory", "4Gi", "memory of each virtual machine")
	flags.Uint32Var(&p.cores, "cores", 2, "cores of each virtual machine")
	flags.StringVar(&p.qos, "qos-class", string(hyperv1.QoSClassBurstable), "quality of service of the virtual machines' pods: Burstable or Guaranteed")
	flags.Uint32Var(&p.size, "root-volume-size", 32, "size of each root volume, in GiB")
	flags.StringVar(&p.storageClass, "root-volume-storage-class", "", "StorageClass of the root volumes (default: the cluster's)")
	flags.StringVar(&p.accessModes, "root-volume-access-modes", "", "access modes of the root volumes, with commas between, e.g. ReadWriteMany (default: those of the StorageClass's profile)")
	flags.StringVar(&p.volumeMode, "root-volume-volume-mode", "", "volume mode of the root volumes: Filesystem or Block (default: that of the StorageClass's profile)")
	flags.StringVar(&p.cache, "root-volume-cache-strategy", "", "None, or PVC to keep the release's disk image beside the virtual machines, which are then cloned from it")
	flags.StringVar(&p.disk, "containerdisk", "", "container image with the disk that virtual machines start from (default: that of the release; a Kubernetes release has none)")
	flags.StringVar(&p.multiQueue, "network-multiqueue", string(hyperv1.MultiQueueEnable), "Enable or Disable queues of network interfaces for each core")
	flags.StringArrayVar(&p.networks, "additional-network", nil, "network of the virtual machines besides, as name:<namespace>/<name> of a NetworkAttachmentDefinition; may be repeated")
	flags.BoolVar(&p.attachDefault, "attach-default-network", true, "attach the network of pods too")
	flags.StringToStringVar(&p.nodeSelector, "vm-node-selector", nil, "labels of the hosts that virtual machines may run on, as key=value; may be repeated")
	flags.StringArrayVar(&p.devices, "host-device-name", nil, "device of hosts that each virtual machine gets, as <name>, or <name>,count:<number> for several; may be repeated")
}

// Complete implements nodepool.Platform.
func (p *NodePool) Complete() error {
	memory, err := resource.ParseQuantity(p.memory)
	if err != nil || memory.Sign() <= 0 {
		return fmt.Errorf("--memory %q is not a size; write it as 8Gi", p.memory)
	}
	if p.cores == 0 || p.size == 0 {
		return fmt.Errorf("--cores %d, --root-volume-size %d: use 1 or more", p.cores, p.size)
	}
	for _, c := range []struct {
		flag, value string
		of          []string
	}{
		{"qos-class", p.qos, []string{string(hyperv1.QoSClassBurstable), string(hyperv1.QoSClassGuaranteed)}},
		{"network-multiqueue", p.multiQueue, []string{string(hyperv1.MultiQueueEnable), string(hyperv1.MultiQueueDisable)}},
		{"root-volume-volume-mode", p.volumeMode, []string{"", "Filesystem", "Block"}},
		{"root-volume-cache-strategy", p.cache, []string{"", string(hyperv1.KubevirtCachingStrategyNone), string(hyperv1.KubevirtCachingStrategyPVC)}},
	} {
		if !slices.Contains(c.of, c.value) {
			return fmt.Errorf("--%s %q: use one of %s", c.flag, c.value, strings.TrimPrefix(strings.Join(c.of, ", "), ", "))
		}
	}
	p.block = hyperv1.KubevirtNodePoolPlatform{
		Compute:                    &hyperv1.KubevirtCompute{Memory: &memory, Cores: ptr.To(p.cores), QosClass: ptr.To(hyperv1.QoSClass(p.qos))},
		NetworkInterfaceMultiQueue: ptr.To(hyperv1.MultiQueueSetting(p.multiQueue)),
		NodeSelector:               p.nodeSelector,
	}
	if p.block.RootVolume, err = p.rootVolume(); err != nil {
		return err
	}
	if err := p.attach(); err != nil {
		return err
	}
	p.block.KubevirtHostDevices, err = parseDevices(p.devices)
	return err
}

func (p *NodePool) rootVolume() (*hyperv1.KubevirtRootVolume, error) {
	persistent := &hyperv1.KubevirtPersistentVolume{Size: resource.NewQuantity(int64(p.size)<<30, resource.BinarySI)}
	volume := &hyperv1.KubevirtRootVolume{KubevirtVolume: hyperv1.KubevirtVolume{Type: hyperv1.KubevirtVolumeTypePersistent, Persistent: persistent}}
	if p.storageClass != "" {
		persistent.StorageClass = &p.storageClass
	}
	if p.volumeMode != "" {
		persistent.VolumeMode = &p.volumeMode
	}
	if p.accessModes != "" {
		for mode := range strings.SplitSeq(p.accessModes, ",") {
			known := []string{"ReadWriteOnce", "ReadWriteMany", "ReadOnly", "ReadWriteOncePod"}
			if !slices.Contains(known, mode) {
				return nil, fmt.Errorf("--root-volume-access-modes %q: use some of %s", p.accessModes, strings.Join(known, ", "))
			}
			persistent.AccessModes = append(persistent.AccessModes, hyperv1.PersistentVolumeAccessMode(mode))
		}
	}
	if p.disk != "" {
		volume.Image = &hyperv1.KubevirtDiskImage{ContainerDiskImage: &p.disk}
	}
	if p.cache != "" {
		volume.CacheStrategy = &hyperv1.KubevirtCachingStrategy{Type: hyperv1.KubevirtCachingStrategyType(p.cache)}
	}
	return volume, nil
}

func (p *NodePool) attach() error {
	for _, text := range p.networks {
		name, named := strings.CutPrefix(text, "name:")
		if !named || name == "" {
			return fmt.Errorf("--additional-network %q: write it as in name:lab/storage", text)
		}
		p.block.AdditionalNetworks = append(p.block.AdditionalNetworks, hyperv1.KubevirtNetwork{Name: name})
	}
	if !p.attachDefault && len(p.networks) == 0 {
		return fmt.Errorf("--attach-default-network=false leaves virtual machines without a network: name one with --additional-network")
	}
	p.block.AttachDefaultNetwork = ptr.To(p.attachDefault)
	return nil
}

func parseDevices(texts []string) ([]hyperv1.KubevirtHostDevice, error) {
	var devices []hyperv1.KubevirtHostDevice
	for _, text := range texts {
		name, option, several := strings.Cut(text, ",")
		number, counted := strings.CutPrefix(option, "count:")
		device := hyperv1.KubevirtHostDevice{DeviceName: name, Count: 1}
		var err error
		if several {
			device.Count, err = strconv.Atoi(number)
		}
		if name == "" || several && !counted || err != nil || device.Count < 1 {
			return nil, fmt.Errorf("--host-device-name %q: write it as in example.com/gpu or example.com/gpu,count:2", text)
		}
		devices = append(devices, device)
	}
	return devices, nil
}

// Apply implements nodepool.Platform.
func (p *NodePool) Apply(pool *hyperv1.NodePool) {
	pool.Spec.Platform = hyperv1.NodePoolPlatform{Type: hyperv1.KubevirtPlatform, Kubevirt: p.block.DeepCopy()}
}
