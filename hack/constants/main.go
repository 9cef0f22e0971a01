// SPDX-License-Identifier: Apache-2.0

// Command constants reads names of Go files from its standard input, each ended by a NUL as `git ls-files -z` prints them, and fails
// for string literals that repeat what an exported constant of api names: an annotation, label, finalizer, condition or
// key of a Secret. Written twice, the two sides of a contract drift apart unseen.
//
// Tests may spell such a name out, since that pins what is on the wire.
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

// check joins an error for each literal that repeats a constant. Names are relative to root.
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

// collect adds a file's constants that cross packages, by value.
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

// ofConditions tells whether a block lists types of conditions, by type or by the names of some.
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
	// qualified are names of annotations, labels and finalizers, with the domain that they belong to.
	qualified = regexp.MustCompile(`^([a-z0-9-]+\.)+[a-z]+/.`)
	// compound are conditions of two words or more: Ready or Available may be anybody's.
	compound = regexp.MustCompile(`^[A-Z]+[a-z]+[A-Z]\w+$`)
	// spelled are keys that are neither a word of English nor what a flag may be called, such as old-key.pub.
	spelled = regexp.MustCompile(`^[\w-]+[_.]\w`)
)

// shared tells whether a constant names something that packages must agree on, and whether its value can mean nothing else.
func shared(name, value string, condition bool) bool {
	return qualified.MatchString(value) ||
		condition && compound.MatchString(value) ||
		strings.HasSuffix(name, "Key") && spelled.MatchString(value)
}

// repeats lists the literals of a file that are written in api.
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
