// SPDX-License-Identifier: Apache-2.0

package bounds_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/hack/generate/bounds"
	"github.com/openshift/hypershift/support/quantity"
)

// durations is the pattern of durations.
const durations = `^[+-]?(0|(0*[0-9]{1,5}(\.[0-9]*)?h|0*[0-9]{1,7}(\.[0-9]*)?m|0*[0-9]{1,9}(\.[0-9]*)?s` +
	`|0*[0-9]{1,12}(\.[0-9]*)?ms|0*[0-9]{1,15}(\.[0-9]*)?(us|µs|μs)|0*[0-9]{1,18}(\.[0-9]*)?ns` +
	`|\.[0-9]+(h|m|s|ms|us|µs|μs|ns)){1,9}` +
	`|0*[0-9]{6}(\.[0-9]*)?h([0-9]{1,7}(\.[0-9]*)?m)?([0-9]{1,9}(\.[0-9]*)?s)?|2562047h47m16\.854775807s)$`

// crd returns a CRD of a kind with some fields of spec.
func crd(t *testing.T, kind, fields string) map[string]any {
	t.Helper()
	text := "{metadata: {name: x}, spec: {group: hypershift.openshift.io, names: {kind: " + kind +
		"}, versions: [{name: v1beta1, " +
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
		"does not change a field that the Go type lacks": {
			"NodePool", "{another: {type: integer}}", "{another: {type: integer}}",
		},
		"does not change a kind without a Go type": {
			"Another", "{replicas: {type: integer}}", "{replicas: {type: integer}}",
		},
		"bounds a duration by a rule, whose message has an example": {
			"NodePool", "{nodeDrainTimeout: {type: string}}",
			"{nodeDrainTimeout: {type: string, maxLength: 64, x-kubernetes-validations: [" +
				"{message: 'nodeDrainTimeout must be a duration of at most 999999h, such as 30m or 1h30m', rule: 'self.matches(r''" + durations + "'')'}]}}",
		},
		"keeps the rule of a field that already bounds its text": {
			"NodePool", "{nodeDrainTimeout: {type: string, x-kubernetes-validations: [{rule: 'self.matches(r''^[0-9]h$'')'}]}}",
			"{nodeDrainTimeout: {type: string, maxLength: 64, x-kubernetes-validations: [{rule: 'self.matches(r''^[0-9]h$'')'}]}}",
		},
		"does not rely on a rule that only compares with the old value": {
			"NodePool", "{nodeDrainTimeout: {type: string, maxLength: 9, x-kubernetes-validations: [{rule: 'oldSelf.matches(r''^0'')'}]}}",
			"{nodeDrainTimeout: {type: string, maxLength: 9, x-kubernetes-validations: [{rule: 'oldSelf.matches(r''^0'')'}, " +
				"{message: 'nodeDrainTimeout must be a duration of at most 999999h, such as 30m or 1h30m', rule: 'self.matches(r''" + durations + "'')'}]}}",
		},
		"bounds a quantity by a rule, whose message has an example": {
			"NodePool", "{platform: {properties: {kubevirt: {properties: {compute: {properties: {memory: {pattern: '^.*$'}}}}}}}}",
			"{platform: {properties: {kubevirt: {properties: {compute: {properties: {memory: {maxLength: 256, x-kubernetes-validations: [" +
				"{message: 'memory must be a quantity such as 8Gi', rule: 'type(self) == int || self.matches(r''" +
				quantity.Pattern + "'')'}]}}}}}}}}",
		},
		"refuses arrays for text that has a format": {
			"NodePool", "{clusterName: {type: string, format: uri}}",
			"{clusterName: {type: string, format: uri, minItems: 1, maxItems: 0}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, got := NewWithT(t), crd(t, tc.kind, tc.before)
			for range 2 { // Applying the bounds twice must not change them.
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
