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
		{"When the operator's version is known, it should print both versions", "", both, "Client Version: abc\nServer Version: def\nServer Supports OCP Versions: 5.0, 4.19\nServer Supports Kubernetes Versions: 1.36\n"},
		{"When the operator's version is unknown, it should print the reason", "", Info{Client: "abc", ServerError: "no rights"}, "Client Version: abc\nServer Version: unknown: no rights\n"},
		{"When the output is yaml, it should print YAML", "yaml", both, "client: abc\nserver: def\nsupportedKubernetesVersions:\n- \"1.36\"\nsupportedVersions:\n- \"5.0\"\n- \"4.19\"\n"},
		{"When the output is json, it should print JSON", "json", Info{Client: "abc"}, "{\n  \"client\": \"abc\"\n}\n"},
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
