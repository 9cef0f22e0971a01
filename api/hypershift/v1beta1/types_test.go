// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/hypershift/api/util/ipnet"
)

func TestAddToScheme(t *testing.T) {
	known := runtime.NewScheme()
	if err := AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{
		"HostedCluster", "NodePool", "HostedControlPlane", "ControlPlaneComponent", "HCPEtcdBackup", "CertificateSigningRequestApproval",
	} {
		t.Run("When "+kind+" is made by its name it and its list should be known", func(t *testing.T) {
			for _, name := range []string{kind, kind + "List"} {
				if _, err := known.New(GroupVersion.WithKind(name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestResource(t *testing.T) {
	t.Run("When Resource is called with a resource name, it should return that resource in the HyperShift API group", func(t *testing.T) {
		want := schema.GroupResource{Group: "hypershift.openshift.io", Resource: "nodepools"}
		if diff := cmp.Diff(want, Resource("nodepools")); diff != "" {
			t.Error(diff)
		}
	})
}

func TestGetAPIServer(t *testing.T) {
	set := &configv1.APIServerSpec{}
	cases := []struct {
		name string
		in   *ClusterConfiguration
		want *configv1.APIServerSpec
	}{
		{"When there is no configuration, it should return nil", nil, nil},
		{"When the configuration has no API server, it should return nil", &ClusterConfiguration{}, nil},
		{"When the configuration has an API server, it should return its spec", &ClusterConfiguration{APIServer: set}, set},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			if got := test.in.GetAPIServer(); got != test.want {
				t.Errorf("want %v, got %v", test.want, got)
			}
		})
	}
}

// TestWireForm guards what a control-plane-operator of another release reads: an unset block must not be there at all.
func TestWireForm(t *testing.T) {
	t.Run("When optional blocks of a HostedControlPlane are unset, the JSON should omit them", func(t *testing.T) {
		written := fields(t, HostedControlPlaneSpec{ReleaseImage: "i", Networking: ClusterNetworking{
			ClusterNetwork: []ClusterNetworkEntry{{CIDR: *ipnet.MustParseCIDR("10.132.0.0/14")}},
		}})
		for _, field := range []string{"monitoring", "autoNode", "configuration", "secretEncryption", "capabilities", "pausedUntil"} {
			if _, has := written[field]; has {
				t.Errorf("%s is written: %s", field, written[field])
			}
		}
		want := `{"clusterNetwork":[{"cidr":"10.132.0.0/14"}]}`
		if got := string(written["networking"]); got != want {
			t.Errorf("networking: want %s, got %s", want, got)
		}
	})
	t.Run("When a HostedCluster's status is empty, the JSON should omit the newer blocks", func(t *testing.T) {
		written := fields(t, HostedClusterStatus{})
		for _, field := range []string{"controlPlaneVersion", "autoNode", "secretEncryption", "configuration", "version"} {
			if _, has := written[field]; has {
				t.Errorf("%s is written: %s", field, written[field])
			}
		}
	})
	t.Run("When the available updates are unknown, the JSON should contain null, not an empty list", func(t *testing.T) {
		if got := string(fields(t, ClusterVersionStatus{})["availableUpdates"]); got != "null" {
			t.Errorf("want null, got %s", got)
		}
	})
}

func fields(t *testing.T, value any) map[string]json.RawMessage {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	written := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &written); err != nil {
		t.Fatal(err)
	}
	return written
}
