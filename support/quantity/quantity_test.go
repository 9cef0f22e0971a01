// SPDX-License-Identifier: Apache-2.0

package quantity_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/openshift/hypershift/support/quantity"
)

func TestParse(t *testing.T) {
	for _, text := range []string{"0", "500m", "8Gi", "1.5", "-1", "+2k", ".5", "1e3", "1E-003", "1e999"} {
		t.Run("parses "+text+" as Kubernetes does", func(t *testing.T) {
			g := NewWithT(t)
			parsed, err := quantity.Parse(text)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(parsed.Cmp(resource.MustParse(text))).To(BeZero())
		})
	}
	// Comparing any of the first three would exceed the time limit of a test.
	for _, text := range []string{
		"1e2000000000", "1e-2000000000", "99999999999999999999e2000000000", "", "much", "8 Gi", "1e1.5",
		strings.Repeat("9", quantity.MaxLength+1),
	} {
		t.Run("refuses "+text, func(t *testing.T) {
			_, err := quantity.Parse(text)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("such as 500m or 8Gi")))
		})
	}
}
