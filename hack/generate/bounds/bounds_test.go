// SPDX-License-Identifier: Apache-2.0

package bounds_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/hack/generate/bounds"
)

// crd is a CRD of a kind with some fields of spec.
func crd(t *testing.T, kind, fields string) map[string]any {
	t.Helper()
	text := "{metadata: {name: x}, spec: {group: hypershift.openshift.io, names: {kind: " + kind + "}, versions: [{name: v1beta1, " +
		"schema: {openAPIV3Schema: {properties: {metadata: {type: object}, spec: {properties: " + fields + "}}}}}]}}"
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

func TestApply(t *testing.T) {
	for name, tc := range map[string]struct{ kind, before, after string }{
		"gives integers the limits of their Go type": {
			"NodePool", "{replicas: {type: integer, format: int32}}",
			"{replicas: {type: integer, format: int32, minimum: -2147483648, maximum: 2147483647}}",
		},
		"keeps tighter limits": {
			"NodePool", "{replicas: {minimum: 1, maximum: 9}}", "{replicas: {minimum: 1, maximum: 9}}",
		},
		"leaves a field as it is that the Go type does not have": {
			"NodePool", "{another: {type: integer}}", "{another: {type: integer}}",
		},
		"leaves a kind as it is that has no Go type": {
			"Another", "{replicas: {type: integer}}", "{replicas: {type: integer}}",
		},
		"refuses arrays in the place of text that has a format": {
			"NodePool", "{clusterName: {type: string, format: uri}}", "{clusterName: {type: string, format: uri, minItems: 1, maxItems: 0}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, got := NewWithT(t), crd(t, tc.kind, tc.before)
			for range 2 { // The bounds of a CRD that has them stay.
				g.Expect(bounds.Apply(got)).To(Succeed())
			}
			if diff := cmp.Diff(written(t, crd(t, tc.kind, tc.after)), written(t, got)); diff != "" {
				t.Errorf("the bounds differ (-want +got):\n%s", diff)
			}
		})
	}
}

func written(t *testing.T, crd map[string]any) string {
	t.Helper()
	text, err := yaml.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
