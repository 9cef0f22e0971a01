// SPDX-License-Identifier: Apache-2.0

// Command vulnerabilities looks for known vulnerabilities in the modules that are linked into programs. It runs
// govulncheck with a copy of Go's vulnerability database. It fails for a vulnerability that no accepted entry
// explains. For the Go toolchain it only prints the vulnerabilities, because the machine's own toolchain may build
// the programs.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/version"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// standardLibrary is the module path that govulncheck gives the packages of the Go toolchain.
const standardLibrary = "stdlib"

// vulnerability is a vulnerability that is linked into a program.
type vulnerability struct {
	id, module, found, fixed string
}

// message is a message of govulncheck's JSON output: https://pkg.go.dev/golang.org/x/vuln/internal/govulncheck.
type message struct {
	Finding *struct {
		OSV          string `json:"osv"`
		FixedVersion string `json:"fixed_version"`
		Trace        []struct {
			Module  string `json:"module"`
			Version string `json:"version"`
		} `json:"trace"`
	} `json:"finding"`
}

func main() {
	tool := flag.String("govulncheck", "govulncheck", "the program govulncheck")
	database := flag.String("db", "", "the `URL` of the vulnerability database, such as file:///folder")
	file := flag.String("accepted", "", "a YAML `file` with the accepted vulnerabilities: IDs with reasons")
	flag.Parse()
	found := map[string][]vulnerability{}
	for _, program := range flag.Args() {
		linked, err := scan(*tool, *database, program)
		if err != nil {
			fail(err)
		}
		found[program] = linked
	}
	accepted, err := read(*file)
	if err != nil {
		fail(err)
	}
	if err := report(os.Stdout, found, accepted); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// read returns the reasons of the accepted vulnerabilities by ID.
func read(file string) (map[string]string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	accepted := map[string]string{}
	if err := yaml.UnmarshalStrict(content, &accepted); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return accepted, nil
}

// scan returns the vulnerabilities of the modules that are linked into a program.
func scan(tool, database, program string) ([]vulnerability, error) {
	cmd := exec.Command(tool, "-mode", "binary", "-format", "json", "-db", database, program)
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("scanning %s: %w", program, err)
	}
	known := map[vulnerability]bool{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		m := message{}
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			byID := func(a, b vulnerability) int { return strings.Compare(a.id, b.id) }
			return slices.SortedFunc(maps.Keys(known), byID), nil
		}
		if err != nil {
			return nil, fmt.Errorf("decoding the answer about %s: %w", program, err)
		}
		if f := m.Finding; f != nil && len(f.Trace) > 0 {
			known[vulnerability{f.OSV, f.Trace[0].Module, f.Trace[0].Version, f.FixedVersion}] = true
		}
	}
}

// report prints the vulnerabilities of the toolchain. It returns an error for vulnerabilities without an accepted
// entry, and for entries without a vulnerability.
func report(out io.Writer, found map[string][]vulnerability, accepted map[string]string) error {
	var failures []error
	used := map[string]bool{}
	for _, program := range slices.Sorted(maps.Keys(found)) {
		toolchain, needed := 0, ""
		for _, v := range found[program] {
			_, explained := accepted[v.id]
			used[v.id] = true
			switch {
			case v.module == standardLibrary:
				toolchain++
				if fixed := "go" + strings.TrimPrefix(v.fixed, "v"); version.Compare(fixed, needed) > 0 {
					needed = fixed
				}
			case !explained:
				failures = append(failures, fmt.Errorf(
					"%s: %s in %s %s, fixed in %s: raise the module and build again, or accept it with a reason",
					program, v.id, v.module, v.found, v.fixed))
			}
		}
		if toolchain > 0 {
			fmt.Fprintf(out, "%s: its Go toolchain has %d known vulnerabilities: release it with %s or later\n",
				program, toolchain, needed)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(accepted)) {
		if !used[id] {
			failures = append(failures, fmt.Errorf("%s is accepted, but in no program: delete the entry", id))
		}
	}
	return errors.Join(failures...)
}
