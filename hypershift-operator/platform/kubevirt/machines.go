// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	kubevirtv1 "github.com/openshift/hypershift/api/kubevirt/v1alpha1"
	"github.com/openshift/hypershift/api/util/contract"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/condition"
)

// provisioned and stages are condition types of a KubevirtMachine, in the order in which they become true.
const provisioned = "VMProvisioned"

var stages = []string{provisioned, "BootstrapExecSucceeded"}

// Underway returns the reasons that the provider reports while a disk is filled and a virtual machine starts.
func (*Platform) Underway() []string {
	return []string{"VMNotReady", "DVNotReady", "DVPending", "Bootstrapping"}
}

// MachineCapacity returns the zero value, because a Node's size is known only after it has joined.
func (*Platform) MachineCapacity(client.Object) platform.MachineCapacity {
	return platform.MachineCapacity{}
}

// AdjustMachine does nothing, because every change needs a new virtual machine.
func (*Platform) AdjustMachine(platform.Pool, client.Object) {}

// MachineTemplates returns an empty KubevirtMachineTemplateList.
func (*Platform) MachineTemplates() client.ObjectList {
	return &kubevirtv1.KubevirtMachineTemplateList{}
}

// Machines returns an empty KubevirtMachineList.
func (*Platform) Machines() client.ObjectList { return &kubevirtv1.KubevirtMachineList{} }

// CustomizeIgnition adds nothing.
func (*Platform) CustomizeIgnition(platform.Pool, *ignition.Config) {}

// MachineProblem returns the first stage that a virtual machine has not reached.
func (*Platform) MachineProblem(obj client.Object) (reason, message string) {
	return says(obj).Problem(stages...)
}

// MachineStart returns a start that begins when the virtual machine runs. Before that it waits for a volume or a host,
// for which a replacement would wait too.
func (*Platform) MachineStart(obj client.Object) platform.MachineStart {
	return says(obj).StartedWith(provisioned)
}

func says(obj client.Object) platform.ProviderSays {
	machine, ok := obj.(*kubevirtv1.KubevirtMachine)
	if !ok {
		return platform.ProviderSays{}
	}
	status := machine.Status
	return platform.ProviderSays{FailureReason: status.FailureReason, FailureMessage: status.FailureMessage, Conditions: status.Conditions}
}

// liveMigratable is the condition type of a virtual machine that supports live migration.
const liveMigratable = "VMLiveMigratable"

// MachineConditions reports whether all virtual machines support live migration.
func (*Platform) MachineConditions(machines []client.Object) []metav1.Condition {
	var reasons, messages []string
	for _, machine := range machines {
		if c := contract.Find(says(machine).Conditions, liveMigratable); c != nil && c.Status == metav1.ConditionFalse {
			reasons = append(reasons, c.Reason)
			messages = append(messages, fmt.Sprintf("Machine %s: %s: %s", machine.GetName(), c.Reason, c.Message))
		}
	}
	if len(messages) == 0 {
		return []metav1.Condition{condition.True(hyperv1.NodePoolKubeVirtLiveMigratableType, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)}
	}
	slices.Sort(reasons)
	slices.Sort(messages)
	return []metav1.Condition{condition.False(hyperv1.NodePoolKubeVirtLiveMigratableType, strings.Join(slices.Compact(reasons), ","),
		condition.Shorten(fmt.Sprintf("%d of %d machines cannot be moved while they run\n%s", len(messages), len(machines), strings.Join(messages, "\n")), mostMachines))}
}

// mostMachines limits the length of a condition message about all machines, in bytes.
const mostMachines = 3000

// NodeStartup returns zero, so that the traits apply.
func (*Platform) NodeStartup(platform.Pool) time.Duration { return 0 }

// OrphanedMachines removes no machine, because the provider deletes each virtual machine. It returns which machine the
// deletion waits for, and which kubeconfig is used.
func (*Platform) OrphanedMachines(ctx context.Context, c client.Client, cluster platform.Cluster) (string, error) {
	machines := &kubevirtv1.KubevirtMachineList{}
	if err := c.List(ctx, machines, client.InNamespace(cluster.Namespace)); err != nil {
		return "", fmt.Errorf("listing KubevirtMachines of namespace %s: %w", cluster.Namespace, err)
	}
	if len(machines.Items) == 0 {
		return "", nil
	}
	first := &machines.Items[0]
	waits := fmt.Sprintf("Waiting for %s to be deleted; KubevirtMachine %s", condition.Count(len(machines.Items), "virtual machine"), first.Name)
	if name := (&Platform{}).CredentialsSecret(cluster.HostedCluster); name != "" {
		waits += fmt.Sprintf(" by the kubeconfig of Secret %s/%s", cluster.HostedCluster.Namespace, name)
	}
	if c := contract.Find(first.Status.Conditions, clusterv1.ReadyCondition); c != nil && c.Message != "" {
		return waits + ": " + c.Message, nil
	}
	return waits, nil
}

// UserDataFormat returns Ignition for CoreOS, on which OpenShift runs. For other distributions it depends on the
// image's name.
func (*Platform) UserDataFormat(_ context.Context, _ client.Reader, pool platform.Pool, _ bool) (platform.UserData, error) {
	if readsIgnition(pool) {
		return platform.UserData{Format: hyperv1.UserDataIgnition}, nil
	}
	return platform.UserData{Format: hyperv1.UserDataCloudConfig}, nil
}
