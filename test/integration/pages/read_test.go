// SPDX-License-Identifier: Apache-2.0

// Package pages tests the examples of the Markdown pages: manifests against a real kube-apiserver with our CRDs, and
// command lines against the flags of the programs.
package pages

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const repository = "../../.."

// skipped are folders without pages of ours, and the folder of pages that are generated from the commands themselves.
var skipped = []string{".git", "bin", "dist", "testdata", "node_modules", "cli"}

// others are pages whose commands are not for readers to run: flags of earlier versions, and a generated list of flags.
var others = []string{"CHANGELOG.md", "names.md"}

// page is a Markdown file.
type page struct {
	path string
	// blocks are its fenced blocks.
	blocks []block
	// prose is the rest of its text.
	prose string
}

// block is a fenced block of a page.
type block struct {
	// line is the number of its first line in the page.
	line int
	// language is the word after its fence.
	language string
	// text has no indentation that the fence has too.
	text string
}

// readPages reads all pages.
func readPages(t *testing.T) []page {
	t.Helper()
	var pages []page
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(skipped, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md" || slices.Contains(others, entry.Name()):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(repository, path)
		pages = append(pages, parsePage(relative, string(text)))
		return err
	})
	if err != nil || len(pages) == 0 {
		t.Fatalf("reading the pages: %d pages, %v", len(pages), err)
	}
	return pages
}

var fence = regexp.MustCompile("^( *)```(\\w*)$")

// parsePage separates the fenced blocks of a page from its prose.
func parsePage(path, text string) page {
	p := page{path: path}
	var prose, inside []string
	var open []string
	for i, line := range strings.Split(text, "\n") {
		match := fence.FindStringSubmatch(line)
		switch {
		case open == nil && match != nil:
			open, inside = match, nil
			p.blocks = append(p.blocks, block{line: i + 2, language: match[2]})
		case open == nil:
			prose = append(prose, line)
		case match != nil && match[2] == "":
			p.blocks[len(p.blocks)-1].text = strings.Join(inside, "\n")
			open = nil
		default:
			inside = append(inside, strings.TrimPrefix(line, open[1]))
		}
	}
	p.prose = strings.Join(prose, "\n")
	return p
}

// blocksOf returns the blocks of a page in one of some languages.
func (p page) blocksOf(languages ...string) []block {
	var found []block
	for _, b := range p.blocks {
		if slices.Contains(languages, b.language) {
			found = append(found, b)
		}
	}
	return found
}
