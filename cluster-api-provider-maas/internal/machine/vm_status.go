// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lifecycle"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/lxd"
	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/placement"
	"github.com/openshift/hypershift/support/condition"
)

// Condition types of virtual machines. Each condition is True once its step is done. The condition of the current step
// gives the reason why it is not done. The later ones are waiting.
const (
	// ConditionLXDHost reports whether a host is selected for the virtual machine.
	ConditionLXDHost = infrav1.LXDHostSelectedCondition
	// ConditionLXDResources reports the resources of the host that the virtual machine uses.
	ConditionLXDResources = infrav1.LXDResourcesAllocatedCondition
	// ConditionLXDCreated reports whether MAAS composed and commissioned the virtual machine, and whether it is allocated.
	ConditionLXDCreated = infrav1.LXDVMCreatedCondition
	// ConditionLXDDeployed reports whether the virtual machine runs its image.
	ConditionLXDDeployed = infrav1.LXDVMDeployedCondition
)

// Reasons of these conditions when there is no problem.
const (
	reasonHostSelected = infrav1.HostSelectedReason
	reasonVMCreated    = infrav1.VMCreatedReason
	reasonWaiting      = infrav1.WaitingReason
)

// vmConditions returns the conditions that report the progress of a virtual machine.
func (s *scope) vmConditions(deployed metav1.Condition) []metav1.Condition {
	place, held := lxd.PlacementOf(s.machine), s.systemID() != ""
	host, resources, created := s.notYet(ConditionLXDHost), condition.False(ConditionLXDResources, reasonWaiting, "no host is selected"),
		condition.False(ConditionLXDCreated, reasonWaiting, "no host is selected")
	switch {
	case place != nil:
		host = condition.True(ConditionLXDHost, reasonHostSelected, fmt.Sprintf("host %s in zone %s", place.Host, place.Zone))
		resources = condition.True(ConditionLXDResources, reasonHostSelected, fmt.Sprintf("%d cores, %d MiB of memory, a disk of %d GB", place.Cores, place.MemoryMiB, place.DiskGB)+
			withoutEffect(s.machine.Spec.LXD))
		created = s.notYet(ConditionLXDCreated)
	case held:
		// CAPMAAS created the virtual machine.
		host = condition.True(ConditionLXDHost, reasonHostSelected, s.machine.Status.LXDHost)
		resources = condition.True(ConditionLXDResources, reasonHostSelected, "")
	case host.Reason == ReasonVMCreationFailed:
		created = condition.False(ConditionLXDCreated, host.Reason, host.Message)
		host = condition.False(ConditionLXDHost, reasonWaiting, "another host is looked for")
	case host.Reason == lxd.ReasonInsufficientResources:
		resources = condition.False(ConditionLXDResources, host.Reason, host.Message)
	}
	if held {
		created = condition.True(ConditionLXDCreated, reasonVMCreated, fmt.Sprintf("virtual machine %s", s.systemID()))
	}
	if s.findings.host != nil {
		host = condition.False(ConditionLXDHost, s.findings.host.Reason, s.findings.host.Message)
	}
	deployed.Type = ConditionLXDDeployed
	if s.failing() {
		deployed.Message = fmt.Sprintf("%s: %s", deployed.Reason, deployed.Message)
		deployed.Reason = ReasonVMDeploymentFailed
	}
	return []metav1.Condition{host, resources, created, deployed}
}

// withoutEffect lists the upstream fields for which MAAS has no parameter.
func withoutEffect(spec *infrav1.LXDConfig) string {
	config, told := deref(deref(spec).VMConfig), ""
	if len(config.InterfaceLinkModes) > 0 {
		told += "; lxd.vmConfig.interfaceLinkModes has no effect: MAAS links each interface automatically, use staticIP for an address of your own"
	}
	if config.AutoStart != nil && !*config.AutoStart {
		told += "; lxd.vmConfig.autoStart false has no effect: a virtual machine that is off is switched on"
	}
	return told
}

// notYet returns a condition with the reason why a step is not done.
func (s *scope) notYet(kind string) metav1.Condition {
	if s.findings.problem != nil {
		return condition.False(kind, s.findings.problem.Reason, s.findings.problem.Message)
	}
	return condition.False(kind, reasonWaiting, "")
}

// failing reports whether the installation of the virtual machine failed.
func (s *scope) failing() bool {
	action := s.findings.outcome.Action
	return s.systemID() != "" && !s.findings.ready && (action == lifecycle.Retry || action == lifecycle.Failed || s.retrying())
}

// observeVM sets the host of the virtual machine and its resource usage in the status.
func (s *scope) observeVM(status *infrav1.MaasMachineStatus) {
	status.ProvisioningMode = infrav1.ProvisioningModeBareMetal
	if !s.machine.Spec.IsLXD() {
		return
	}
	status.ProvisioningMode = infrav1.ProvisioningModeLXD
	if place := lxd.PlacementOf(s.machine); place != nil {
		status.LXDHost, status.LXDProject = place.Host, place.Project
		status.VMResourceUsage = usage(place.Cores, place.MemoryMiB, place.DiskGB)
	} else if s.systemID() == "" {
		status.LXDHost, status.LXDProject, status.VMResourceUsage = "", "", nil
	}
	if m := s.observed; m != nil {
		status.VMResourceUsage = usage(m.CPUCount, m.MemoryMiB, int(placement.DiskBytes(*m)/placement.BytesPerGB))
		if m.Pod != nil && m.Pod.Name != "" {
			status.LXDHost = m.Pod.Name
		}
	}
}

func usage(cores, memory, disk int) *infrav1.VMResourceUsage {
	return &infrav1.VMResourceUsage{AllocatedCores: &cores, AllocatedMemory: &memory, AllocatedDisk: &disk}
}
