// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestRun(t *testing.T) {
	host, err := os.Hostname()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(t.TempDir(), "file")
	NewWithT(t).Expect(os.WriteFile(file, []byte("content"), 0o600)).To(Succeed())
	server := httptest.NewServer(page("pod-1", log.New(io.Discard, "", 0)))
	defer server.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	defer gone.Close()

	for name, test := range map[string]struct {
		args      []string
		want, err string
	}{
		"When the program is called hostname, it should print the Pod's name": {args: []string{"/usr/bin/hostname"}, want: host + "\n"},
		"When the first argument is a tool, it should run that tool":          {args: []string{"web", "hostname"}, want: host + "\n"},
		"When the program is called cat, it should print files":               {args: []string{"cat", file, file}, want: "contentcontent"},
		"When a file is missing, the error should name it":                    {args: []string{"cat", "/no/such/file"}, err: "/no/such/file"},
		"When it fetches a page, it should print the page":                    {args: []string{"fetch", server.URL}, want: "Hello from pod-1\n"},
		"When a page is missing, it should fail":                              {args: []string{"fetch", gone.URL}, err: "404"},
		"When fetch has no URL, the error should show the usage":              {args: []string{"fetch"}, err: "usage: fetch URL"},
		"When it looks up a name, it should print the addresses":              {args: []string{"lookup", "127.0.0.1"}, want: "127.0.0.1\n"},
		"When lookup has no name, the error should show the usage":            {args: []string{"lookup"}, err: "usage: lookup NAME"},
		"When the command is unknown, the error should list the known ones":   {args: []string{"web", "dance"}, err: "use serve, admit, cat"},
		"When the listen address is invalid, the error should quote it":       {args: []string{"web", "serve", "nonsense"}, err: "nonsense"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var out strings.Builder
			err := run(t.Context(), test.args, &out)
			if test.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.String()).To(Equal(test.want))
		})
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"web", "serve", "127.0.0.1:0"}, io.Discard) }()
	cancel()
	g.Eventually(ended, 2*time.Minute).Should(Receive(BeNil()))
}
