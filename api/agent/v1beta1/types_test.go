// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// TestWireFormat reads objects as the provider writes them, and writes them again as they were.
func TestWireFormat(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for kind, object := range map[string]string{
		"AgentCluster": `{"spec":{"ignitionEndpoint":{"url":"https://10.0.0.1:31000/ignition","caCertificateReference":{"namespace":"clusters-a","name":"ca"}},
			"controlPlaneEndpoint":{"host":"10.0.0.1","port":6443}},
			"status":{"ready":true,"clusterDeploymentReference":{"name":"a","namespace":"clusters-a"}}}`,
		"AgentMachine": `{"spec":{"agentLabelSelector":{"matchLabels":{"size":"large"}},"providerID":"agent://4c4c4544-0000-0000-0000-000000000000"},
			"status":{"ready":false,"agentRef":{"namespace":"agents","name":"host-1"},"addresses":[{"type":"InternalIP","address":"10.0.0.7"}],
			"failureReason":"CreateError","failureMessage":"no disk",
			"conditions":[{"type":"AgentReserved","status":"False","severity":"Info","lastTransitionTime":"2026-11-22T10:00:00Z","reason":"NoSuitableAgents","message":"x"}]}}`,
		"AgentMachineTemplate": `{"spec":{"template":{"spec":{"agentLabelSelector":{"matchExpressions":[{"key":"rack","operator":"In","values":["7"]}]}}}}}`,
	} {
		t.Run("When a "+kind+" is read and written, it should be what it was", func(t *testing.T) {
			made, err := scheme.New(GroupVersion.WithKind(kind))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(object), made); err != nil {
				t.Fatal(err)
			}
			written, err := json.Marshal(made)
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
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s was written as %s", object, written)
			}
		})
	}
}
