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
		"When it is called hostname it should print the pod's name":   {args: []string{"/usr/bin/hostname"}, want: host + "\n"},
		"When a tool is its first argument it should be that tool":    {args: []string{"web", "hostname"}, want: host + "\n"},
		"When it is called cat it should print files":                 {args: []string{"cat", file, file}, want: "contentcontent"},
		"When a file is missing it should name it":                    {args: []string{"cat", "/no/such/file"}, err: "/no/such/file"},
		"When it fetches a page it should print it":                   {args: []string{"fetch", server.URL}, want: "Hello from pod-1\n"},
		"When a page is missing it should fail":                       {args: []string{"fetch", gone.URL}, err: "404"},
		"When fetch has no address it should say how it is used":      {args: []string{"fetch"}, err: "usage: fetch URL"},
		"When it looks a name up it should print the addresses":       {args: []string{"lookup", "127.0.0.1"}, want: "127.0.0.1\n"},
		"When lookup has no name it should say how it is used":        {args: []string{"lookup"}, err: "usage: lookup NAME"},
		"When the command is not known it should name those that are": {args: []string{"web", "dance"}, err: "use serve, cat"},
		"When the address to serve on is not one it should quote it":  {args: []string{"web", "serve", "nonsense"}, err: "nonsense"},
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
