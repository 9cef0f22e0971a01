// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// returnEarly makes a function return without doing anything.
func (f *finder) returnEarly(n *ast.FuncDecl) {
	object, ok := f.info.Defs[n.Name].(*types.Func)
	if !ok || n.Body == nil || len(n.Body.List) == 0 || n.Name.Name == "main" || n.Name.Name == "init" {
		return
	}
	signature := object.Signature()
	if signature.TypeParams().Len() > 0 || signature.RecvTypeParams().Len() > 0 {
		return
	}
	var zeros []string
	for result := range signature.Results().Variables() {
		zeros = append(zeros, "*new("+f.aliases.of(result.Type())+")")
	}
	f.add(n, n.Name.Name+" does nothing", func(id int) []wrap {
		at := f.offset(n.Body.Lbrace) + 1
		return []wrap{{start: at, end: at, before: fmt.Sprintf(" if mutantIs(%d) { return %s }; ", id, strings.Join(zeros, ", "))}}
	})
}

// dropStatements omits statements that neither declare something nor end a function.
func (f *finder) dropStatements(statements []ast.Stmt) {
	for _, s := range statements {
		switch s := s.(type) {
		case *ast.IncDecStmt:
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok && (f.logs(call) || strings.HasPrefix(f.text(s), "panic(")) {
				continue
			}
		case *ast.BranchStmt:
			if s.Tok == token.FALLTHROUGH {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || onlyBlank(s.Lhs) {
				continue
			}
		default:
			continue
		}
		f.add(s, "drop "+f.shortText(s), func(id int) []wrap {
			return []wrap{f.around(s, fmt.Sprintf("if !mutantIs(%d) { ", id), " }")}
		})
	}
}

// logs reports whether a call is one of a logger. The message and keys of a log line are for people, so a test that
// repeats them proves nothing. Tests must define what a log must or must not contain; such calls are not changed.
func (f *finder) logs(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	receiver := f.info.TypeOf(method.X)
	if pointer, ok := receiver.(*types.Pointer); ok {
		receiver = pointer.Elem()
	}
	named, ok := receiver.(*types.Named)
	if !ok || named.Obj().Pkg() == nil || named.Obj().Name() != "Logger" {
		return false
	}
	return slices.Contains([]string{"log/slog", "github.com/go-logr/logr"}, named.Obj().Pkg().Path())
}

func onlyBlank(names []ast.Expr) bool {
	for _, name := range names {
		if id, ok := name.(*ast.Ident); !ok || id.Name != "_" {
			return false
		}
	}
	return true
}

// swallowErrors returns nil in place of an error.
func (f *finder) swallowErrors(n *ast.ReturnStmt) {
	for _, e := range n.Results {
		if t := f.info.TypeOf(e); t != nil && types.Identical(t, types.Universe.Lookup("error").Type()) {
			f.wrapCall(e, "nil", "mutantZero[error]")
		}
	}
}

// negate inverts a condition. It skips error checks: inverting them has an obvious effect in every test that continues.
func (f *finder) negate(e ast.Expr) {
	text := f.text(e)
	if isLogical(e) || f.negated[e] || text == "err != nil" {
		f.negated[e] = true
		return
	}
	f.negated[e] = true
	f.wrapCall(e, "not so", "mutantNot")
}

func isLogical(e ast.Expr) bool {
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	return ok && (b.Op == token.LAND || b.Op == token.LOR)
}

// swapped maps an operator to the one it is easily confused with.
var swapped = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.LAND: token.LOR, token.LOR: token.LAND,
}

func (f *finder) swapOperator(e *ast.BinaryExpr) {
	switch e.Op {
	case token.LAND, token.LOR:
		f.negate(e.X)
		f.negate(e.Y)
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		f.negate(e)
	}
	other, ok := swapped[e.Op]
	if !ok {
		return
	}
	wrong := f.text(e.X) + " " + other.String() + " " + f.text(e.Y)
	f.add(e, fmt.Sprintf("%s -> %s in %s", e.Op, other, f.shortText(e)), func(id int) []wrap {
		return []wrap{f.around(e, fmt.Sprintf("(mutantIs(%d) && (%s) || !mutantIs(%d) && (", id, wrong, id), "))")}
	})
}

// replaceLiteral changes a number or a name. A text with a space is a sentence for people, which tests should not
// repeat.
func (f *finder) replaceLiteral(e *ast.BasicLit) {
	switch e.Kind {
	case token.INT:
		f.wrapCall(e, e.Value+"+1", "mutantNumber"+f.typeArgument(e))
	case token.STRING:
		if value, err := strconv.Unquote(e.Value); err == nil && !strings.ContainsAny(value, " %\n") {
			f.wrapCall(e, "another", "mutantString"+f.typeArgument(e))
		}
	}
}

// findSpoken finds the name of a phase, which begins errors and log lines: text for people, even if it is a single
// word.
func (f *finder) findSpoken(e *ast.CompositeLit) {
	named, ok := f.info.TypeOf(e).(*types.Named)
	if !ok || named.Obj().Name() != "Phase" {
		return
	}
	for _, element := range e.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok && f.text(pair.Key) == "Name" {
			f.spoken[pair.Value] = true
		}
	}
}

// dropElements omits elements of a literal.
func (f *finder) dropElements(e *ast.CompositeLit) {
	t := f.info.TypeOf(e)
	if t == nil {
		return
	}
	switch t := t.Underlying().(type) {
	case *types.Struct:
		f.dropFields(e, t)
	case *types.Slice:
		if e.Type != nil {
			f.dropItems(e)
		}
	case *types.Map:
		if e.Type != nil {
			f.dropKeys(e)
		}
	}
}

func (f *finder) dropFields(e *ast.CompositeLit, t *types.Struct) {
	kinds := map[string]types.Type{}
	for field := range t.Fields() {
		kinds[field.Name()] = field.Type()
	}
	for _, element := range e.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok || isLiteral(pair.Value) {
			continue
		}
		name := f.text(pair.Key)
		f.add(pair, "drop "+f.shortText(pair), func(id int) []wrap {
			return []wrap{f.around(pair.Value, fmt.Sprintf("mutantZero[%s](%d, ", f.aliases.of(kinds[name]), id), ")")}
		})
	}
}

// isLiteral reports whether another kind of change covers a value.
func isLiteral(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.Ident:
		return e.Name == "true" || e.Name == "false" || e.Name == "nil"
	}
	return false
}

func (f *finder) dropItems(e *ast.CompositeLit) {
	for i, element := range e.Elts {
		f.add(element, "drop "+f.shortText(element)+" from the list", func(id int) []wrap {
			return []wrap{f.around(e, fmt.Sprintf("mutantWithoutItem(%d, ", id), fmt.Sprintf(", %d)", i))}
		})
	}
}

func (f *finder) dropKeys(e *ast.CompositeLit) {
	for _, element := range e.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if key, elided := pair.Key.(*ast.CompositeLit); elided && key.Type == nil {
			continue
		}
		f.add(pair, "drop "+f.shortText(pair)+" from the map", func(id int) []wrap {
			return []wrap{f.around(e, fmt.Sprintf("mutantWithoutKey(%d, ", id), fmt.Sprintf(", %s)", f.text(pair.Key)))}
		})
	}
}

// dropFromChain omits a call that returns its own receiver's type, such as the Watches of a controller's builder.
func (f *finder) dropFromChain(e *ast.CallExpr) {
	method, ok := e.Fun.(*ast.SelectorExpr)
	if !ok || f.info.Selections[method] == nil || f.info.Selections[method].Kind() != types.MethodVal {
		return
	}
	receiver, result := f.info.TypeOf(method.X), f.info.TypeOf(e)
	if receiver == nil || result == nil || !types.Identical(receiver, result) {
		return
	}
	short := f.shortText(e)
	if i := len(f.text(method.X)); i < len(f.text(e)) {
		short = f.text(e)[i:]
	}
	f.add(method.Sel, "drop "+short, func(id int) []wrap {
		name := f.aliases.of(receiver)
		after := f.offset(method.X.End())
		return []wrap{
			f.around(e, fmt.Sprintf("mutantChain(%d, ", id), "})"),
			{start: after, end: after, before: fmt.Sprintf(", func(mutantChained %s) %s { return mutantChained", name, name)},
		}
	})
}
