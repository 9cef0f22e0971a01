// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"fmt"
	"hash/fnv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/openshift/hypershift/api/aws/v1beta2"
)

// AWS returns the contract of the provider of EC2 instances.
func AWS() Contract {
	return Contract{
		Kind: "AWSCluster", AddToScheme: awsv1.AddToScheme,
		Machine:   func() client.Object { return &awsv1.AWSMachine{} },
		Finalizer: awsv1.MachineFinalizer,
		// EC2 requires a role, and a token to assume it with.
		Files: map[string]string{
			webhookCertificate: "CERTIFICATE", "/home/.aws/credentials": "role_arn", "/var/run/secrets/openshift/serviceaccount/token": ".",
		},
		order: func(_ context.Context, _ client.Reader, object client.Object, userData []byte) (Order, error) {
			machine := object.(*awsv1.AWSMachine)
			if !ptr.Deref(machine.Spec.UncompressedUserData, false) || !machine.Spec.CloudInit.InsecureSkipSecretsManager {
				return Order{}, fmt.Errorf("AWSMachine %s requests compressed user-data or user-data in a secret, which Ignition does not read", machine.Name)
			}
			return Order{Image: ptr.Deref(machine.Spec.AMI.ID, ""), UserData: userData}, nil
		},
		providerID: func(_ client.Object, m Machine) string { return "aws:///" + m.Zone + "/" + instanceID(m) },
		specify: func(object client.Object, providerID string, m Machine) {
			spec := &object.(*awsv1.AWSMachine).Spec
			spec.ProviderID, spec.InstanceID = &providerID, ptr.To(instanceID(m))
		},
		report: reportInstance,
		wait: func(object client.Object, now metav1.Time, why string) {
			mark(&object.(*awsv1.AWSMachine).Status.Conditions, now, false, why, stage{"InstanceReady", "WaitingForBootstrapData"}, ready("WaitingForBootstrapData"))
		},
	}
}

// instanceID returns an ID in the form of an EC2 instance ID.
func instanceID(m Machine) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(m.ID))
	return fmt.Sprintf("i-0%016x", h.Sum64())
}

func reportInstance(object client.Object, now metav1.Time, m Machine) {
	status := &object.(*awsv1.AWSMachine).Status
	status.Ready, status.InstanceState = m.Running, ptr.To("pending")
	if m.Running {
		status.InstanceState = ptr.To("running")
	}
	status.Addresses = addresses(m)
	status.FailureReason, status.FailureMessage = failure(m)
	mark(&status.Conditions, now, true, "", stage{conditionType: "SecurityGroupsReady"})
	mark(&status.Conditions, now, m.Running, "the instance starts", stage{"InstanceReady", "InstanceNotReady"}, ready("InstanceNotReady"))
}
