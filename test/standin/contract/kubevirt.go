// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubevirtv1 "github.com/openshift/hypershift/api/kubevirt/v1alpha1"
)

// webhookCertificate is a file that the providers of KubeVirt and AWS need to start.
const webhookCertificate = "/tmp/k8s-webhook-server/serving-certs/tls.crt"

// KubeVirt returns the contract of the provider of virtual machines.
func KubeVirt() Contract {
	return Contract{
		Kind: "KubevirtCluster", AddToScheme: kubevirtv1.AddToScheme,
		Machine:   func() client.Object { return &kubevirtv1.KubevirtMachine{} },
		Finalizer: "kubevirtmachine.infrastructure.cluster.x-k8s.io",
		Files:     map[string]string{webhookCertificate: "CERTIFICATE"},
		order:     virtualMachine,
		providerID: func(object client.Object, _ Machine) string {
			return "kubevirt://" + object.GetName()
		},
		specify: func(object client.Object, providerID string, _ Machine) {
			object.(*kubevirtv1.KubevirtMachine).Spec.ProviderID = &providerID
		},
		report: reportVirtualMachine,
		wait: func(object client.Object, now metav1.Time, why string) {
			mark(&object.(*kubevirtv1.KubevirtMachine).Status.Conditions, now, false, why, stage{"VMProvisioned", "WaitingForBootstrapData"}, ready("WaitingForBootstrapData"))
		},
	}
}

// virtualMachine returns a request whose image is the container disk of the root volume. The operator requests no other
// volume.
func virtualMachine(_ context.Context, _ client.Reader, object client.Object, userData []byte) (Order, error) {
	var spec struct {
		DataVolumeTemplates []struct {
			Spec struct {
				Source struct {
					Registry struct {
						URL string `json:"url"`
					} `json:"registry"`
				} `json:"source"`
			} `json:"spec"`
		} `json:"dataVolumeTemplates"`
	}
	machine := object.(*kubevirtv1.KubevirtMachine)
	if err := json.Unmarshal(machine.Spec.VirtualMachineTemplate.Spec.Raw, &spec); err != nil {
		return Order{}, fmt.Errorf("reading the virtual machine of KubevirtMachine %s: %w", machine.Name, err)
	}
	if len(spec.DataVolumeTemplates) != 1 {
		return Order{}, fmt.Errorf("the virtual machine of KubevirtMachine %s has %d root volumes", machine.Name, len(spec.DataVolumeTemplates))
	}
	return Order{Image: spec.DataVolumeTemplates[0].Spec.Source.Registry.URL, UserData: userData}, nil
}

func reportVirtualMachine(object client.Object, now metav1.Time, m Machine) {
	status := &object.(*kubevirtv1.KubevirtMachine).Status
	status.Ready = m.Running
	status.Addresses = nil
	for _, a := range addresses(m) {
		status.Addresses = append(status.Addresses, kubevirtv1.MachineAddress{Type: string(a.Type), Address: a.Address})
	}
	status.FailureReason, status.FailureMessage = failure(m)
	mark(&status.Conditions, now, m.Running, "the virtual machine starts", stage{"VMProvisioned", "VMNotReady"}, stage{"BootstrapExecSucceeded", "Bootstrapping"}, ready("VMNotReady"))
}
