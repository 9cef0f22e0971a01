// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/openshift/hypershift/"

// parts lists the parts of the product in which reading a field has consequences: the CLIs only write specs. The API's
// own methods count; generated code does not.
var parts = []string{"api", "hypershift-operator", "control-plane-operator", "cluster-api-provider-maas", "ignition-server", "node-network", "support"}

// reporter is the name of files that read fields only to report that they have no effect.
const reporter = "noeffect.go"

// source is the type-checked code of the parts.
type source struct {
	fset    *token.FileSet
	imports types.Importer
	// exports maps import paths to the files with the export data of all packages.
	exports map[string]string
	// uses maps a field's package, type and name to the packages that read it, without the module's name.
	uses map[string][]string
	// texts maps a package, without the module's name, to its string literals.
	texts map[string][]string
}

// listed is the output of `go list` for a package.
type listed struct {
	ImportPath, Export, Dir string
	GoFiles                 []string
}

// load compiles the parts' dependencies (mostly from the build cache) and type-checks the parts themselves.
func load() (*source, error) {
	packages, err := list()
	if err != nil {
		return nil, err
	}
	s := &source{fset: token.NewFileSet(), exports: map[string]string{}, uses: map[string][]string{}, texts: map[string][]string{}}
	for _, p := range packages {
		s.exports[p.ImportPath] = p.Export
	}
	s.imports = importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(s.exports[path]) })
	for _, p := range packages {
		if hasConsequences(p.ImportPath) {
			if err := s.read(p); err != nil {
				return nil, fmt.Errorf("package %s: %w", p.ImportPath, err)
			}
		}
	}
	return s, nil
}

func list() ([]listed, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Export,Dir,GoFiles"}
	for _, part := range parts {
		args = append(args, module+part+"/...")
	}
	var stderr bytes.Buffer
	cmd := exec.Command("go", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w: %s", err, stderr.String())
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the list of packages: %w", err)
		}
		packages = append(packages, p)
	}
}

// hasConsequences excludes metrics: they count the values of a spec and have no other effect.
func hasConsequences(path string) bool {
	part, rest, _ := strings.Cut(strings.TrimPrefix(path, module), "/")
	return strings.HasPrefix(path, module) && slices.Contains(parts, part) && rest != "metrics"
}

// read type-checks a package and records the fields that it reads.
func (s *source) read(p listed) error {
	var files []*ast.File
	for _, name := range p.GoFiles {
		if strings.HasPrefix(name, "zz_generated") {
			continue
		}
		file, err := parser.ParseFile(s.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{}}
	// Without generated code the API does not implement all interfaces, which does not matter here.
	config := types.Config{Importer: s.imports, Error: func(error) {}}
	if _, err := config.Check(p.ImportPath, s.fset, files, info); err != nil && !strings.HasPrefix(p.ImportPath, module+"api/") {
		return err
	}
	name := strings.TrimPrefix(p.ImportPath, module)
	for _, file := range files {
		if filepath.Base(s.fset.File(file.FileStart).Name()) != reporter {
			s.readFile(file, info, name)
		}
	}
	return nil
}

func (s *source) readFile(file *ast.File, info *types.Info, user string) {
	moved := movedIn(file, info)
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.SelectorExpr:
			if !moved[n] {
				s.note(info.Selections[n], user)
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				s.texts[user] = append(s.texts[user], text)
			}
		case *ast.CallExpr:
			s.noteConversion(n, info, user)
		}
		return true
	})
}

// movedIn returns the selectors by which a field is only written, or only copied to the field of the same name in
// another API object. Such code does not use its value.
func movedIn(file *ast.File, info *types.Info) map[*ast.SelectorExpr]bool {
	moved := map[*ast.SelectorExpr]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		assignment, ok := node.(*ast.AssignStmt)
		if !ok || assignment.Tok != token.ASSIGN {
			return true
		}
		for i, left := range assignment.Lhs {
			to, ok := left.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			moved[to] = true
			if len(assignment.Lhs) != len(assignment.Rhs) {
				continue
			}
			if extended := appendedTo(assignment.Rhs[i]); extended != nil && extended.Sel.Name == to.Sel.Name {
				moved[extended] = true
			}
			if from, ok := assignment.Rhs[i].(*ast.SelectorExpr); ok && from.Sel.Name == to.Sel.Name && ofAPI(info, from) && ofAPI(info, to) {
				moved[from] = true
			}
		}
		return true
	})
	return moved
}

// appendedTo returns the list that an expression appends to; nil if it is no append. An append to the same list does
// not use the list's value.
func appendedTo(e ast.Expr) *ast.SelectorExpr {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return nil
	}
	if name, ok := call.Fun.(*ast.Ident); !ok || name.Name != "append" {
		return nil
	}
	list, _ := call.Args[0].(*ast.SelectorExpr)
	return list
}

// ofAPI reports whether a selector selects a field of the API.
func ofAPI(info *types.Info, selector *ast.SelectorExpr) bool {
	selection := info.Selections[selector]
	return selection != nil && selection.Kind() == types.FieldVal && selection.Obj().Pkg() != nil && slices.Contains(walked, selection.Obj().Pkg().Path())
}

// note records the selected field and those of embedded structs in its path.
func (s *source) note(selection *types.Selection, user string) {
	if selection == nil {
		return
	}
	t, path := selection.Recv(), selection.Index()
	if selection.Kind() != types.FieldVal {
		path = path[:len(path)-1] // The last step selects a method.
	}
	for _, index := range path {
		owner, structure, ok := structOf(t)
		if !ok {
			return
		}
		field := structure.Field(index)
		s.add(keyOf(owner, field), user)
		t = field.Type()
	}
}

// noteConversion records all fields of a struct that is converted to another type, since a conversion uses them all.
func (s *source) noteConversion(call *ast.CallExpr, info *types.Info, user string) {
	if !info.Types[call.Fun].IsType() || len(call.Args) != 1 {
		return
	}
	if owner, structure, ok := structOf(info.TypeOf(call.Args[0])); ok {
		for field := range structure.Fields() {
			s.add(keyOf(owner, field), user)
		}
	}
}

func (s *source) add(key, user string) {
	if !slices.Contains(s.uses[key], user) {
		s.uses[key] = append(s.uses[key], user)
	}
}

// keyOf returns a name for a field that is independent of how its type was loaded, from source or compiled.
func keyOf(owner *types.Named, field *types.Var) string {
	if owner == nil || owner.Obj().Pkg() == nil {
		return ""
	}
	return owner.Obj().Pkg().Path() + "." + owner.Obj().Name() + "." + field.Name()
}

func structOf(t types.Type) (*types.Named, *types.Struct, bool) {
	if t == nil {
		return nil, nil, false
	}
	if pointer, ok := t.Underlying().(*types.Pointer); ok {
		t = pointer.Elem()
	}
	named, _ := types.Unalias(t).(*types.Named)
	structure, ok := t.Underlying().(*types.Struct)
	return named, structure, ok
}

// typeOf returns a type of the API.
func (s *source) typeOf(path, name string) (types.Type, error) {
	p, err := s.imports.Import(path)
	if err != nil {
		return nil, fmt.Errorf("importing %s: %w", path, err)
	}
	object := p.Scope().Lookup(name)
	if object == nil {
		return nil, fmt.Errorf("package %s has no type %s", path, name)
	}
	return object.Type(), nil
}
