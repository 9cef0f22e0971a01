// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
)

func TestFitting(t *testing.T) {
	large, small := scenario{needs: needs{controlPlanes: 2, machines: 3}},
		scenario{needs: needs{controlPlanes: 1, machines: 1}}
	for _, tc := range []struct {
		name    string
		free    amount
		pending []scenario
		running int
		want    int
	}{
		{"the first that fits is started", large.needs.amount(), []scenario{large, small}, 1, 0},
		{"a small one goes before a large one that waits", small.needs.amount(), []scenario{large, small}, 1, 1},
		{"nothing fits", amount{}, []scenario{large, small}, 1, -1},
		{"one that needs more than there is runs alone", amount{}, []scenario{large}, 0, 0},
		{"each kind of need counts", amount{cpu: 10000, memory: 10000, machines: 0}, []scenario{small}, 1, -1},
		{"nothing is left to start", large.needs.amount(), nil, 1, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect((&schedule{free: tc.free}).fitting(tc.pending, tc.running)).To(Equal(tc.want))
		})
	}
}

func TestLinesHaveTheScenariosName(t *testing.T) {
	var out bytes.Buffer
	l := &lines{out: &out, prefix: "[upgrade] "}
	for _, text := range []string{"one\ntw", "o\n", "\nrest"} {
		fmt.Fprint(l, text)
	}
	l.end()
	l.end()
	NewWithT(t).Expect(out.String()).To(Equal("[upgrade] one\n[upgrade] two\n[upgrade] \n[upgrade] rest\n"))
}
