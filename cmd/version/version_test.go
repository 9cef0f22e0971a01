// SPDX-License-Identifier: Apache-2.0

package version

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestPrint(t *testing.T) {
	both := Info{Client: "abc", Server: "def", Supported: []string{"5.0", "4.19"}, SupportedKubernetes: []string{"1.36"}}
	tests := []struct {
		name, output string
		info         Info
		want         string
	}{
		{"When the operator is known it should tell both", "", both, "Client Version: abc\nServer Version: def\nServer Supports OCP Versions: 5.0, 4.19\nServer Supports Kubernetes Versions: 1.36\n"},
		{"When the operator is not known it should say why", "", Info{Client: "abc", ServerError: "no rights"}, "Client Version: abc\nServer Version: unknown: no rights\n"},
		{"When YAML is wanted it should be YAML", "yaml", both, "client: abc\nserver: def\nsupportedKubernetesVersions:\n- \"1.36\"\nsupportedVersions:\n- \"5.0\"\n- \"4.19\"\n"},
		{"When JSON is wanted it should be JSON", "json", Info{Client: "abc"}, "{\n  \"client\": \"abc\"\n}\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			var out strings.Builder
			g.Expect(print(&out, tt.info, tt.output)).To(Succeed())
			g.Expect(out.String()).To(Equal(tt.want))
		})
	}
	NewWithT(t).Expect(print(&strings.Builder{}, both, "xml")).NotTo(Succeed())
}
