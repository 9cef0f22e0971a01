// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
)

func pointer[T any](value T) *T { return &value }

func TestAddToScheme(t *testing.T) {
	known := runtime.NewScheme()
	if err := AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"MaasCluster", "MaasMachine", "MaasMachineTemplate"} {
		t.Run("When "+kind+" is made by its name it and its list should be known", func(t *testing.T) {
			for _, name := range []string{kind, kind + "List"} {
				if _, err := known.New(GroupVersion.WithKind(name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestFailureDomains(t *testing.T) {
	cases := []struct {
		name, in, failure string
		want              FailureDomains
	}{
		{
			name: "When the value is a list, it should keep the order of the list",
			in:   `[{"name":"b"},{"name":"a","controlPlane":true}]`,
			want: FailureDomains{{Name: "b"}, {Name: "a", ControlPlane: pointer(true)}},
		},
		{
			name: "When the value is a map from an older release, it should become a list sorted by name",
			in:   `{"b":{"controlPlane":true},"a":{"attributes":{"rack":"1"}}}`,
			want: FailureDomains{{Name: "a", Attributes: map[string]string{"rack": "1"}}, {Name: "b", ControlPlane: pointer(true)}},
		},
		{name: "When the map is empty, it should become an empty list", in: `{}`, want: FailureDomains{}},
		{name: "When the value is null, it should become nil", in: `null`, want: nil},
		{name: "When the value is neither a list nor a map, it should return an error", in: `"rack-1"`, failure: "neither a list"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			var got FailureDomains
			err := json.Unmarshal([]byte(test.in), &got)
			if test.failure != "" {
				if err == nil || !strings.Contains(err.Error(), test.failure) {
					t.Fatalf("want an error with %q, got %v", test.failure, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestIsLXD(t *testing.T) {
	cases := []struct {
		name string
		spec MaasMachineSpec
		want bool
	}{
		{"When no provisioning mode is set, it should be bare metal", MaasMachineSpec{}, false},
		{"When the mode is lxd, it should be a virtual machine", MaasMachineSpec{ProvisioningMode: ProvisioningModeLXD}, true},
		{"When the mode is bare-metal, it should not be a virtual machine", MaasMachineSpec{ProvisioningMode: ProvisioningModeBareMetal}, false},
		{"When only lxd.enabled is set, it should be a virtual machine", MaasMachineSpec{LXD: &LXDConfig{Enabled: pointer(true)}}, true},
		{"When lxd is set without enabled, it should not be a virtual machine", MaasMachineSpec{LXD: &LXDConfig{}}, false},
		{"When the mode is bare-metal, it should override lxd.enabled",
			MaasMachineSpec{ProvisioningMode: ProvisioningModeBareMetal, LXD: &LXDConfig{Enabled: pointer(true)}}, false},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			if got := test.spec.IsLXD(); got != test.want {
				t.Errorf("want %v, got %v", test.want, got)
			}
		})
	}
}

func TestAPIEndpoint(t *testing.T) {
	t.Run("When the endpoint is unset, the JSON should omit it", func(t *testing.T) {
		data, err := json.Marshal(MaasClusterSpec{DNSDomain: "maas"})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(data); got != `{"dnsDomain":"maas"}` {
			t.Error(got)
		}
	})
	t.Run("When only the host or only the port is set, the endpoint should not be zero", func(t *testing.T) {
		if (APIEndpoint{Port: 6443}).IsZero() || (APIEndpoint{Host: "h"}).IsZero() || !(APIEndpoint{}).IsZero() {
			t.Error("only the empty endpoint is zero")
		}
	})
}
