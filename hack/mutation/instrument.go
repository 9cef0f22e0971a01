// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// helperFile is the file that is added to the package during its tests.
const helperFile = "zz_mutation.go"

//go:embed helpers.go.txt
var helpers string

// aliases gives types a name in the helper file, so that a changed file needs no new import.
type aliases struct {
	own     *types.Package
	module  string
	imports map[string]string
	texts   []string
}

// of returns a name for a type.
func (a *aliases) of(t types.Type) string {
	text := types.TypeString(t, func(p *types.Package) string {
		if p == a.own {
			return ""
		}
		if a.imports[p.Path()] == "" {
			a.imports[p.Path()] = fmt.Sprintf("mutantImport%d", len(a.imports))
		}
		return a.imports[p.Path()]
	})
	i := slices.Index(a.texts, text)
	if i < 0 {
		i = len(a.texts)
		a.texts = append(a.texts, text)
	}
	return fmt.Sprintf("mutantType%d_", i)
}

// render writes the helper file with the types and imports that the text uses.
func (a *aliases) render(name, used string) []byte {
	var types strings.Builder
	for i, text := range a.texts {
		if alias := fmt.Sprintf("mutantType%d_", i); strings.Contains(used, alias) {
			fmt.Fprintf(&types, "type %s = %s\n", alias, text)
		}
	}
	var imports strings.Builder
	for _, path := range sortedKeys(a.imports) {
		if strings.Contains(types.String(), a.imports[path]+".") {
			fmt.Fprintf(&imports, "import %s %q\n", a.imports[path], path)
		}
	}
	text := strings.NewReplacer("PACKAGE", name, "IMPORTS", imports.String(), "TYPES", types.String()).Replace(helpers)
	return []byte(text)
}

// mutate finds the changes and omits those that would not compile.
func (p *sourcePackage) mutate() error {
	p.find()
	for range 50 {
		changed := p.instrument()
		_, _, _, wrong := p.check(changed)
		if len(wrong) == 0 {
			return nil
		}
		bad := map[int]bool{}
		for _, problem := range wrong {
			p.blame(problem, changed, bad)
		}
		if len(bad) == 0 {
			return fmt.Errorf("the changed package does not compile: %w", wrong[0])
		}
		p.mutants = slices.DeleteFunc(p.mutants, func(m *mutant) bool { return bad[m.id] })
	}
	return errors.New("the changed package still does not compile after fifty rounds of leaving out changes")
}

var mentions = regexp.MustCompile(`mutant[A-Z]\w*(?:\[[^\]]*\])?\((\d+)|mutantType\d+_`)

// blame marks the changes that may have caused an error: the last one that the error names, the last one before its
// position, or all that use a type.
func (p *sourcePackage) blame(problem types.Error, changed map[string][]byte, bad map[int]bool) {
	at := p.fset.Position(problem.Pos)
	text := changed[at.Filename]
	if at.Filename == "" || at.Offset > len(text) {
		return
	}
	lineStart := bytes.LastIndexByte(text[:at.Offset], '\n') + 1
	line, _, _ := bytes.Cut(text[lineStart:], []byte("\n"))
	if at.Filename == helperFile {
		name := mentions.FindString(string(line))
		for _, m := range p.mutants {
			if name != "" && slices.ContainsFunc(m.wraps, func(w wrap) bool { return strings.Contains(w.before, name) }) {
				bad[m.id] = true
			}
		}
		return
	}
	// An error at the beginning of an expression refers to a later change that it quotes.
	if named := mentions.FindAllStringSubmatch(problem.Msg, -1); len(named) > 0 && named[len(named)-1][1] != "" {
		id, _ := strconv.Atoi(named[len(named)-1][1])
		bad[id] = true
		return
	}
	// The call that contains the error begins before the error, or at the same place.
	id := 0
	for _, match := range mentions.FindAllSubmatchIndex(text, -1) {
		if match[0] > at.Offset && id != 0 {
			break
		}
		if match[2] >= 0 {
			id, _ = strconv.Atoi(string(text[match[2]:match[3]]))
		}
	}
	if id != 0 {
		bad[id] = true
	}
}

// edit is a text to insert at an offset.
type edit struct {
	offset, size, id int
	closes           bool
	text             string
}

// instrument builds all changes into the files at once, each controlled by a switch.
func (p *sourcePackage) instrument() map[string][]byte {
	edits := map[string][]edit{}
	for _, m := range p.mutants {
		for _, w := range m.wraps {
			edits[m.file] = append(edits[m.file], edit{offset: w.start, size: w.end - w.start, id: m.id, text: w.before})
			if w.after != "" {
				edits[m.file] = append(edits[m.file], edit{offset: w.end, size: w.end - w.start, id: m.id, text: w.after, closes: true})
			}
		}
	}
	changed := map[string][]byte{}
	var used strings.Builder
	for name, source := range p.sources {
		changed[name] = apply(source, edits[name])
		used.Write(changed[name])
	}
	changed[helperFile] = p.aliases.render(p.Name, used.String())
	return changed
}

// apply inserts texts into a source so that the text around the larger piece is outside.
func apply(source []byte, edits []edit) []byte {
	slices.SortFunc(edits, func(a, b edit) int {
		if c := cmp.Compare(a.offset, b.offset); c != 0 {
			return c
		}
		if a.closes != b.closes {
			if a.closes {
				return -1
			}
			return 1
		}
		outside := cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.id, b.id))
		if a.closes {
			return -outside
		}
		return outside
	})
	var out bytes.Buffer
	done := 0
	for _, e := range edits {
		out.Write(source[done:e.offset])
		out.WriteString(e.text)
		done = e.offset
	}
	out.Write(source[done:])
	return out.Bytes()
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
