// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"reflect"
	"slices"
	"testing"

	"github.com/openshift/hypershift/support/nodeinput"
)

// TestEveryInputIsInTheTable fails if an input was added without a row that states how its change affects machines.
func TestEveryInputIsInTheTable(t *testing.T) {
	input := reflect.TypeFor[Input]()
	for i := range input.NumField() {
		name := input.Field(i).Name
		// ConfigHash identifies all other inputs together.
		if name != "ConfigHash" && !slices.ContainsFunc(nodeinput.Inputs, func(in nodeinput.Input) bool { return in.Feeds == name }) {
			t.Errorf("Input.%s has no row in nodeinput.Inputs: say there what it renders and what its change does", name)
		}
	}
	for _, in := range nodeinput.Inputs {
		if _, ok := input.FieldByName(in.Feeds); in.Feeds != "" && !ok {
			t.Errorf("nodeinput.Inputs says that %s becomes Input.%s, which is not there", in.Field, in.Feeds)
		}
	}
}
