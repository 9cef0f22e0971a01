// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	controlPlane = "control-plane-operator/controllers/hostedcontrolplane"
	nodeConfig   = "ignition-server/nodeconfig/testdata"
)

// valueFiles maps prefixes of keys to golden files of keys and values.
var valueFiles = map[string]string{
	"pool": "hypershift-operator/controllers/nodepool/testdata/frozen.yaml",
	"pki":  controlPlane + "/pki/testdata/frozen.yaml",
	"api":  controlPlane + "/infra/testdata/frozen.yaml",
}

// wholeFiles maps keys to golden files that are compared byte for byte.
var wholeFiles = map[string]string{
	"user-data/cloud-config":        "hypershift-operator/controllers/nodepool/cloudconfig/testdata/user-data.yaml",
	"node-agent/first-stage":        "hypershift-operator/controllers/nodepool/cloudconfig/files",
	"node-configuration/minimal":    nodeConfig + "/minimal.txt",
	"node-configuration/full":       nodeConfig + "/full.txt",
	"node-agent/plan-of-an-ignited": nodeConfig + "/minimal-plan.txt",
	"node-agent/plan-of-all":        nodeConfig + "/full-plan.txt",
}

// objectFiles lists golden files of objects, the relevant kinds, and the prefix of their keys.
var objectFiles = []struct {
	prefix, folder string
	keep           func(object) bool
	value          func(object) string
}{
	{"template", "hypershift-operator/platform/conformance/testdata", isTemplate, digestOf},
	{"service", controlPlane + "/v2/testdata", isService, portsOf},
}

// object is a Kubernetes object.
type object = map[string]any

func isTemplate(o object) bool { return strings.HasSuffix(fmt.Sprint(o["kind"]), "Template") }

func isService(o object) bool {
	return o["kind"] == "Service" || o["kind"] == "Route"
}

// collect returns all values in the golden files of a tree.
func collect(tree string) (map[string]string, error) {
	values := map[string]string{}
	var failures []error
	for prefix, name := range valueFiles {
		read := map[string]string{}
		failures = append(failures, readGolden(filepath.Join(tree, name), &read))
		for key, value := range read {
			values[prefix+"/"+key] = value
		}
	}
	for key, name := range wholeFiles {
		digest, err := digestOfFiles(filepath.Join(tree, name))
		values[key], failures = digest, append(failures, err)
	}
	for _, files := range objectFiles {
		paths, err := filepath.Glob(filepath.Join(tree, files.folder, "*.yaml"))
		if err != nil || len(paths) == 0 {
			failures = append(failures, fmt.Errorf("%s has no golden files: %w", files.folder, errors.Join(err, os.ErrNotExist)))
		}
		for _, golden := range paths {
			objects, err := readObjects(golden)
			failures = append(failures, err)
			for _, o := range objects {
				if files.keep(o) {
					name := strings.TrimSuffix(filepath.Base(golden), ".yaml")
					values[path.Join(files.prefix, name, fmt.Sprint(o["kind"]), nameOf(o))] = files.value(o)
				}
			}
		}
	}
	return values, errors.Join(failures...)
}

func readGolden(name string, into any) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("reading a golden file: %w", err)
	}
	return yaml.UnmarshalStrict(data, into)
}

// digestOfFiles returns the digest of a file, or of all files in a folder with their names.
func digestOfFiles(root string) (string, error) {
	hash := sha256.New()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		if name != root {
			fmt.Fprintln(hash, filepath.Base(name))
		}
		_, err = io.Copy(hash, file)
		return err
	})
	return fmt.Sprintf("sha256:%x", hash.Sum(nil)), err
}

func readObjects(name string) ([]object, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var objects []object
	for document := range bytes.SplitSeq(append([]byte("\n"), data...), []byte("\n---\n")) {
		var o object
		if err := yaml.Unmarshal(document, &o); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		if o != nil {
			objects = append(objects, o)
		}
	}
	return objects, nil
}

func nameOf(o object) string {
	metadata, _ := o["metadata"].(object)
	return fmt.Sprint(metadata["name"])
}

func digestOf(o object) string {
	raw, err := yaml.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(raw))
}

// portsOf describes what callers use of a Service: its type, whether it has an address, and its ports.
func portsOf(o object) string {
	spec, _ := o["spec"].(object)
	parts := []string{}
	for _, key := range slices.Sorted(maps.Keys(spec)) {
		if key == "clusterIP" || key == "ports" || key == "type" || key == "selector" || key == "to" || key == "port" {
			raw, err := yaml.Marshal(spec[key])
			if err != nil {
				return err.Error()
			}
			parts = append(parts, key+": "+strings.Join(strings.Fields(string(raw)), " "))
		}
	}
	return strings.Join(parts, "; ")
}
