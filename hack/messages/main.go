// SPDX-License-Identifier: Apache-2.0

// Command messages reads names of Go files from its standard input, each terminated by a NUL as `git ls-files -z`
// prints them. It writes the prose in the string literals of these files into the folder that its argument names, for
// a linter that reads text. Prose is errors, messages of conditions and events, log lines and help. Each Go file
// becomes a text file in which a literal has the line number that it has in the source. Of tests it writes only the
// names of cases.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "messages:", err)
		os.Exit(1)
	}
}

// run replaces the content of the folder.
func run(args []string, names io.Reader) error {
	if len(args) != 1 {
		return errors.New("one argument is required: the folder for the text files")
	}
	raw, err := io.ReadAll(names)
	if err != nil {
		return fmt.Errorf("reading the names of files: %w", err)
	}
	if err := os.RemoveAll(args[0]); err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(raw), "\x00"), "\x00") {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		text, err := messages(name, source)
		if err != nil {
			return err
		}
		if text == "" {
			continue
		}
		target := filepath.Join(args[0], name+".txt")
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// prose matches three words in a row. Fewer are a name, a command or a header.
var prose = regexp.MustCompile(`[A-Za-z]+(,? [a-z]+){2}`)

// messages returns the literals of a Go file that are prose, each on the line on which it begins in the source. It
// returns "" if there is none.
func messages(name string, source []byte) (string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return "", err
	}
	if ast.IsGenerated(file) {
		return "", nil
	}
	wanted := func(*ast.BasicLit) bool { return true }
	if strings.HasSuffix(name, "_test.go") {
		cases := caseNames(file)
		wanted = func(literal *ast.BasicLit) bool { return cases[literal] }
	}
	lines := map[int]string{}
	last := 0
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			// The tag of a field is no message.
			n.Tag = nil
		case *ast.BasicLit:
			value, err := strconv.Unquote(n.Value)
			if n.Kind != token.STRING || err != nil || !wanted(n) {
				break
			}
			first := files.Position(n.Pos()).Line
			for i, line := range literalLines(n.Value, value) {
				if prose.MatchString(line) {
					lines[first+i] += line + " "
					last = max(last, first+i)
				}
			}
		}
		return true
	})
	var text strings.Builder
	for i := 1; i <= last; i++ {
		text.WriteString(lines[i] + "\n")
	}
	return text.String(), nil
}

// caseNames returns the literals that name the cases of tests. A name is the key of a map, the field name or the first
// field of a case, or the name in a call of Run.
func caseNames(file *ast.File) map[*ast.BasicLit]bool {
	names := map[*ast.BasicLit]bool{}
	add := func(expr ast.Expr) {
		ast.Inspect(expr, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok {
				names[literal] = true
			}
			_, operation := node.(*ast.BinaryExpr)
			return operation
		})
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.KeyValueExpr:
			add(n.Key)
			if field, ok := n.Key.(*ast.Ident); ok && field.Name == "name" {
				add(n.Value)
			}
		case *ast.CompositeLit:
			if n.Type == nil && len(n.Elts) > 1 {
				add(n.Elts[0])
			}
		case *ast.CallExpr:
			if method, ok := n.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Run" && len(n.Args) == 2 {
				add(n.Args[0])
			}
		}
		return true
	})
	return names
}

// literalLines splits the value of a raw literal at the lines of the source. An interpreted literal is on one line,
// whatever line breaks its value has.
func literalLines(literal, value string) []string {
	if strings.HasPrefix(literal, "`") {
		return strings.Split(value, "\n")
	}
	return []string{strings.ReplaceAll(value, "\n", " ")}
}
