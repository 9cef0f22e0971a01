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
	t.Run("When an error needs a resource it should be of this group", func(t *testing.T) {
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
		{"When there is no configuration it should be nil", nil, nil},
		{"When the API server has none it should be nil", &ClusterConfiguration{}, nil},
		{"When the API server has one it should be that", &ClusterConfiguration{APIServer: set}, set},
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
	t.Run("When optional blocks of a HostedControlPlane are unset they should not be written", func(t *testing.T) {
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
	t.Run("When a HostedCluster's status is empty nothing of the newer blocks should be written", func(t *testing.T) {
		written := fields(t, HostedClusterStatus{})
		for _, field := range []string{"controlPlaneVersion", "autoNode", "secretEncryption", "configuration", "version"} {
			if _, has := written[field]; has {
				t.Errorf("%s is written: %s", field, written[field])
			}
		}
	})
	t.Run("When no updates could be looked up it should be written as null, which is not the same as none", func(t *testing.T) {
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
