// SPDX-License-Identifier: Apache-2.0

// Package pages_test checks the Markdown pages of the repository.
package pages_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/russross/blackfriday/v2"
)

const repository = "../.."

// skipped are folders without pages of ours.
var skipped = []string{".git", "bin", "dist", "testdata", "node_modules"}

// page is a Markdown file.
type page struct {
	// headings are the texts of all headings, in their order.
	headings []string
	// anchors are the fragments by which other pages link to a place in this one.
	anchors []string
	links   []string
}

// TestLinks checks that each relative link leads to a file, and that its fragment is a heading there.
func TestLinks(t *testing.T) {
	pages := readPages(t)
	for path, p := range pages {
		t.Run(path, func(t *testing.T) {
			for _, link := range p.links {
				if err := follow(pages, path, link); err != nil {
					t.Errorf("link %s: %v", link, err)
				}
			}
		})
	}
}

// TestReachable checks that readers find each page of docs: another page links to it.
func TestReachable(t *testing.T) {
	pages := readPages(t)
	linked := map[string]bool{"docs/README.md": true}
	for path, p := range pages {
		for _, link := range p.links {
			target, _, _ := strings.Cut(link, "#")
			if to := filepath.Join(filepath.Dir(path), target); target != "" && to != path {
				linked[to] = true
			}
		}
	}
	for path := range pages {
		if strings.HasPrefix(path, "docs/") && !linked[path] {
			t.Errorf("no page links to %s; add it to docs/README.md", path)
		}
	}
}

// generatedPages are reference pages that programs write. They do not list next steps.
var generatedPages = []string{"api.md", "fields.md", "metrics.md", "names.md"}

// TestNextSteps checks that readers who reach the end of a page learn where to go from there.
func TestNextSteps(t *testing.T) {
	for path, p := range readPages(t) {
		folder, name := filepath.Split(path)
		written := folder == "docs/" && name != "README.md" || folder == "docs/how-to/" ||
			folder == "docs/reference/" && !slices.Contains(generatedPages, name)
		if !written {
			continue
		}
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(p.headings).NotTo(BeEmpty())
			last := p.headings[len(p.headings)-1]
			g.Expect(last).To(BeElementOf("Next steps", "See also"), "the last heading of the page")
		})
	}
}

// readPages reads all pages, by their paths in the repository.
func readPages(t *testing.T) map[string]page {
	t.Helper()
	pages := map[string]page{}
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains(skipped, entry.Name()) {
			return fs.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(repository, path)
		pages[relative] = parse(text)
		return err
	})
	if err != nil || len(pages) == 0 {
		t.Fatalf("reading the pages: %d pages, %v", len(pages), err)
	}
	return pages
}

// namedAnchor finds anchors that a page sets in HTML.
var namedAnchor = regexp.MustCompile(`<a id="([^"]+)"`)

func parse(text []byte) page {
	p := page{}
	for _, match := range namedAnchor.FindAllSubmatch(text, -1) {
		p.anchors = append(p.anchors, string(match[1]))
	}
	root := blackfriday.New(blackfriday.WithExtensions(blackfriday.CommonExtensions)).Parse(text)
	root.Walk(func(node *blackfriday.Node, entering bool) blackfriday.WalkStatus {
		if !entering {
			return blackfriday.GoToNext
		}
		switch node.Type {
		case blackfriday.Heading:
			heading := textOf(node)
			p.headings = append(p.headings, heading)
			p.anchors = append(p.anchors, unique(p.anchors, anchorOf(heading)))
		case blackfriday.Link, blackfriday.Image:
			p.links = append(p.links, string(node.Destination))
		}
		return blackfriday.GoToNext
	})
	return p
}

func textOf(node *blackfriday.Node) string {
	var text strings.Builder
	node.Walk(func(n *blackfriday.Node, entering bool) blackfriday.WalkStatus {
		if entering {
			text.Write(n.Literal)
		}
		return blackfriday.GoToNext
	})
	return text.String()
}

var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchorOf returns the fragment that GitHub gives a heading.
func anchorOf(heading string) string {
	return strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// unique numbers an anchor that a page already has, as GitHub does.
func unique(have []string, anchor string) string {
	numbered := anchor
	for i := 1; slices.Contains(have, numbered); i++ {
		numbered = fmt.Sprintf("%s-%d", anchor, i)
	}
	return numbered
}

// follow returns an error if a link of a page leads nowhere. Links to other sites are not followed.
func follow(pages map[string]page, from, link string) error {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return nil
	}
	target, fragment, _ := strings.Cut(link, "#")
	path := from
	if target != "" {
		path = filepath.Join(filepath.Dir(from), target)
	}
	if _, err := os.Stat(filepath.Join(repository, path)); err != nil {
		return fmt.Errorf("%s does not exist", path)
	}
	to, isPage := pages[path]
	if isPage && fragment != "" && !slices.Contains(to.anchors, fragment) {
		return fmt.Errorf("%s has no heading with the fragment %q", path, fragment)
	}
	return nil
}

func TestAnchors(t *testing.T) {
	g := NewWithT(t)
	p := parse([]byte("# The API server's `--flag`, twice\n\n## What's next?\n\n" +
		"[a](#x) <a id=\"x\"></a>\n\n## What's next?\n"))
	g.Expect(p.anchors).To(Equal([]string{"x", "the-api-servers---flag-twice", "whats-next", "whats-next-1"}))
	g.Expect(p.links).To(Equal([]string{"#x"}))
}
