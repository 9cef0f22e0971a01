// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/host/hosttest"
	"github.com/openshift/hypershift/node-agent/release"
	"github.com/openshift/hypershift/support/nodeplan"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

const (
	nodeDir = "/opt/hypershift/node"
	current = nodeDir + "/current"
	caPath  = "/etc/containerd/certs.d/ca.crt"
)

// world is a machine and a registry that it can reach.
type world struct {
	*GomegaWithT
	*hosttest.Machine
	t        *testing.T
	registry *releasetest.Registry
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{GomegaWithT: NewWithT(t), Machine: hosttest.New(t), t: t, registry: releasetest.Start(t)}
	w.Put(caPath, string(w.registry.CA))
	return w
}

// file is a file in an image. text is the content of a regular file, or the target of a link.
type file struct {
	kind byte
	mode int64
	text string
}

// layer holds the files of a layer by name. The layer contains them in the order of their names.
type layer map[string]file

func program(text string) file { return file{tar.TypeReg, 0o755, text} }

// programs returns a layer with the programs that a node needs, and the files of more.
func programs(more ...layer) layer {
	files := layer{"opt/cni/bin/bridge": program("bridge"), "opt/cni/bin/ptp": program("ptp")}
	for _, name := range []string{"kubelet", "containerd", "containerd-shim-runc-v2", "ctr", "runc"} {
		files["usr/bin/"+name] = program(name)
	}
	for _, m := range more {
		maps.Copy(files, m)
	}
	return files
}

func imageOf(t *testing.T, layers ...layer) v1.Image {
	t.Helper()
	image := empty.Image
	for _, files := range layers {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			f := files[name]
			header := &tar.Header{Name: name, Typeflag: f.kind, Mode: f.mode, Linkname: f.text}
			if f.kind == tar.TypeReg {
				header.Linkname, header.Size = "", int64(len(f.text))
			}
			err := w.WriteHeader(header)
			if err == nil && f.kind == tar.TypeReg {
				_, err = io.WriteString(w, f.text)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		made, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
		if err != nil {
			t.Fatal(err)
		}
		if image, err = mutate.AppendLayers(image, made); err != nil {
			t.Fatal(err)
		}
	}
	return image
}

// push pushes an image of these layers to the registry, and returns its reference for a plan.
func (w *world) push(name string, layers ...layer) nodeplan.Image {
	w.t.Helper()
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: imageOf(w.t, layers...), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}},
	})
	spec := w.registry.PushIndex(w.t, w.registry.Host+"/"+name+":1", index)
	return nodeplan.Image{Name: spec, Sources: []nodeplan.Source{{Image: spec, CAs: []string{caPath}}}}
}

func (w *world) install(image nodeplan.Image) error {
	return release.Install(w.t.Context(), w.Host, &nodeplan.Plan{Node: image})
}

// installed returns the files of the current installation by their path in it, without the list of files.
func (w *world) installed() map[string]string {
	w.t.Helper()
	folder, err := filepath.EvalSymlinks(w.Path(current))
	w.Expect(err).NotTo(HaveOccurred())
	all, prefix := map[string]string{}, strings.TrimPrefix(folder, w.Root)+"/"
	for path, text := range w.Files() {
		if name, ok := strings.CutPrefix(path, prefix); ok && name != "installed.json" {
			all[name] = text
		}
	}
	return all
}

// whole returns the files of an image that contains the programs only.
func whole() map[string]string {
	all := map[string]string{}
	for name, f := range programs() {
		all[name] = fs.FileMode(0o755).String() + " " + f.text
	}
	return all
}

// slots returns the installations on the machine, including leftovers of incomplete ones.
func (w *world) slots() []string {
	w.t.Helper()
	found, err := filepath.Glob(w.Path(nodeDir + "/*"))
	w.Expect(err).NotTo(HaveOccurred())
	hidden, err := filepath.Glob(w.Path(nodeDir + "/.*"))
	w.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, path := range slices.Concat(found, hidden) {
		if name := filepath.Base(path); name != filepath.Base(current) {
			names = append(names, name)
		}
	}
	return names
}
