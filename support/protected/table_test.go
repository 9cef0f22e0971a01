// SPDX-License-Identifier: Apache-2.0

package protected_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/protected"
)

var update = flag.Bool("update", false, "write the table into the documentation")

// page is the page with the table, between these markers.
const (
	page  = "../../docs/reference/protected-metadata.md"
	begin = "<!-- table: go test ./support/protected -run Documented -update -->\n"
	end   = "<!-- /table -->"
)

func TestTableIsDocumented(t *testing.T) {
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
		if err := os.WriteFile(page, []byte(before+begin+protected.Markdown()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(protected.Markdown(), table); diff != "" {
		t.Errorf("run the test with -update (-want +got):\n%s", diff)
	}
}

// metadata matches names and prefixes of annotations, labels and finalizers.
var metadata = regexp.MustCompile(`^[a-z0-9.-]*(hypershift\.openshift\.io|hypershift\.io|api\.openshift\.com|spectrocloud\.com|cluster\.x-k8s\.io)(/[A-Za-z0-9._/-]*)?$`)

// notMetadata lists constants that look like names of metadata but are not.
var notMetadata = map[string]string{
	"hypershift.openshift.io":              "a group",
	"certificates.hypershift.openshift.io": "a group",
	"infrastructure.cluster.x-k8s.io":      "a group",
	"hypershift.openshift.io/Failed":       "a type of conditions",
}

// TestEveryConstantHasARow fails if a constant of api/ has no row that states its Writer.
func TestEveryConstantHasARow(t *testing.T) {
	found := 0
	err := filepath.WalkDir("../../api", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, name := range constants(file) {
			if !metadata.MatchString(name.value) || notMetadata[name.value] != "" {
				continue
			}
			found++
			key := strings.TrimSuffix(name.value, "/")
			if len(protected.Find(name.value)) == 0 && len(protected.Find(key+"/x")) == 0 && len(protected.Find(key+".x")) == 0 {
				t.Errorf("%s: %s (%s) is in no row: decide in support/protected who may set it", path, name.name, name.value)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 100 {
		t.Errorf("found %d constants only; the test does not see them any more", found)
	}
}

type constant struct{ name, value string }

func constants(file *ast.File) []constant {
	var found []constant
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, spec := range gen.Specs {
			values, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for i, value := range values.Values {
				literal, ok := value.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					continue
				}
				if text, err := strconv.Unquote(literal.Value); err == nil {
					found = append(found, constant{values.Names[i].Name, text})
				}
			}
		}
	}
	return found
}

func TestRows(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]bool{}
	for _, row := range protected.Table() {
		g.Expect(row.Key).To(MatchRegexp(`^[A-Za-z0-9._/*-]+$`), "a key is written into CEL without quoting")
		g.Expect(row.Why).NotTo(BeEmpty(), row.Key)
		g.Expect(row.On).NotTo(BeEmpty(), row.Key)
		for _, kind := range row.On {
			id := strings.Join([]string{row.Key, string(row.Form), string(kind)}, " ")
			g.Expect(seen[id]).To(BeFalse(), "two rows for %s", id)
			seen[id] = true
			g.Expect(kind == protected.Elsewhere).To(Equal(row.Writer == protected.Programs),
				"%s: programs write where tenants do not", id)
		}
		if row.Writer == protected.Administrator || row.Writer == protected.Operator {
			g.Expect(row.Key).NotTo(HaveSuffix("*"), "the policies know complete names only")
		}
	}
}
