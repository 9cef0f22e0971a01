// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
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
	"strings"
)

// sourcePackage is the package that is changed.
type sourcePackage struct {
	Dir, Name, ImportPath string
	GoFiles               []string
	Module                struct{ Path string }

	fset    *token.FileSet
	imports types.Importer
	sources map[string][]byte
	files   []*ast.File
	info    *types.Info
	types   *types.Package

	mutants []*mutant
	aliases aliases
}

// load parses and type-checks a package, without its tests.
func load(ctx context.Context, folder string) (*sourcePackage, error) {
	out, err := output(exec.CommandContext(ctx, "go", "list", "-json=Dir,Name,ImportPath,GoFiles,Module", folder))
	if err != nil {
		return nil, fmt.Errorf("listing the package: %w", err)
	}
	p := &sourcePackage{fset: token.NewFileSet(), sources: map[string][]byte{}}
	if err := json.Unmarshal(out, p); err != nil {
		return nil, fmt.Errorf("reading what go list says: %w", err)
	}
	if p.imports, err = dependencies(ctx, p.fset, folder); err != nil {
		return nil, err
	}
	for _, name := range p.GoFiles {
		if p.sources[name], err = os.ReadFile(filepath.Join(p.Dir, name)); err != nil {
			return nil, fmt.Errorf("reading the package: %w", err)
		}
	}
	files, info, checked, wrong := p.check(p.sources)
	if len(wrong) > 0 {
		return nil, fmt.Errorf("type-checking the unchanged package: %w", wrong[0])
	}
	p.files, p.info, p.types = files, info, checked
	p.aliases = aliases{own: checked, module: p.Module.Path, imports: map[string]string{}}
	return p, nil
}

// dependencies imports packages from the go command's export data.
func dependencies(ctx context.Context, fset *token.FileSet, folder string) (types.Importer, error) {
	out, err := output(exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}",
		folder, "os", "strconv", "sync")) // The last ones are imported by the helper file.
	if err != nil {
		return nil, fmt.Errorf("compiling what the package imports: %w", err)
	}
	compiled := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		compiled[path] = file
	}
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(compiled[path])
	}), nil
}

// check type-checks a version of the package's files and returns every error that it finds.
func (p *sourcePackage) check(sources map[string][]byte) ([]*ast.File, *types.Info, *types.Package, []types.Error) {
	var (
		files []*ast.File
		wrong []types.Error
	)
	for _, name := range sortedKeys(sources) {
		file, err := parser.ParseFile(p.fset, name, sources[name], parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, nil, []types.Error{{Fset: p.fset, Msg: err.Error(), Pos: token.NoPos}}
		}
		files = append(files, file)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	config := types.Config{Importer: p.imports, Error: func(err error) {
		var problem types.Error
		if errors.As(err, &problem) {
			wrong = append(wrong, problem)
		}
	}}
	checked, _ := config.Check(p.ImportPath, p.fset, files, info)
	return files, info, checked, wrong
}

// output runs a command and adds its standard error to the error.
func output(cmd *exec.Cmd) ([]byte, error) {
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return out, err
}
