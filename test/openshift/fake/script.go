// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// document matches a here-document that is written to a file.
var document = regexp.MustCompile(`(?s)cat <<EOF\s*>\s*(\S+)\n(.*?)\n\s*EOF`)

// script runs the parts of a shell script on which other programs depend: here-documents, and copies of one file.
func script(text string) error {
	for _, match := range document.FindAllStringSubmatch(text, -1) {
		if err := os.MkdirAll(filepath.Dir(match[1]), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(match[1], []byte(match[2]), 0o644); err != nil {
			return err
		}
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != "cp" {
			continue
		}
		content, err := os.ReadFile(words[1])
		if err != nil {
			continue // A program that does not run here would have written it.
		}
		if err := os.WriteFile(words[2], content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// makeOutput creates the folders that the ignition-server expects of the machine-config-operator's programs.
func makeOutput(args []string) error {
	folder := flag(args, "dest-dir")
	if folder == "" {
		return nil
	}
	return os.MkdirAll(filepath.Join(folder, "bootstrap", "manifests"), 0o755)
}

// nodeFile is the path of the one file in the configuration that the fake machine-config-server serves.
const nodeFile = "/etc/served-by-release"

// serveConfig serves an Ignition configuration at the port without TLS, which the ignition-server calls.
func serveConfig(args []string) error {
	port := flag(args, "insecure-port")
	if port == "" {
		return fmt.Errorf("no port to serve at in %q", args)
	}
	config := fmt.Sprintf(`{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":%q,"mode":420,"overwrite":true,`+
		`"contents":{"source":"data:,release"}}]}}`, nodeFile)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, config)
	})
	server := http.Server{Addr: ":" + port, Handler: handler, ReadHeaderTimeout: time.Minute}
	return server.ListenAndServe()
}
