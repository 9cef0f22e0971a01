// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// mutant is one small wrong change.
type mutant struct {
	id     int
	file   string
	line   int
	change string
	wraps  []wrap
}

// wrap inserts text around a part of a file.
type wrap struct {
	start, end    int
	before, after string
}

func (m *mutant) String() string { return fmt.Sprintf("%s:%d: %s", m.file, m.line, m.change) }

// isAt reports whether the change is in a file, or on one line of it.
func (m *mutant) isAt(place string) bool {
	return place == "" || place == m.file || place == fmt.Sprintf("%s:%d", m.file, m.line)
}

// finder visits a file and records its possible changes.
type finder struct {
	*sourcePackage
	file    *ast.File
	name    string
	negated map[ast.Expr]bool
	// spoken contains the names that only people read.
	spoken map[ast.Expr]bool
}

// find records all changes of the package.
func (p *sourcePackage) find() {
	for _, file := range p.files {
		f := &finder{sourcePackage: p, file: file, name: p.fset.Position(file.Pos()).Filename, negated: map[ast.Expr]bool{}, spoken: map[ast.Expr]bool{}}
		ast.Inspect(file, f.visit)
	}
}

// visit finds the changes at a node, and reports whether to visit its children.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec, *ast.TypeSpec, *ast.StructType:
		return false
	case *ast.GenDecl:
		return n.Tok != token.CONST
	case *ast.CallExpr:
		if f.logs(n) {
			return false
		}
		f.visitExpression(n)
	case *ast.FuncDecl:
		f.returnEarly(n)
	case *ast.BlockStmt:
		f.dropStatements(n.List)
	case *ast.CaseClause:
		f.dropStatements(n.Body)
	case *ast.CommClause:
		f.dropStatements(n.Body)
	case *ast.ReturnStmt:
		f.swallowErrors(n)
	case *ast.IfStmt:
		f.negate(n.Cond)
	case ast.Expr:
		f.visitExpression(n)
	}
	return true
}

func (f *finder) visitExpression(e ast.Expr) {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		f.swapOperator(e)
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			f.negate(e)
		}
	case *ast.BasicLit:
		if !f.spoken[e] {
			f.replaceLiteral(e)
		}
	case *ast.Ident:
		if e.Name == "true" || e.Name == "false" {
			f.wrapCall(e, "!"+e.Name, "mutantNot"+f.typeArgument(e))
		}
	case *ast.CompositeLit:
		f.findSpoken(e)
		f.dropElements(e)
	case *ast.CallExpr:
		f.dropFromChain(e)
	}
}

// add records a change. wraps creates its text for the assigned ID.
func (f *finder) add(at ast.Node, change string, wraps func(id int) []wrap) {
	id := len(f.mutants) + 1
	f.mutants = append(f.mutants, &mutant{
		id: id, file: f.name, line: f.fset.Position(at.Pos()).Line, change: strings.Join(strings.Fields(change), " "), wraps: wraps(id),
	})
}

func (f *finder) around(n ast.Node, before, after string) wrap {
	return wrap{start: f.offset(n.Pos()), end: f.offset(n.End()), before: before, after: after}
}

func (f *finder) offset(pos token.Pos) int { return f.fset.Position(pos).Offset }

func (f *finder) text(n ast.Node) string {
	return string(f.sources[f.name][f.offset(n.Pos()):f.offset(n.End())])
}

// shortText returns the first line of a node's text.
func (f *finder) shortText(n ast.Node) string {
	text := strings.Join(strings.Fields(f.text(n)), " ")
	if r := []rune(text); len(r) > 90 {
		return string(r[:90]) + "..."
	}
	return text
}

// wrapCall wraps an expression in a call of one of our helpers.
func (f *finder) wrapCall(e ast.Expr, becomes, helper string) {
	f.add(e, f.shortText(e)+" -> "+becomes, func(id int) []wrap {
		return []wrap{f.around(e, fmt.Sprintf("%s(%d, ", helper, id), ")")}
	})
}

// typeArgument returns the type of a constant if the compiler could not infer it.
func (f *finder) typeArgument(e ast.Expr) string {
	t := f.info.TypeOf(e)
	basic, plain := t.(*types.Basic)
	switch {
	case t == nil || plain && basic.Info()&types.IsUntyped != 0:
		return ""
	case plain:
		return "[" + basic.Name() + "]"
	}
	return "[" + f.aliases.of(t) + "]"
}
