// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzLabelValue converts MAAS zone names, which may be any text. The result must be a valid label value.
func FuzzLabelValue(f *testing.F) {
	for _, zone := range []string{"default", "rack 1", "", "-a-", "größer", "a/b", "zone_with_a_name_that_is_as_long_as_a_label_may_be_and_a_little_more-ä"} {
		f.Add(zone)
	}
	f.Fuzz(func(t *testing.T, zone string) {
		if problems := validation.IsValidLabelValue(labelValue(zone)); len(problems) > 0 {
			t.Fatalf("zone %q becomes %q: %v", zone, labelValue(zone), problems)
		}
	})
}
