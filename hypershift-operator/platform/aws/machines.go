// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"errors"
	"fmt"
	"time"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/openshift/hypershift/api/aws/v1beta2"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/contract"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/finalizer"
)

// instanceReady and securityGroupsReady are condition types that the provider sets on an AWSMachine.
const (
	instanceReady       = "InstanceReady"
	securityGroupsReady = "SecurityGroupsReady"
)

// Underway returns the reasons that the provider reports while an instance starts.
func (*Platform) Underway() []string {
	return []string{"InstanceProvisionStarted", "InstanceNotReady"}
}

// Machines returns an empty AWSMachineList.
func (*Platform) Machines() client.ObjectList { return &awsv1.AWSMachineList{} }

// UserDataFormat returns Ignition, which a payload's AMI reads.
func (*Platform) UserDataFormat(context.Context, client.Reader, platform.Pool, bool) (platform.UserData, error) {
	return platform.UserData{Format: hyperv1.UserDataIgnition}, nil
}

// CustomizeIgnition adds nothing.
func (*Platform) CustomizeIgnition(platform.Pool, *ignition.Config) {}

// MachineProblem returns the reason why the provider failed a machine, or else which stage is not ready yet.
func (*Platform) MachineProblem(obj client.Object) (reason, message string) {
	return says(obj).Problem(instanceReady, securityGroupsReady)
}

// MachineStart returns a start that begins with an instance. Before EC2 provides an instance, a replacement would not
// get one either.
func (*Platform) MachineStart(obj client.Object) platform.MachineStart {
	machine, ok := obj.(*awsv1.AWSMachine)
	if !ok {
		return platform.MachineStart{}
	}
	var start platform.MachineStart
	if machine.Spec.InstanceID != nil {
		start.Begun = machine.CreationTimestamp.Time
		if c := contract.Find(machine.Status.Conditions, instanceReady); c != nil {
			start.Begun = c.LastTransitionTime.Time
		}
	}
	start.Reason, start.Message = says(obj).Failure()
	return start
}

func says(obj client.Object) platform.ProviderSays {
	machine, ok := obj.(*awsv1.AWSMachine)
	if !ok {
		return platform.ProviderSays{}
	}
	status := machine.Status
	return platform.ProviderSays{FailureReason: status.FailureReason, FailureMessage: status.FailureMessage, Conditions: status.Conditions}
}

// NodeStartup returns zero, so that the traits apply.
func (*Platform) NodeStartup(platform.Pool) time.Duration { return 0 }

// OrphanedMachines removes machines if AWS no longer accepts the cluster's identity, because no component could
// terminate their instances. It returns the instances that are left, or otherwise the machine that the deletion waits
// for.
func (p *Platform) OrphanedMachines(ctx context.Context, c client.Client, cluster platform.Cluster) (string, error) {
	machines := &awsv1.AWSMachineList{}
	if err := c.List(ctx, machines, client.InNamespace(cluster.Namespace)); err != nil {
		return "", fmt.Errorf("listing AWSMachines of namespace %s: %w", cluster.Namespace, err)
	}
	if len(machines.Items) == 0 {
		return "", nil
	}
	if known(cluster.HostedCluster) {
		first := &machines.Items[0]
		waits := fmt.Sprintf("Waiting for AWS to terminate %s; AWSMachine %s", condition.Count(len(machines.Items), "instance"), first.Name)
		if _, message := p.MachineProblem(first); message != "" {
			waits += ": " + message
		}
		return waits, nil
	}
	var failures []error
	left := ""
	for i := range machines.Items {
		machine := &machines.Items[i]
		if !machine.DeletionTimestamp.IsZero() {
			left += " " + ptr.Deref(machine.Spec.InstanceID, machine.Name)
			failures = append(failures, finalizer.Remove(ctx, c, machine, awsv1.MachineFinalizer))
		}
	}
	return "AWS does not accept the cluster's identity, so its instances cannot be terminated: terminate these by hand:" + left, errors.Join(failures...)
}

// known reports whether AWS still accepts the identity of the cluster's components, which the control-plane-operator
// checks. A successful check counts even if the issuer's documents cannot be published any more: AWS may still read
// the previous ones.
func known(hc *hyperv1.HostedCluster) bool {
	said := func(conditionType hyperv1.ConditionType, status metav1.ConditionStatus) bool {
		return meta.IsStatusConditionPresentAndEqual(hc.Status.Conditions, string(conditionType), status)
	}
	if said(hyperv1.ValidAWSIdentityProvider, metav1.ConditionTrue) {
		return true
	}
	return !said(hyperv1.ValidAWSIdentityProvider, metav1.ConditionFalse) && !said(hyperv1.ValidOIDCConfiguration, metav1.ConditionFalse)
}
