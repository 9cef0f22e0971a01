// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct{ names, err string }{
		"When all names are valid, it should accept them":             {names: "go.mod\x00docs/how to/a.md\x00.ci/run"},
		"When a name contains a colon, it should name the file":       {names: "go.mod\x00images/node:1.36.3/kubelet\x00", err: "node:1.36.3"},
		"When a name is reserved on Windows, it should name the file": {names: "docs/aux.md\x00", err: "aux.md"},
		"When there is no file, it should return no error":            {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := check(strings.NewReader(tc.names))
			if tc.err == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
		})
	}
}
