// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// programs lists the source folders of the programs for users.
var programs = []string{
	"api", "cluster-api-provider-maas", "cmd", "control-plane-operator", "hypershift-operator", "ignition-server",
	"node-agent", "node-network", "product-cli", "support", "tunnel",
}

// sourceNames reads constants, events and JSON fields in the Go sources of the programs.
func sourceNames(tree string) ([]name, error) {
	s := sources{constants: map[string]ast.Expr{}}
	for _, folder := range programs {
		err := filepath.WalkDir(filepath.Join(tree, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			return s.read(tree, path)
		})
		if err != nil {
			return nil, fmt.Errorf("reading the sources in %s: %w", folder, err)
		}
	}
	return s.names(), nil
}

// sources are the parsed files.
type sources struct {
	files []source
	// constants maps the package and name of a constant to its value, such as "v1beta1.NodePoolAnnotation".
	constants map[string]ast.Expr
}

type source struct {
	path string
	file *ast.File
}

func (s *sources) read(tree, path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	relative, err := filepath.Rel(tree, path)
	if err != nil {
		return err
	}
	s.files = append(s.files, source{relative, file})
	eachConstant(file, func(c constant) { s.constants[file.Name.Name+"."+c.name] = c.value })
	return nil
}

// constant is a constant with an explicit value.
type constant struct {
	name  string
	value ast.Expr
	// condition reports whether its type is ConditionType.
	condition bool
}

// eachConstant calls do for each constant with an explicit value.
func eachConstant(file *ast.File, do func(constant)) {
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			values := spec.(*ast.ValueSpec)
			kind, _ := values.Type.(*ast.Ident)
			for i, identifier := range values.Names {
				if i < len(values.Values) {
					do(constant{identifier.Name, values.Values[i], kind != nil && kind.Name == "ConditionType"})
				}
			}
		}
	}
}

func (s *sources) names() []name {
	var names []name
	for _, source := range s.files {
		eachConstant(source.file, func(c constant) {
			if n, ok := classify(source.path, c, s.text(source.file.Name.Name, c.value, 0)); ok {
				names = append(names, n)
			}
		})
		names = append(names, s.events(source)...)
		if strings.HasPrefix(source.path, "cmd/") {
			names = append(names, jsonFields(source)...)
		}
	}
	return names
}

// depth limits how many constants text follows.
const depth = 5

// text returns the value of a constant that is a string, a concatenation of strings, or another such constant;
// otherwise "".
func (s *sources) text(pkg string, value ast.Expr, level int) string {
	if level > depth {
		return ""
	}
	switch value := value.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(value.Value)
		if value.Kind == token.STRING && err == nil {
			return text
		}
	case *ast.BinaryExpr:
		left, right := s.text(pkg, value.X, level+1), s.text(pkg, value.Y, level+1)
		if value.Op == token.ADD && left != "" && right != "" {
			return left + right
		}
	case *ast.Ident:
		return s.text(pkg, s.constants[pkg+"."+value.Name], level+1)
	case *ast.SelectorExpr:
		if imported, ok := value.X.(*ast.Ident); ok {
			return s.text(pkg, s.constants[packageOf(imported.Name)+"."+value.Sel.Name], level+1)
		}
	case *ast.CallExpr: // A conversion.
		if len(value.Args) == 1 {
			return s.text(pkg, value.Args[0], level+1)
		}
	}
	return ""
}

// packageOf returns the name under which the sources import a package.
func packageOf(imported string) string {
	switch imported {
	case "hyperv1", "infrav1":
		return "v1beta1"
	default:
		return imported
	}
}

var (
	camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)
	qualified = regexp.MustCompile(`^[a-z0-9.-]+\.[a-z]+/[A-Za-z0-9._-]+$`)
	byReason  = regexp.MustCompile(`^[Rr]eason[A-Z]|Reason$`)
)

// classify determines what a constant names for users, from its identifier and form.
func classify(path string, c constant, text string) (name, bool) {
	if number, ok := c.value.(*ast.BasicLit); ok && number.Kind == token.INT {
		return name{"exit-code", number.Value + " " + c.name}, filepath.Dir(path) == filepath.Join("cmd", "exit")
	}
	switch own := strings.HasPrefix(path, "api/"); {
	case camelCase.MatchString(text):
		return classifyWord(c, text, own)
	case qualified.MatchString(text):
		return classifyQualified(c.name, text, own)
	default:
		return name{}, false
	}
}

func classifyWord(c constant, text string, own bool) (name, bool) {
	switch {
	case c.condition || own && strings.Contains(c.name, "Condition"):
		return name{"condition", text}, true
	default:
		return name{"reason", text}, byReason.MatchString(c.name)
	}
}

func classifyQualified(identifier, text string, own bool) (name, bool) {
	ours := own || strings.Contains(text, "hypershift")
	switch {
	case strings.Contains(identifier, "Finalizer"):
		return name{}, false
	case strings.Contains(identifier, "Label"):
		return name{"label", text}, ours
	default:
		return name{"annotation", text}, own || ours && strings.Contains(identifier, "Annotation")
	}
}

// events returns the reasons of events: the fourth argument of an event recorder call.
func (s *sources) events(source source) []name {
	const reason = 3
	var names []name
	ast.Inspect(source.file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) <= reason {
			return true
		}
		if method, ok := call.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Eventf" {
			if text := s.text(source.file.Name.Name, call.Args[reason], 0); camelCase.MatchString(text) {
				names = append(names, name{"reason", text})
			}
		}
		return true
	})
	return names
}

// jsonFields returns the JSON fields of the types in the commands.
func jsonFields(source source) []name {
	folder := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(source.path)), "cmd/")
	var names []name
	ast.Inspect(source.file, func(node ast.Node) bool {
		field, ok := node.(*ast.Field)
		if !ok || field.Tag == nil {
			return true
		}
		tag, err := strconv.Unquote(field.Tag.Value)
		if err != nil {
			return true
		}
		if key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ","); key != "" && key != "-" {
			names = append(names, name{"json-field", folder + " " + key})
		}
		return true
	})
	return names
}
