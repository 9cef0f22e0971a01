// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// collect returns all names in the files of a tree, sorted by kind and text.
func collect(tree string) ([]name, error) {
	var names []name
	for _, of := range []func(string) ([]name, error){sourceNames, metricNames, flagNames} {
		found, err := of(tree)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	order := func(n name) int {
		return slices.IndexFunc(kinds, func(k struct{ kind, title, about string }) bool { return k.kind == n.kind })
	}
	slices.SortFunc(names, func(a, b name) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a.text, b.text))
	})
	return slices.Compact(names), nil
}

// metricRow matches a row of the metrics page: name, type and labels.
var metricRow = regexp.MustCompile("^\\| `([a-z0-9_:]+)` \\| [a-z]+ \\| ([^|]*) \\|")

// metricNames reads the generated metrics page.
func metricNames(tree string) ([]name, error) {
	data, err := os.ReadFile(filepath.Join(tree, "docs", "reference", "metrics.md"))
	if err != nil {
		return nil, fmt.Errorf("reading the metrics: %w", err)
	}
	var names []name
	for line := range strings.Lines(string(data)) {
		row := metricRow.FindStringSubmatch(line)
		if row == nil {
			continue
		}
		names = append(names, name{"metric", row[1]})
		for _, label := range codeSpan.FindAllString(row[2], -1) {
			names = append(names, name{"metric", row[1] + " " + strings.Trim(label, "`")})
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("reading the metrics: the page in %s has none", tree)
	}
	return names, nil
}

// flagLine matches a line of a command's options.
var flagLine = regexp.MustCompile(`^ +(?:-([A-Za-z0-9]), )?--([a-z0-9][a-zA-Z0-9.-]*)`)

// flagNames reads the generated command pages.
func flagNames(tree string) ([]name, error) {
	pages, err := filepath.Glob(filepath.Join(tree, "docs", "reference", "cli", "*.md"))
	if err != nil || len(pages) == 0 {
		return nil, fmt.Errorf("reading the pages of commands in %s: %w", tree, cmp.Or(err, os.ErrNotExist))
	}
	var names []name
	for _, path := range pages {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading the flags: %w", err)
		}
		command := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(path), ".md"), "_", " ")
		options := false
		for line := range strings.Lines(string(data)) {
			if strings.HasPrefix(line, "#") {
				options = strings.HasPrefix(line, "### Options")
			}
			flag := flagLine.FindStringSubmatch(line)
			if !options || flag == nil {
				continue
			}
			names = append(names, name{"flag", command + " --" + flag[2]})
			if flag[1] != "" {
				names = append(names, name{"flag", command + " -" + flag[1]})
			}
		}
	}
	return names, nil
}
