// SPDX-License-Identifier: Apache-2.0

package toy_test

import (
	"testing"

	"github.com/openshift/hypershift/hack/mutation/testdata/toy"
)

func TestTax(t *testing.T) {
	t.Parallel()
	if got := toy.Tax(100); got != 20 {
		t.Errorf("got %d", got)
	}
}

func TestTip(t *testing.T) {
	if got := toy.Tip(100); got != 5 {
		t.Errorf("got %d", got)
	}
}
