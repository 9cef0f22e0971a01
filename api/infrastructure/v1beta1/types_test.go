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
			name: "When it is a list it should be read in its order",
			in:   `[{"name":"b"},{"name":"a","controlPlane":true}]`,
			want: FailureDomains{{Name: "b"}, {Name: "a", ControlPlane: pointer(true)}},
		},
		{
			name: "When it is the map of older releases it should be read by name",
			in:   `{"b":{"controlPlane":true},"a":{"attributes":{"rack":"1"}}}`,
			want: FailureDomains{{Name: "a", Attributes: map[string]string{"rack": "1"}}, {Name: "b", ControlPlane: pointer(true)}},
		},
		{name: "When the map is empty it should be an empty list", in: `{}`, want: FailureDomains{}},
		{name: "When it is null it should be none", in: `null`, want: nil},
		{name: "When it is neither it should say so", in: `"rack-1"`, failure: "neither a list"},
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
		{"When nothing is said it should be bare metal", MaasMachineSpec{}, false},
		{"When the mode is lxd it should be a virtual machine", MaasMachineSpec{ProvisioningMode: ProvisioningModeLXD}, true},
		{"When the mode is bare-metal it should not be one", MaasMachineSpec{ProvisioningMode: ProvisioningModeBareMetal}, false},
		{"When only lxd.enabled is said it should be one", MaasMachineSpec{LXD: &LXDConfig{Enabled: pointer(true)}}, true},
		{"When lxd is there without enabled it should not be one", MaasMachineSpec{LXD: &LXDConfig{}}, false},
		{"When the mode is bare-metal it should win over lxd.enabled",
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
	t.Run("When the endpoint is not known it should not be written, since host and port would be wrong", func(t *testing.T) {
		data, err := json.Marshal(MaasClusterSpec{DNSDomain: "maas"})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(data); got != `{"dnsDomain":"maas"}` {
			t.Error(got)
		}
	})
	t.Run("When only the port is known it should count as known", func(t *testing.T) {
		if (APIEndpoint{Port: 6443}).IsZero() || (APIEndpoint{Host: "h"}).IsZero() || !(APIEndpoint{}).IsZero() {
			t.Error("only the empty endpoint is zero")
		}
	})
}
