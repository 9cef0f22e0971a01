// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// apiPackages are the folders of api/ with types.
var apiPackages = []string{"hypershift/v1beta1", "certificates/v1alpha1", "infrastructure/v1beta1", "agent/v1beta1", "kubevirt/v1alpha1"}

// wirePackages are the folders of api/ with types that need no CRD: parts of kinds, and kinds of other projects, of
// which the operator needs only a part.
var wirePackages = []string{"util/contract", "aws/v1beta2"}

const deepCopyFile = "zz_generated.deepcopy.go"

// deepCopies runs controller-gen once for each package, since it can write the result to another folder for one package
// only.
func deepCopies(g generator) ([]file, error) {
	var files []file
	for _, pkg := range slices.Concat(apiPackages, wirePackages) {
		out := filepath.Join(g.scratch, "deepcopy", pkg)
		if err := g.runControllerGen("api", "object", "paths=./"+pkg, "output:object:dir="+out); err != nil {
			return nil, err
		}
		data, err := os.ReadFile(filepath.Join(out, deepCopyFile))
		if err != nil {
			return nil, fmt.Errorf("reading the deep copies of %s: %w", pkg, err)
		}
		files = append(files, file{path: filepath.Join("api", pkg, deepCopyFile), data: data})
	}
	return files, nil
}

// crdsOf generates the CRDs of some packages and returns them by name. It runs in the Go module in folder dir.
func (g generator) crdsOf(dir string, generatorOption string, packages ...string) (map[string]object, error) {
	out, err := os.MkdirTemp(g.scratch, "crds-")
	if err != nil {
		return nil, fmt.Errorf("making a scratch folder: %w", err)
	}
	args := []string{generatorOption, "output:crd:dir=" + out}
	for _, pkg := range packages {
		args = append(args, "paths="+pkg)
	}
	if err := g.runControllerGen(dir, args...); err != nil {
		return nil, err
	}
	return readObjects(out)
}

func (g generator) runControllerGen(dir string, args ...string) error {
	command := exec.Command(g.controllerGen, args...)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("controller-gen %s in %s: %w\n%s", strings.Join(args, " "), dir, err, out)
	}
	return nil
}

// moduleFolder returns the folder in which the Go tool stores a module that the root module requires.
func moduleFolder(module string) (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("finding the sources of %s: %w", module, err)
	}
	return strings.TrimSpace(string(out)), nil
}
