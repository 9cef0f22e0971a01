// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// withoutEffect lists the condition types of api that no program sets or reads, with the reason. The reference of
// conditions lists them too.
var withoutEffect = map[string]string{
	"AutoNodeEnabled":                             "spec.autoNode has no effect",
	"PublicEndpointExposed":                       "of a platform that is not served",
	"ClusterSizeComputed":                         "clusters have no size classes",
	"ClusterSizeTransitionPending":                "clusters have no size classes",
	"ClusterSizeTransitionRequired":               "clusters have no size classes",
	"EtcdSnapshotRestored":                        "HostedClusterRestoredFromBackup reports a restore",
	"CVOScaledDown":                               "an operator of an OpenShift release sets and reads it while it deletes a control plane",
	"NodePoolAWSResourceTagConflictConditionType": "the provider of AWS reports tags that conflict on the AWSMachine",
}

// TestConditionsAreUsed checks that a program sets or reads each condition type of api, or that the table lists it.
func TestConditionsAreUsed(t *testing.T) {
	g := NewWithT(t)
	types, used := map[string]bool{}, map[string]bool{}
	tree := os.DirFS(filepath.Join("..", ".."))
	g.Expect(fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != "." {
			return skip(err)
		}
		if entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if strings.HasPrefix(path, "api/") {
			conditionTypes(file, types)
			return nil
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok {
				used[selector.Sel.Name] = true
			}
			return true
		})
		return nil
	})).To(Succeed())
	g.Expect(len(types)).To(BeNumerically(">", 80), "the constants are found")
	docs, err := fs.ReadFile(tree, "docs/reference/conditions.md")
	g.Expect(err).NotTo(HaveOccurred())
	_, listed, _ := strings.Cut(string(docs), "## Without effect")
	for name := range types {
		reason, excepted := withoutEffect[name]
		g.Expect(used[name]).NotTo(Equal(excepted), "%s is set or read by a program, or has a reason in the table", name)
		g.Expect(!excepted || strings.Contains(listed, reason)).To(BeTrue(), "the reference lists %s", name)
	}
	for name := range withoutEffect {
		g.Expect(types).To(HaveKey(name))
	}
}

func skip(err error) error {
	if err != nil {
		return err
	}
	return fs.SkipDir
}

// conditionTypes adds the names of exported constants in blocks of condition types.
func conditionTypes(file *ast.File, types map[string]bool) {
	for _, declaration := range file.Decls {
		block, ok := declaration.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST || !ofConditions(block) {
			continue
		}
		for _, spec := range block.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if name.IsExported() {
					types[name.Name] = true
				}
			}
		}
	}
}
