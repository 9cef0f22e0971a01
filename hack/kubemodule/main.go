// SPDX-License-Identifier: Apache-2.0

// Command kubemodule prints the go.mod of a module that builds the programs of one version of Kubernetes.
//
// Usage: go run ./hack/kubemodule VERSION > go.mod, where VERSION is for example v1.31.14.
//
// The go.mod of k8s.io/kubernetes replaces its libraries with folders of its own repository, which a dependent module
// does not have. The printed go.mod replaces them with the versions that were published with it.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

const kubernetes = "k8s.io/kubernetes"

// module holds the relevant part of the output of `go mod edit -json`.
type module struct {
	Go      string
	GoDebug []setting `json:"Godebug"`
	Replace []replacement
}

type setting struct{ Key, Value string }

type replacement struct {
	Old, New struct{ Path, Version string }
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "kubemodule: name one version of Kubernetes, such as v1.31.14")
		os.Exit(2)
	}
	if err := run(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "kubemodule:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, version string) error {
	libraries, err := librariesOf(version)
	if err != nil {
		return err
	}
	var downloaded struct{ GoMod string }
	if err := goCommand(&downloaded, "mod", "download", "-json", kubernetes+"@"+version); err != nil {
		return err
	}
	var theirs module
	if err := goCommand(&theirs, "mod", "edit", "-json", downloaded.GoMod); err != nil {
		return err
	}
	_, err = io.WriteString(out, theirs.dependent(version, libraries))
	return err
}

// librariesOf returns the version of the libraries of a version of Kubernetes: v0.31.14 for v1.31.14.
func librariesOf(version string) (string, error) {
	rest, ok := strings.CutPrefix(version, "v1.")
	if !ok || strings.Count(rest, ".") != 1 {
		return "", fmt.Errorf("%q is not a version of Kubernetes; name one such as v1.31.14", version)
	}
	return "v0." + rest, nil
}

// dependent returns the text of a go.mod that depends on a version of Kubernetes. It keeps the language version and the
// runtime settings of Kubernetes, so that a newer toolchain builds the same programs as the project's own.
func (m module) dependent(version, libraries string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "module kube-apiserver\n\ngo %s\n\n", m.Go)
	for _, s := range m.GoDebug {
		fmt.Fprintf(&text, "godebug %s=%s\n\n", s.Key, s.Value)
	}
	fmt.Fprintf(&text, "require %s %s\n\nreplace (\n", kubernetes, version)
	for _, r := range m.Replace {
		if r.New.Version != "" {
			fmt.Fprintf(&text, "\t%s => %s %s\n", strings.TrimSpace(r.Old.Path+" "+r.Old.Version), r.New.Path, r.New.Version)
			continue
		}
		fmt.Fprintf(&text, "\t%s => %s %s\n", r.Old.Path, r.Old.Path, libraries)
	}
	text.WriteString(")\n")
	return text.String()
}

// goCommand runs the go command outside any module and decodes the JSON that it prints.
func goCommand(into any, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Dir = os.TempDir()
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("running go %s: %w%s", strings.Join(args, " "), err, complaint(out, err))
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("reading what go %s printed: %w", strings.Join(args, " "), err)
	}
	return nil
}

// complaint returns the error text of a failed go command; `go mod download -json` prints it to its output.
func complaint(out []byte, err error) string {
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		out = append(out, failed.Stderr...)
	}
	return "\n" + strings.TrimSpace(string(out))
}
