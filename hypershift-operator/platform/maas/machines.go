// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/finalizer"
)

// Machines returns an empty MaasMachineList.
func (*Platform) Machines() client.ObjectList { return &infrav1.MaasMachineList{} }

// MachineProblem returns what the provider reports while a machine is not ready. The message names the machine in MAAS
// and what to do. The host of a virtual machine comes last: if no other condition is false, the host is why the Node is
// not ready.
func (*Platform) MachineProblem(obj client.Object) (reason, message string) {
	machine, ok := obj.(*infrav1.MaasMachine)
	if !ok {
		return "", ""
	}
	for _, conditionType := range []string{clusterv1.ReadyCondition, "MachineDeployed", "LXDHostSelected"} {
		c := meta.FindStatusCondition(machine.Status.Conditions, conditionType)
		if c != nil && c.Status != metav1.ConditionTrue && c.Reason != "" {
			return c.Reason, c.Message
		}
	}
	return "", ""
}

// RepairAdvice implements platform.RepairAdviser with the provider's reasons. A problem with MAAS, with the
// credentials or with the image affects every machine.
func (p *Platform) RepairAdvice(obj client.Object) (hostLost bool, shared string) {
	switch reason, _ := p.MachineProblem(obj); reason {
	case "HostUnavailable":
		return true, ""
	case "MAASUnreachable", "MAASUnavailable", "MAASError", "MAASInvalidParameter", "MAASCredentialsMissing",
		"MAASUnauthorized", "MAASForbidden", "CredentialsOfAnotherUser", "ImageNotFound":
		return false, reason
	}
	return false, ""
}

// OrphanedMachines removes machines that have no resources in MAAS, if there are no credentials for MAAS. It never
// removes a machine that has a system ID, or that may have just been allocated, because it would stay allocated
// unnoticed. The returned sentence says what the user can do.
func (p *Platform) OrphanedMachines(ctx context.Context, c client.Client, cluster platform.Cluster) (string, error) {
	machines := &infrav1.MaasMachineList{}
	if err := c.List(ctx, machines, client.InNamespace(cluster.Namespace)); err != nil {
		return "", fmt.Errorf("listing MaasMachines of namespace %s: %w", cluster.Namespace, err)
	}
	if len(machines.Items) == 0 {
		return p.handedOver(ctx, c, cluster)
	}
	lost, err := providerLost(ctx, c, cluster.Namespace)
	if err != nil {
		return "", err
	}
	if lost {
		return stranded(machines.Items, cluster.Namespace), nil
	}
	credentials, err := p.ReconcileCredentials(ctx, c, cluster)
	if err != nil {
		return "", err
	}
	if credentials.Condition.Status == metav1.ConditionTrue {
		return waiting(machines.Items), nil
	}
	held := 0
	var failures []error
	for i := range machines.Items {
		machine := &machines.Items[i]
		if machine.DeletionTimestamp.IsZero() || !neverAllocated(machine) {
			held++
			continue
		}
		failures = append(failures, finalizer.Remove(ctx, c, machine, infrav1.MachineFinalizer))
	}
	if held == 0 {
		return "", errors.Join(failures...)
	}
	return fmt.Sprintf("%s cannot be released in MAAS: %s. The MaasMachines are kept as the record of the allocated machines. "+
		"To delete them anyway, release their machines in MAAS by hand and remove their finalizer %s",
		condition.Count(held, "machine"), credentials.Condition.Message, infrav1.MachineFinalizer), errors.Join(failures...)
}

// handedOver returns what a deleted MaasCluster waits for while it releases machines whose MaasMachines are gone. An
// example is a machine whose power control does not respond. handedOver also updates the credentials, which the
// provider needs until MAAS has released all machines.
func (p *Platform) handedOver(ctx context.Context, c client.Client, cluster platform.Cluster) (string, error) {
	infras := &infrav1.MaasClusterList{}
	if err := c.List(ctx, infras, client.InNamespace(cluster.Namespace)); err != nil {
		return "", fmt.Errorf("listing MaasClusters of namespace %s: %w", cluster.Namespace, err)
	}
	for i := range infras.Items {
		deleting := meta.FindStatusCondition(infras.Items[i].Status.Conditions, clusterv1.DeletingCondition)
		if infras.Items[i].DeletionTimestamp.IsZero() || deleting == nil || deleting.Status != metav1.ConditionTrue {
			continue
		}
		_, err := p.ReconcileCredentials(ctx, c, cluster)
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			err = nil
		}
		return fmt.Sprintf("MaasCluster %s: %s", infras.Items[i].Name, deleting.Message), err
	}
	return "", nil
}

// providerLost reports whether the provider was deleted together with its namespace.
func providerLost(ctx context.Context, c client.Client, namespace string) (bool, error) {
	ns := &corev1.Namespace{}
	err := c.Get(ctx, client.ObjectKey{Name: namespace}, ns)
	if err != nil || ns.DeletionTimestamp.IsZero() {
		return false, client.IgnoreNotFound(err)
	}
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: platform.ProviderName}, &appsv1.Deployment{})
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// stranded returns a message with the machines that must be released by hand. Their provider was deleted with the
// namespace, in which no pod can start any more.
func stranded(machines []infrav1.MaasMachine, namespace string) string {
	var names []string
	for i := range machines {
		if id := machines[i].Spec.SystemID; id != nil && *id != "" {
			names = append(names, *id)
		}
	}
	return fmt.Sprintf("Namespace %s was deleted before its machines, together with the provider that releases them. Release these in "+
		"MAAS by hand: %s; then remove the finalizers of the objects that are left in the namespace", namespace, strings.Join(names, ", "))
}

// neverAllocated reports whether the provider has not started with a machine. The provider writes a condition before it
// allocates.
func neverAllocated(machine *infrav1.MaasMachine) bool {
	return machine.Spec.SystemID == nil && machine.Spec.ProviderID == nil && machine.Status.MachineState == nil &&
		len(machine.Status.Conditions) == 0
}

// waiting returns the message of the first machine that reports a problem, or else the number of remaining machines.
func waiting(machines []infrav1.MaasMachine) string {
	for i := range machines {
		if _, message := (*Platform)(nil).MachineProblem(&machines[i]); message != "" {
			return fmt.Sprintf("MaasMachine %s: %s", machines[i].Name, message)
		}
	}
	return fmt.Sprintf("Waiting for MAAS to release %s", condition.Count(len(machines), "machine"))
}
