// SPDX-License-Identifier: Apache-2.0

package dnssize_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/openshift/hypershift/control-plane-operator/guestcomponents/dnssize"
)

func TestReplicas(t *testing.T) {
	for nodes, want := range map[int]int32{0: 1, 16: 1, 17: 2, 160: 10, 5000: 32} {
		t.Run(fmt.Sprintf("%d nodes have %d pods", nodes, want), func(t *testing.T) {
			NewWithT(t).Expect(dnssize.Replicas(nodes)).To(Equal(want))
		})
	}
}

func TestMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes       int
		limit, want string
	}{
		"a new cluster has the smallest limit":              {0, "0", "170Mi"},
		"a hundred nodes keep it":                           {100, "170Mi", "170Mi"},
		"one node more doubles it":                          {101, "170Mi", "340Mi"},
		"nodes that come back do not shrink it":             {60, "340Mi", "340Mi"},
		"half of the nodes shrink it":                       {50, "340Mi", "170Mi"},
		"a limit that a user raised returns":                {10, "2Gi", "170Mi"},
		"a limit that a user raised by a little returns":    {60, "200Mi", "170Mi"},
		"the largest clusters have the largest limit":       {5000, "170Mi", "1360Mi"},
		"a large cluster that loses nodes keeps the larger": {1900, "1360Mi", "1360Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			request, limit := dnssize.Memory(tc.nodes, resource.MustParse(tc.limit))
			g := NewWithT(t)
			g.Expect(limit.String()).To(Equal(tc.want))
			g.Expect(request.Cmp(limit)).To(Equal(-1))
		})
	}
}
