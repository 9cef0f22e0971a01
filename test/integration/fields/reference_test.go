// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var reference = filepath.Join("..", "..", "..", "docs", "reference", "fields.md")

const introduction = `# Fields, and who reads them

Every field that a user can set does something, or the operators say that it does not. It is refused, or named as "without effect" in
` + "`ValidHostedControlPlaneConfiguration` (HostedCluster, with a Kubernetes payload), `AllFieldsHonored` (NodePool) or a condition of the Maas kinds." + `
An OpenShift payload's own operators read the HostedControlPlane, which gets all fields of a HostedCluster.

This page is written by ` + "`UPDATE=1 go test ./test/integration/fields`" + `, which looks for the code that reads each field.
`

// TestReference checks that docs/reference/fields.md is up to date.
func TestReference(t *testing.T) {
	s, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	page := &strings.Builder{}
	page.WriteString(introduction)
	for _, spec := range specs {
		fields, err := s.fieldsOf(spec.path, spec.spec, spec.passedTo)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(page, "\n## %s\n\n| field of `spec` | read by |\n|---|---|\n", spec.kind)
		for _, field := range summarized(fields) {
			fmt.Fprintf(page, "| `%s` | %s |\n", field.path, s.reader(t, spec.kind, field))
		}
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(reference, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), page.String()); diff != "" {
		t.Errorf("docs/reference/fields.md is stale (-page +code): run this test with UPDATE=1\n%s", diff)
	}
}

// summarized returns fields with only the first of those that share an excuse.
func summarized(fields []field) []field {
	var all []field
	for _, field := range fields {
		at := slices.IndexFunc(excuses, func(e excuse) bool { return len(field.readers) == 0 && within(field.path, e.path) && e.says != "" })
		if at >= 0 {
			field.path = excuses[at].path
		}
		if len(all) == 0 || all[len(all)-1].path != field.path {
			all = append(all, field)
		}
	}
	return all
}

// reader describes the readers of a field by parts of the product, which change less often than packages.
func (s *source) reader(t *testing.T, kind string, field field) string {
	t.Helper()
	if len(field.readers) == 0 {
		excuse, err := s.excuse(kind, field.path)
		if err != nil {
			t.Error(err)
		}
		return "no component: " + excuse
	}
	var readers []string
	for _, reader := range field.readers {
		part, _, _ := strings.Cut(reader, "/")
		readers = append(readers, part)
	}
	slices.Sort(readers)
	return strings.Join(slices.Compact(readers), ", ")
}
