// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"time"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentv1 "github.com/openshift/hypershift/api/agent/v1beta1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/contract"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/condition"
)

// agentReserved and stages are condition types of an AgentMachine, in the order in which they become true.
const agentReserved = "AgentReserved"

var stages = []string{agentReserved, "AgentSpecSynced", "AgentValidated", "AgentRequirementsMet", "Installed"}

// Underway returns the reasons that the provider reports while the assisted service installs a host.
func (*Platform) Underway() []string {
	return []string{"AgentNotYetFound", "InstallationNotStarted", "InstallationInProgress"}
}

// ValidateNodePool rejects an invalid label selector.
func (*Platform) ValidateNodePool(pool platform.Pool) error {
	if _, err := metav1.LabelSelectorAsSelector(selector(pool)); err != nil {
		return fmt.Errorf("spec.platform.agent.agentLabelSelector: %w", err)
	}
	return nil
}

func selector(pool platform.Pool) *metav1.LabelSelector {
	if pool.NodePool.Spec.Platform.Agent == nil {
		return nil
	}
	return pool.NodePool.Spec.Platform.Agent.AgentLabelSelector
}

// MachineTemplate returns a template that selects agents with the pool's labels.
func (*Platform) MachineTemplate(pool platform.Pool) client.Object {
	template := &agentv1.AgentMachineTemplate{}
	template.Spec.Template.Spec.AgentLabelSelector = selector(pool).DeepCopy()
	return template
}

// RollingTemplate returns the template itself, because a different selector selects different hosts.
func (*Platform) RollingTemplate(template client.Object) client.Object { return template }

// MachineCapacity returns the zero value, because the agent is chosen only after the machine exists.
func (*Platform) MachineCapacity(client.Object) platform.MachineCapacity {
	return platform.MachineCapacity{}
}

// AdjustMachine does nothing.
func (*Platform) AdjustMachine(platform.Pool, client.Object) {}

// MachineTemplates returns an empty AgentMachineTemplateList.
func (*Platform) MachineTemplates() client.ObjectList { return &agentv1.AgentMachineTemplateList{} }

// Machines returns an empty AgentMachineList.
func (*Platform) Machines() client.ObjectList { return &agentv1.AgentMachineList{} }

// UserDataFormat returns Ignition. The provider reads the bearer token from it, and the assisted service passes it to
// the host.
func (*Platform) UserDataFormat(context.Context, client.Reader, platform.Pool, bool) (platform.UserData, error) {
	return platform.UserData{Format: hyperv1.UserDataIgnition}, nil
}

// CustomizeIgnition adds nothing.
func (*Platform) CustomizeIgnition(platform.Pool, *ignition.Config) {}

// MachineProblem returns the first stage that a host has not reached.
func (*Platform) MachineProblem(obj client.Object) (reason, message string) {
	return says(obj).Problem(stages...)
}

// MachineStart returns a start that begins with the reservation of a host. Before that, a replacement would not get a
// host either.
func (*Platform) MachineStart(obj client.Object) platform.MachineStart {
	return says(obj).StartedWith(agentReserved)
}

func says(obj client.Object) platform.ProviderSays {
	machine, ok := obj.(*agentv1.AgentMachine)
	if !ok {
		return platform.ProviderSays{}
	}
	status := machine.Status
	return platform.ProviderSays{FailureReason: status.FailureReason, FailureMessage: status.FailureMessage, Conditions: status.Conditions}
}

// NodeStartup returns zero, so that the traits apply.
func (*Platform) NodeStartup(platform.Pool) time.Duration { return 0 }

// OrphanedMachines removes no machine, because the provider unbinds each host. It reports the hosts that the deletion
// waits for.
func (p *Platform) OrphanedMachines(ctx context.Context, c client.Client, cluster platform.Cluster) (string, error) {
	machines := &agentv1.AgentMachineList{}
	if err := c.List(ctx, machines, client.InNamespace(cluster.Namespace)); err != nil {
		return "", fmt.Errorf("listing AgentMachines of namespace %s: %w", cluster.Namespace, err)
	}
	if len(machines.Items) == 0 {
		return "", nil
	}
	first := &machines.Items[0]
	waits := fmt.Sprintf("Waiting for the assisted service to release %s; AgentMachine %s", condition.Count(len(machines.Items), "host"), first.Name)
	if c := contract.Find(first.Status.Conditions, clusterv1.ReadyCondition); c != nil && c.Message != "" {
		return waits + ": " + c.Message, nil
	}
	return waits, nil
}
