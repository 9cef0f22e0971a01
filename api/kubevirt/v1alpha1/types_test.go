// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestWireFormat reads objects as the provider and KubeVirt's manifests write them, and writes them again as they were.
func TestWireFormat(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	const machine = `{"virtualMachineBootstrapCheck":{"checkStrategy":"none"},"virtualMachineTemplate":{
		"metadata":{"namespace":"vms","labels":{"pool":"a"},"annotations":{"x":"y"}},
		"spec":{"runStrategy":"Always","dataVolumeTemplates":[{"metadata":{"name":"root"},"spec":{"storage":{"resources":{"requests":{"storage":"32Gi"}}},
			"source":{"registry":{"url":"docker://quay.example/disk:1","pullMethod":"node"}}}}],
			"template":{"spec":{"evictionStrategy":"External","domain":{"cpu":{"cores":2,"dedicatedCpuPlacement":true},"memory":{"guest":"8Gi"},
				"devices":{"disks":[{"name":"root","disk":{"bus":"virtio"}}],"interfaces":[{"name":"default","masquerade":{}}]}},
				"networks":[{"name":"default","pod":{}}],"volumes":[{"name":"root","dataVolume":{"name":"root"}}]}}}}`
	for kind, object := range map[string]string{
		"KubevirtCluster": `{"spec":{"controlPlaneEndpoint":{"host":"10.0.0.1","port":6443},
			"infraClusterSecretRef":{"kind":"Secret","namespace":"clusters-a","name":"infra"}},
			"status":{"ready":true,"conditions":[{"type":"LoadBalancerAvailable","status":"True","lastTransitionTime":"2026-11-22T10:00:00Z"}]}}`,
		"KubevirtMachine": `{"spec":` + machine + `,"providerID":"kubevirt://a-1","infraClusterSecretRef":{"namespace":"clusters-a","name":"infra"}},
			"status":{"ready":false,"initialization":{"provisioned":true},"nodeupdated":true,"loadBalancerConfigured":true,"addresses":[{"type":"InternalIP","address":"10.0.0.7"}],
			"failureReason":"CreateError","failureMessage":"no volume",
			"conditions":[{"type":"VMProvisioned","status":"False","severity":"Info","lastTransitionTime":"2026-11-22T10:00:00Z","reason":"VMNotReady","message":"x"}]}}`,
		"KubevirtMachineTemplate": `{"spec":{"template":{"spec":` + machine + `}}}}`,
	} {
		t.Run("When a "+kind+" is read and written, it should be what it was", func(t *testing.T) {
			made, err := scheme.New(GroupVersion.WithKind(kind))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(object), made); err != nil {
				t.Fatal(err)
			}
			written, err := json.Marshal(made.DeepCopyObject())
			if err != nil {
				t.Fatal(err)
			}
			var want, got map[string]any
			if err := json.Unmarshal([]byte(object), &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(written, &got); err != nil {
				t.Fatal(err)
			}
			delete(got, "metadata")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s differs from what was read (-want +got):\n%s", kind, diff)
			}
		})
	}
}
