// SPDX-License-Identifier: Apache-2.0

// Command constants reads names of Go files from its standard input, each terminated by a NUL as `git ls-files -z`
// prints them. It fails for string literals that repeat the value of an exported constant of api: an annotation, label,
// finalizer, condition or key of a Secret. With two copies, the two sides of a contract could diverge unnoticed.
//
// Tests may repeat such a name, since they pin what is transmitted.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

func main() {
	if err := check(".", os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check joins an error for each literal that repeats a constant. The names are relative to root.
func check(root string, names io.Reader) error {
	raw, err := io.ReadAll(names)
	if err != nil {
		return fmt.Errorf("reading the names of files: %w", err)
	}
	tree, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer tree.Close()
	files := token.NewFileSet()
	constants, users := map[string][]string{}, []*ast.File{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(raw), "\x00"), "\x00") {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := tree.ReadFile(name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if strings.HasPrefix(name, "api/") {
			collect(parsed, constants)
		} else {
			users = append(users, parsed)
		}
	}
	if len(constants) == 0 {
		return errors.New("no constant of api/ was found: run this at the top of the tree, with all its files")
	}
	var errs []error
	for _, file := range users {
		errs = append(errs, repeats(files, file, constants)...)
	}
	return errors.Join(errs...)
}

// collect adds the constants of a file that packages share, by value.
func collect(file *ast.File, constants map[string][]string) {
	for _, declaration := range file.Decls {
		block, ok := declaration.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		conditions := ofConditions(block)
		for _, spec := range block.Specs {
			constant, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for i, name := range constant.Names {
				value, ok := text(constant, i)
				if ok && name.IsExported() && shared(name.Name, value, conditions) {
					constants[value] = append(constants[value], file.Name.Name+"."+name.Name)
				}
			}
		}
	}
}

// ofConditions reports whether a block lists condition types, by their type or by some of their names.
func ofConditions(block *ast.GenDecl) bool {
	for _, spec := range block.Specs {
		constant, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		if kind, ok := constant.Type.(*ast.Ident); ok && strings.HasSuffix(kind.Name, "ConditionType") {
			return true
		}
		for _, name := range constant.Names {
			if strings.HasSuffix(name.Name, "ConditionType") {
				return true
			}
		}
	}
	return false
}

func text(constant *ast.ValueSpec, i int) (string, bool) {
	if i >= len(constant.Values) {
		return "", false
	}
	literal, ok := constant.Values[i].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(literal.Value)
	return value, err == nil
}

var (
	// qualified matches names of annotations, labels and finalizers with their domain.
	qualified = regexp.MustCompile(`^([a-z0-9-]+\.)+[a-z]+/.`)
	// compound matches conditions of two words or more: Ready or Available may belong to other APIs.
	compound = regexp.MustCompile(`^[A-Z]+[a-z]+[A-Z]\w+$`)
	// spelled matches keys that are neither an English word nor a possible flag name, such as old-key.pub.
	spelled = regexp.MustCompile(`^[\w-]+[_.]\w`)
)

// shared reports whether a constant names something that packages share, and whether its value is unambiguous.
func shared(name, value string, condition bool) bool {
	return qualified.MatchString(value) ||
		condition && compound.MatchString(value) ||
		strings.HasSuffix(name, "Key") && spelled.MatchString(value)
}

// repeats lists the literals of a file that api defines as constants.
func repeats(files *token.FileSet, file *ast.File, constants map[string][]string) []error {
	var errs []error
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			value, err := strconv.Unquote(n.Value)
			if names := constants[value]; n.Kind == token.STRING && err == nil && len(names) > 0 {
				errs = append(errs, fmt.Errorf("%s: use %s instead of %s", files.Position(n.Pos()), strings.Join(names, " or "), n.Value))
			}
		}
		return true
	})
	return errs
}
