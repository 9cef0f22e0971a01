// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/containerimage"
)

// fakeGo creates an empty program for each one that `go build` names, and delegates everything else to Go.
const fakeGo = `#!/bin/sh
[ "$1" != -C ] || shift 2
[ "$1" = build ] || { [ "$1" = mod ] || exec REAL "$@"; exit 0; }
while [ "$1" != -o ]; do shift; done
target=$2; shift 2
case $target in */) ;; *) set -- "$target"; target=$(dirname "$target")/ ;; esac
mkdir -p "$target"
for program in "$@"; do : > "$target${program##*/}"; chmod 755 "$target${program##*/}"; done
`

// instruction matches an instruction of the Dockerfile with its continued lines.
var instruction = regexp.MustCompile(`(?m)^(RUN|COPY|LABEL|USER|ENTRYPOINT|ENV) ((?:.*\\\n)*.*)$`)

// TestDockerfile runs the instructions of the Dockerfile with a Go that compiles nothing, and compares the files with
// those that hack/image packs.
func TestDockerfile(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("../../Dockerfile")
	g.Expect(err).NotTo(HaveOccurred())
	build, final, ok := strings.Cut(string(text), "FROM scratch\n")
	g.Expect(ok).To(BeTrue())
	for _, from := range regexp.MustCompile(`(?m)^FROM .*$`).FindAllString(build, -1) {
		g.Expect(from).To(MatchRegexp(`@sha256:[0-9a-f]{64} `), "nobody can change what it is built with")
	}
	root := t.TempDir()
	for _, run := range instruction.FindAllStringSubmatch(build, -1) {
		if run[1] == "RUN" {
			runInstruction(t, root, run[2])
		}
	}
	var copies, rest []string
	for _, one := range instruction.FindAllStringSubmatch(final, -1) {
		if one[1] == "COPY" {
			copies = append(copies, strings.Fields(one[2])[1])
		} else {
			rest = append(rest, one[0])
		}
	}

	base, err := containerimage.Base()
	g.Expect(err).NotTo(HaveOccurred())
	bin := filepath.Join(programs(t, "amd64"), "amd64")
	image := containerimage.Product(bin, base)
	g.Expect(copies).To(HaveLen(len(image.FilesByLayer())), "a layer for each COPY")
	for i, files := range image.FilesByLayer() {
		if diff := cmp.Diff(packed(t, files), onDisk(t, filepath.Join(root, copies[i]))); diff != "" {
			t.Errorf("layer %d, COPY of %s (-hack/image +Dockerfile):\n%s", i, copies[i], diff)
		}
	}
	g.Expect(rest).To(ConsistOf(
		"LABEL "+containerimage.NodeNetworkLayers+"="+image.Labels[containerimage.NodeNetworkLayers],
		"USER "+image.User, fmt.Sprintf("ENTRYPOINT [%q]", image.Entrypoint[0]), HavePrefix("ENV PATH="),
	))
}

// runInstruction runs a RUN instruction, with folders in root for /image and /below.
func runInstruction(t *testing.T, root, command string) {
	t.Helper()
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	tools := t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "go"), []byte(strings.ReplaceAll(fakeGo, "REAL", real)), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"/image", "/below"} {
		command = regexp.MustCompile(`([ =])`+folder+`\b`).ReplaceAllString(command, "${1}"+root+folder)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", "umask 022; "+command)
	cmd.Dir = "../.."
	// No output of the fake Go may be read from or written to the cache.
	cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "TARGETARCH=amd64", "VERSION=v1", "MAKEFLAGS=", "MAKELEVEL=",
		"HYPERSHIFT_CACHE=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// packed describes the files of a layer, by path.
func packed(t *testing.T, files []containerimage.File) map[string]string {
	t.Helper()
	g := NewWithT(t)
	target := filepath.Join(t.TempDir(), "layer.tar")
	g.Expect(containerimage.WriteLayer(target, files)).To(Succeed())
	in, err := os.Open(target)
	g.Expect(err).NotTo(HaveOccurred())
	defer in.Close()
	found := map[string]string{}
	for archive := tar.NewReader(in); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		g.Expect(err).NotTo(HaveOccurred())
		found[strings.Trim(header.Name, "/")] = describe(header.FileInfo().Mode(), header.Linkname)
		if isData(files, header.Name) {
			content, err := io.ReadAll(archive)
			g.Expect(err).NotTo(HaveOccurred())
			found[header.Name] += " " + string(content)
		}
	}
}

func isData(files []containerimage.File, name string) bool {
	return slices.ContainsFunc(files, func(f containerimage.File) bool { return f.Path == "/"+name && f.Data != nil })
}

// onDisk describes the files of a folder, by path, with the content of files that are not programs.
func onDisk(t *testing.T, dir string) map[string]string {
	t.Helper()
	g := NewWithT(t)
	found := map[string]string{}
	g.Expect(filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		link, _ := os.Readlink(path)
		name := strings.TrimPrefix(path, dir+"/")
		found[name] = describe(info.Mode(), link)
		if content, err := os.ReadFile(path); err == nil && len(content) > 0 && link == "" {
			found[name] += " " + string(content)
		}
		return nil
	})).To(Succeed())
	return found
}

func describe(mode fs.FileMode, link string) string {
	if link != "" {
		return "link to " + link
	}
	return mode.String()
}
