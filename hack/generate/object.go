// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// object is a YAML mapping.
type object = map[string]any

// at follows a path of keys; its error names the point where the path ends. A number selects an element of a list.
func at(o object, path ...string) (object, error) {
	for i, key := range path {
		next, ok := o[key].(object)
		if list, isList := o[key].([]any); isList && len(list) > 0 {
			next, ok = list[0].(object)
		}
		if !ok {
			return nil, fmt.Errorf("there is no %s", strings.Join(path[:i+1], "."))
		}
		o = next
	}
	return o, nil
}

// name returns metadata.name.
func name(o object) string {
	metadata, _ := o["metadata"].(object)
	text, _ := metadata["name"].(string)
	return text
}

// readObject reads one YAML file.
func readObject(path string) (object, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var o object
	if err := yaml.Unmarshal(data, &o); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return o, nil
}

// readObjects reads the YAML files of a folder, by object name.
func readObjects(folder string) (map[string]object, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	objects := map[string]object{}
	for _, path := range paths {
		o, err := readObject(path)
		if err != nil {
			return nil, err
		}
		objects[name(o)] = o
	}
	return objects, nil
}

// unknownFormats are formats of OpenShift's schemas that API servers ignore with a warning.
var unknownFormats = []string{"hostname", "ip"}

// strip removes descriptions, and formats that servers warn about. A property may itself be named "description", so
// strip depends on the position in the schema.
func strip(schema object) {
	delete(schema, "description")
	if format, ok := schema["format"].(string); ok && slices.Contains(unknownFormats, format) {
		delete(schema, "format")
	}
	for _, key := range []string{"properties", "patternProperties"} {
		properties, _ := schema[key].(object)
		for _, property := range properties {
			if p, ok := property.(object); ok {
				strip(p)
			}
		}
	}
	for _, key := range []string{"items", "additionalProperties", "not"} {
		if nested, ok := schema[key].(object); ok {
			strip(nested)
		}
	}
}
