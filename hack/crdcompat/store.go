// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/hack/releases/table"
)

// sourceFolder is the folder of the CRDs in a commit.
const sourceFolder = "support/crds"

const storedHeader = "# A copy of the released CRD without descriptions; do not edit.\n" +
	"# `go run ./hack/crdcompat -store %s` writes it.\n"

// crdFolder returns the folder with the stored CRDs of a release.
func crdFolder(release table.Release) string {
	return filepath.Join(releasesFolder, release.Version, "crds")
}

func readFolder(folder string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// storeRelease writes the CRDs and objects of a release.
func storeRelease(ctx context.Context, release table.Release) error {
	files, err := released(ctx, release)
	if err != nil {
		return err
	}
	for path, data := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// checkStored compares the stored files of a release with its commit. It does nothing in a clone that lacks the commit.
func checkStored(ctx context.Context, release table.Release) error {
	if !hasCommit(ctx, release.Commit) {
		fmt.Printf("%s of %s is not compared with commit %.8s, which this clone lacks\n", releasesFolder, release.Version,
			release.Commit)
		return nil
	}
	files, err := released(ctx, release)
	if err != nil {
		return err
	}
	var failures []error
	for path, data := range files {
		stored, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(stored, data) {
			failures = append(failures, fmt.Errorf("%s is not what release %s has; run `go run ./hack/crdcompat -store %s`",
				path, release.Version, release.Version))
		}
	}
	for _, folder := range append([]string{"crds"}, slices.Sorted(maps.Values(objectFolders))...) {
		root := filepath.Join(releasesFolder, release.Version, folder)
		failures = append(failures, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && files[path] == nil {
				err = fmt.Errorf("%s is not in release %s; remove it", path, release.Version)
			}
			return err
		}))
	}
	return errors.Join(failures...)
}

// hasCommit reports whether this clone has the commit.
func hasCommit(ctx context.Context, commit string) bool {
	_, err := git(ctx, "cat-file", "-e", commit+"^{commit}")
	return err == nil
}

// objectFolders maps folders of a commit, with objects that the version accepts, to their storage folders.
var objectFolders = map[string]string{
	"docs/examples/":                         "examples",
	"test/integration/api/testdata/objects/": "objects",
	"test/integration/api/testdata/rules/":   "rules",
}

// released returns the files to store for a release, by path.
func released(ctx context.Context, release table.Release) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := eachFile(ctx, release, sourceFolder+"/", func(name string, content []byte) error {
		data, err := withoutDescriptions(content)
		path := filepath.Join(crdFolder(release), strings.TrimPrefix(name, sourceFolder+"/"))
		files[path] = append(fmt.Appendf(nil, storedHeader, release.Version), data...)
		return err
	})
	if err != nil {
		return nil, err
	}
	for source, target := range objectFolders {
		err := eachFile(ctx, release, source, func(name string, content []byte) error {
			if relative := strings.TrimPrefix(name, source); !strings.Contains(relative, "/") {
				files[filepath.Join(releasesFolder, release.Version, target, relative)] = content
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// eachFile calls do for each YAML file below a folder of a release.
func eachFile(ctx context.Context, release table.Release, folder string, do func(name string,
	content []byte) error) error {
	list, err := git(ctx, "ls-tree", "-r", "--name-only", release.Commit, folder)
	if err != nil {
		return fmt.Errorf("listing %s of release %s: %w", folder, release.Version, err)
	}
	for _, name := range strings.Fields(list) {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		content, err := git(ctx, "show", release.Commit+":"+name)
		if err == nil {
			err = do(name, []byte(content))
		}
		if err != nil {
			return fmt.Errorf("reading %s of release %s: %w", name, release.Version, err)
		}
	}
	return nil
}

func withoutDescriptions(content []byte) ([]byte, error) {
	var crd map[string]any
	if err := yaml.Unmarshal(content, &crd); err != nil {
		return nil, err
	}
	removeDescriptions(crd)
	return yaml.Marshal(crd)
}

// removeDescriptions removes descriptions, which are strings. A field named description is a mapping, and stays.
func removeDescriptions(value any) {
	switch value := value.(type) {
	case map[string]any:
		if _, ok := value["description"].(string); ok {
			delete(value, "description")
		}
		for _, nested := range value {
			removeDescriptions(nested)
		}
	case []any:
		for _, nested := range value {
			removeDescriptions(nested)
		}
	}
}

func git(ctx context.Context, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", arguments...)
	var out, problems strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(problems.String()))
	}
	return out.String(), nil
}
