// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestWireFormat reads objects as the provider writes them, and writes them again as they were.
func TestWireFormat(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for kind, object := range map[string]string{
		"AWSCluster": `{"spec":{"network":{"vpc":{"id":"vpc-0a1"},"subnets":[{"id":"subnet-1","isPublic":true}]},"region":"eu-west-1","controlPlaneEndpoint":{"host":"api.example.com","port":443},
			"additionalTags":{"kubernetes.io/cluster/demo-abcde":"owned"}},"status":{"ready":true}}`,
		"AWSMachine": `{"spec":{"providerID":"aws:///eu-west-1a/i-0123456789abcdef0","instanceID":"i-0123456789abcdef0","ami":{"id":"ami-0123456789abcdef0"},
			"instanceType":"m5.large","cloudInit":{}},
			"status":{"ready":true,"instanceState":"running","addresses":[{"type":"InternalIP","address":"10.0.1.7"}],
			"failureReason":"UpdateError","failureMessage":"EC2 instance state \"terminated\" is unexpected",
			"conditions":[{"type":"InstanceReady","status":"False","severity":"Error","lastTransitionTime":"2026-11-22T10:00:00Z","reason":"InstanceTerminated"}]}}`,
		"AWSMachineTemplate": `{"spec":{"template":{"spec":{
			"instanceMetadataOptions":{"httpEndpoint":"enabled","httpProtocolIpv6":"disabled","httpPutResponseHopLimit":2,"httpTokens":"required","instanceMetadataTags":"disabled"},
			"ami":{"id":"ami-1"},"instanceType":"m5.large","additionalTags":{"a":"b"},"iamInstanceProfile":"demo-worker-profile","publicIP":true,
			"additionalSecurityGroups":[{"id":"sg-1"},{"filters":[{"name":"tag:Name","values":["a","b"]}]}],"subnet":{"id":"subnet-1"},
			"rootVolume":{"size":120,"type":"io1","iops":3000,"encrypted":true,"encryptionKey":"arn:aws:kms:eu-west-1:123456789012:key/k"},
			"uncompressedUserData":true,"cloudInit":{"insecureSkipSecretsManager":true,"secureSecretsBackend":"secrets-manager"},
			"spotMarketOptions":{"maxPrice":"0.5"},"tenancy":"dedicated","capacityReservationId":"cr-0123456789abcdef0","marketType":"CapacityBlock",
			"capacityReservationPreference":"CapacityReservationsOnly"}}},"status":{"capacity":{"cpu":"2","memory":"8Gi"}}}`,
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
			for raw, into := range map[string]*map[string]any{object: &want, string(written): &got} {
				if err := json.Unmarshal([]byte(raw), into); err != nil {
					t.Fatal(err)
				}
			}
			delete(got, "metadata")
			if want["status"] == nil {
				delete(got, "status")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-read +written:\n%s", diff)
			}
		})
	}
}
