// SPDX-License-Identifier: Apache-2.0

package netns_test

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	. "github.com/onsi/gomega"
)

// helloSource is the only program in the image. It prints its process ID, or waits.
const helloSource = `package main

import (
	"fmt"
	"os"
	"os/signal"
)

func main() {
	fmt.Println("hello from pid", os.Getpid())
	if len(os.Args) > 1 {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, os.Interrupt)
		<-signals
	}
}
`

// writeImage writes an image with one static program as a tar file.
func writeImage(t *testing.T, reference, path string) {
	t.Helper()
	g := NewWithT(t)
	content := layerOf(g, buildHello(t))
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	g.Expect(err).NotTo(HaveOccurred())
	image, err := mutate.AppendLayers(empty.Image, layer)
	g.Expect(err).NotTo(HaveOccurred())
	file, err := image.ConfigFile()
	g.Expect(err).NotTo(HaveOccurred())
	file.OS, file.Architecture = "linux", runtime.GOARCH
	file.Config = v1.Config{Entrypoint: []string{"/hello"}}
	image, err = mutate.ConfigFile(image, file)
	g.Expect(err).NotTo(HaveOccurred())
	tag, err := name.NewTag(reference)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tarball.WriteToFile(path, tag, image)).To(Succeed())
}

// buildHello builds the program and returns its binary.
func buildHello(t *testing.T) []byte {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	source, program := filepath.Join(dir, "hello.go"), filepath.Join(dir, "hello")
	g.Expect(os.WriteFile(source, []byte(helloSource), 0o600)).To(Succeed())
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	data, err := os.ReadFile(program)
	g.Expect(err).NotTo(HaveOccurred())
	return data
}

func layerOf(g *WithT, program []byte) []byte {
	var layer bytes.Buffer
	writer := tar.NewWriter(&layer)
	g.Expect(writer.WriteHeader(&tar.Header{Name: "hello", Mode: 0o755, Size: int64(len(program))})).To(Succeed())
	_, err := writer.Write(program)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(writer.Close()).To(Succeed())
	return layer.Bytes()
}
