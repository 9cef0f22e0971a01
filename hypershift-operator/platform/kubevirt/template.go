// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	kubevirtv1 "github.com/openshift/hypershift/api/kubevirt/v1alpha1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/distributions"
)

// settings returns the pool's KubeVirt block; an empty one if it is not set.
func settings(pool platform.Pool) hyperv1.KubevirtNodePoolPlatform {
	if pool.NodePool.Spec.Platform.Kubevirt == nil {
		return hyperv1.KubevirtNodePoolPlatform{}
	}
	return *pool.NodePool.Spec.Platform.Kubevirt
}

// ValidateNodePool rejects what KubeVirt cannot run.
func (*Platform) ValidateNodePool(pool platform.Pool) error {
	if err := errors.Join(validateNetworks(pool), validatePatches(pool)); err != nil {
		return err
	}
	return validateImage(pool)
}

func validateNetworks(pool platform.Pool) error {
	if block := settings(pool); !ptr.Deref(block.AttachDefaultNetwork, true) && len(block.AdditionalNetworks) == 0 {
		return errors.New("spec.platform.kubevirt.attachDefaultNetwork is false and additionalNetworks is empty: " +
			"name a network, or the virtual machines have none")
	}
	return nil
}

// validateImage requires a disk image. It accepts any pool until the payload is known, because the payload may contain
// one.
func validateImage(pool platform.Pool) error {
	if pool.Release == nil || image(pool) != "" {
		return nil
	}
	const field = "spec.platform.kubevirt.rootVolume.diskImage.containerDiskImage"
	if distributions.Of(pool.Distribution()).OwnOperators {
		return noImage(fmt.Sprintf("%s is empty, and the release has no disk image for KubeVirt and architecture %s; set the field to a container disk", field, architecture(pool)))
	}
	return noImage(fmt.Sprintf("%s is empty: with a %s release, name a container disk that starts by cloud-init or Ignition, such as quay.io/containerdisks/ubuntu:24.04",
		field, pool.Distribution()))
}

func noImage(message string) error {
	return &platform.Fault{Condition: hyperv1.NodePoolValidPlatformImageType, Reason: hyperv1.NodePoolValidationFailedReason, Message: message}
}

// namedDisk returns the container disk that a pool names itself; empty for none.
func namedDisk(block *hyperv1.KubevirtNodePoolPlatform) string {
	if block == nil || block.RootVolume == nil || block.RootVolume.Image == nil {
		return ""
	}
	return ptr.Deref(block.RootVolume.Image.ContainerDiskImage, "")
}

// image returns the container disk that the pool names, or else the container disk of its release; empty for none. A
// release without container disks has a disk image for OpenStack, referenced by URL. A pool uses that only if an
// annotation allows it.
func image(pool platform.Pool) string {
	if disk := namedDisk(pool.NodePool.Spec.Platform.Kubevirt); disk != "" {
		return disk
	}
	if pool.Release == nil {
		return ""
	}
	disk, known := pool.Release.KubeVirtDisk(architecture(pool))
	if !known && strings.EqualFold(pool.NodePool.Annotations[hyperv1.AllowUnsupportedKubeVirtRHCOSVariantsAnnotation], "true") {
		disk, _ = pool.Release.OpenStackDisk(architecture(pool))
	}
	return disk
}

func architecture(pool platform.Pool) string {
	if pool.NodePool.Spec.Arch == "" {
		return hyperv1.ArchitectureAMD64
	}
	return pool.NodePool.Spec.Arch
}

// readsIgnition reports whether the pool's disk uses Ignition. The disk of an OpenShift release does; for others it
// depends on the name.
func readsIgnition(pool platform.Pool) bool {
	if pool.Release == nil || distributions.Of(pool.Distribution()).OwnOperators {
		return true
	}
	name := image(pool)
	return strings.Contains(name, "coreos") || strings.Contains(name, "flatcar")
}

// MachineTemplate returns a template with the virtual machine of the pool's machines.
func (*Platform) MachineTemplate(pool platform.Pool) client.Object {
	template := &kubevirtv1.KubevirtMachineTemplate{}
	spec := &template.Spec.Template.Spec
	spec.BootstrapCheckSpec.CheckStrategy = "none" // The other strategy needs a login.
	// ValidateNodePool has rejected a template that cannot be patched.
	spec.VirtualMachineTemplate, _ = patched(pool)
	return template
}

// RollingTemplate returns the template without the name of the volume from which disks are cloned, because another
// volume may contain the same disk. KubeVirt applies any other change only when a virtual machine restarts.
func (*Platform) RollingTemplate(template client.Object) client.Object {
	made, ok := template.DeepCopyObject().(*kubevirtv1.KubevirtMachineTemplate)
	if !ok {
		return template
	}
	raw := &made.Spec.Template.Spec.VirtualMachineTemplate.Spec.Raw
	var spec map[string]any
	if json.Unmarshal(*raw, &spec) != nil {
		return template
	}
	volumes, _, _ := unstructured.NestedSlice(spec, "dataVolumeTemplates")
	for _, volume := range volumes {
		if fields, ok := volume.(map[string]any); ok {
			unstructured.RemoveNestedField(fields, "spec", "source", "pvc", "name")
		}
	}
	if len(volumes) > 0 {
		spec["dataVolumeTemplates"] = volumes
	}
	*raw, _ = json.Marshal(spec)
	return made
}

// patches returns the JSON patches of virtual machines, the cluster's before the pool's.
func patches(pool platform.Pool) []string {
	var all []string
	for _, annotations := range []map[string]string{pool.HostedCluster.Annotations, pool.NodePool.Annotations} {
		if patch := annotations[hyperv1.JSONPatchAnnotation]; patch != "" {
			all = append(all, patch)
		}
	}
	return all
}

// validatePatches requires that patched virtual machines run in an external cluster. In the hosted control plane
// namespace, a patched volume or label could give them access to other objects. Examples are keys of the control plane
// and its service account tokens.
func validatePatches(pool platform.Pool) error {
	if len(patches(pool)) == 0 {
		return nil
	}
	if external(pool.HostedCluster) == nil {
		return fmt.Errorf("annotation %s is honoured only where virtual machines run in a cluster of spec.platform.kubevirt.credentials of the HostedCluster: "+
			"remove it", hyperv1.JSONPatchAnnotation)
	}
	if _, err := patched(pool); err != nil {
		return fmt.Errorf("annotation %s: %w", hyperv1.JSONPatchAnnotation, err)
	}
	return nil
}

// patched returns the template of the pool's virtual machines with the users' patches. Its JSON is canonical, as the
// API server returns it.
func patched(pool platform.Pool) (kubevirtv1.VirtualMachineTemplate, error) {
	template := kubevirtv1.VirtualMachineTemplate{ObjectMeta: kubevirtv1.VirtualMachineMeta{Labels: labels(pool)}}
	if credentials := external(pool.HostedCluster); credentials != nil {
		template.ObjectMeta.Namespace = credentials.InfraNamespace
	}
	var err error
	if template.Spec.Raw, err = json.Marshal(virtualMachine(pool)); err != nil {
		return template, err
	}
	document, err := json.Marshal(template)
	if err != nil {
		return template, err
	}
	for _, text := range patches(pool) {
		patch, err := jsonpatch.DecodePatch([]byte(text))
		if err != nil {
			return template, fmt.Errorf("it is not a JSON patch: %w", err)
		}
		if document, err = patch.Apply(document); err != nil {
			return template, fmt.Errorf("it cannot be applied to the virtual machine: %w", err)
		}
	}
	var result kubevirtv1.VirtualMachineTemplate
	var spec map[string]any
	if err := errors.Join(json.Unmarshal(document, &result), json.Unmarshal(result.Spec.Raw, &spec)); err != nil {
		return template, fmt.Errorf("the result is not a virtual machine: %w", err)
	}
	result.Spec.Raw, err = json.Marshal(spec)
	return result, err
}
