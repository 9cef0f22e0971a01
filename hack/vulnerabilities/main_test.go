// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// answer is a tool that prints a finding of the Go toolchain and one of a module, as govulncheck does.
const answer = `#!/bin/sh
cat <<EOF
{"config": {"scanner_name": "govulncheck"}}
{"finding": {"osv": "GO-2026-1", "fixed_version": "v1.26.10", "trace": [{"module": "stdlib", "version": "v1.26.8"}]}}
{"finding": {"osv": "GO-2026-2", "fixed_version": "v1.2.4",
  "trace": [{"module": "example.com/m", "version": "v1.2.3"}]}}
{"finding": {"osv": "GO-2026-2", "fixed_version": "v1.2.4",
  "trace": [{"module": "example.com/m", "version": "v1.2.3", "function": "F"}]}}
EOF
`

func TestReport(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "govulncheck")
	if err := os.WriteFile(tool, []byte(answer), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		accepted map[string]string
		want     string
	}{
		"a module with a known vulnerability": {want: "program: GO-2026-2 in example.com/m v1.2.3, fixed in v1.2.4"},
		"an accepted vulnerability":           {accepted: map[string]string{"GO-2026-2": "F is not called"}},
		"an entry that nothing needs": {accepted: map[string]string{"GO-2026-2": "F is not called", "GO-2025-9": "old"},
			want: "GO-2025-9 is accepted, but in no program"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			linked, err := scan(tool, "file:///database", "program")
			g.Expect(err).NotTo(HaveOccurred())
			out := &strings.Builder{}
			err = report(out, map[string][]vulnerability{"program": linked}, tc.accepted)
			g.Expect(out.String()).To(ContainSubstring("1 known vulnerabilities: release it with go1.26.10 or later"))
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			}
		})
	}
}
