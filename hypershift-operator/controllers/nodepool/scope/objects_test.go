// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"math"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestSeconds(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Seconds(90 * time.Minute)).To(HaveValue(BeEquivalentTo(5400)))
	g.Expect(Seconds(100*365*24*time.Hour)).To(HaveValue(BeEquivalentTo(math.MaxInt32)), "the API has no more")
}
