// SPDX-License-Identifier: Apache-2.0

// Command generate generates everything that depends on the types in api/: deep copies, CRDs, the field list and the
// reference page. It also generates the page of the metrics that the programs register. With -check it writes nothing
// and fails if a file is stale.
//
// Run it in the root of the repository.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// file is a generated file; its path is relative to the root of the repository.
type file struct {
	path string
	data []byte
}

// step generates the files of one kind.
type step struct {
	name string
	make func(generator) ([]file, error)
}

// generator holds what the steps share.
type generator struct {
	// controllerGen is the path of the controller-gen binary.
	controllerGen string
	// scratch is an empty folder that is removed at the end.
	scratch string
	// made are the files of the previous steps.
	made []file
}

var steps = []step{
	{"deep copies", deepCopies},
	{"CRDs", customResources},
	{"field list", fieldList},
	{"reference page", referencePage},
	{"page of metrics", metricsPage},
}

func main() {
	controllerGen := flag.String("controller-gen", "bin/controller-gen", "path of the controller-gen binary")
	check := flag.Bool("check", false, "write nothing; fail when a generated file is stale")
	fields := flag.Bool("fields", false, "only check that no published field of the API is lost")
	reference := flag.String("compare", "", "only print how much of the CRDs in this folder ours cover")
	flag.Parse()
	if err := choose(*controllerGen, *check, *fields, *reference); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func choose(controllerGen string, check, fields bool, reference string) error {
	switch {
	case reference != "":
		return compare(reference)
	case fields:
		return verifyFields()
	default:
		return run(controllerGen, check)
	}
}

func run(controllerGen string, check bool) error {
	absolute, err := filepath.Abs(controllerGen)
	if err != nil {
		return fmt.Errorf("finding controller-gen: %w", err)
	}
	scratch, err := os.MkdirTemp("", "generate-")
	if err != nil {
		return fmt.Errorf("making a scratch folder: %w", err)
	}
	defer os.RemoveAll(scratch)

	var files []file
	for _, s := range steps {
		made, err := s.make(generator{controllerGen: absolute, scratch: scratch, made: files})
		if err != nil {
			return fmt.Errorf("making the %s: %w", s.name, err)
		}
		files = append(files, made...)
	}
	stale, err := staleFiles(files)
	if err != nil {
		return err
	}
	if check {
		return verify(files, stale)
	}
	return write(files, stale)
}

func write(files []file, stale []string) error {
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
			return fmt.Errorf("making the folder of %s: %w", f.path, err)
		}
		if err := os.WriteFile(f.path, f.data, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", f.path, err)
		}
	}
	for _, path := range stale {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("removing %s, which is no longer generated: %w", path, err)
		}
	}
	return nil
}

func verify(files []file, stale []string) error {
	var problems []error
	for _, f := range files {
		now, err := os.ReadFile(f.path)
		if err != nil || !bytes.Equal(now, f.data) {
			problems = append(problems, fmt.Errorf("%s is stale: run `make generate` and commit it", f.path))
		}
	}
	for _, path := range stale {
		problems = append(problems, fmt.Errorf("%s is no longer generated: run `make generate` and commit its removal", path))
	}
	return errors.Join(problems...)
}

// staleFiles lists the CRDs in the tree that no step generates any more.
func staleFiles(files []file) ([]string, error) {
	made := map[string]bool{}
	for _, f := range files {
		made[f.path] = true
	}
	var stale []string
	err := filepath.WalkDir(crdFolder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".yaml") && !made[path] {
			stale = append(stale, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", crdFolder, err)
	}
	return stale, nil
}
