// SPDX-License-Identifier: Apache-2.0

package nodeinput_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/openshift/hypershift/support/nodeinput"
)

var update = flag.Bool("update", false, "write the table into the documentation")

// page is the page with the table, between these markers.
const (
	page  = "../../docs/reference/node-configuration.md"
	begin = "<!-- inputs: go test ./support/nodeinput -run Documented -update -->\n"
	end   = "<!-- /inputs -->"
)

func TestInputsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	table, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no marks for the table", page)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+nodeinput.Table()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(nodeinput.Table(), table); diff != "" {
		t.Errorf("run the test with -update (-want +got):\n%s", diff)
	}
}

func TestInputs(t *testing.T) {
	seen := map[string]bool{}
	for _, in := range nodeinput.Inputs {
		if key := in.Field + in.Feeds; seen[key] {
			t.Errorf("%s is there twice", in.Field)
		} else {
			seen[key] = true
		}
		if reaches := len(in.Renders) > 0; reaches == (in.Effect == nodeinput.Nothing) || reaches != (in.Feeds != "") {
			t.Errorf("%s: an input reaches files through the ignition-server, or nothing at all", in.Field)
		}
	}
}
