// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/containerimage"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
)

// publishedImages are the images of Kubernetes 1.36.3 in the project's registry.
var publishedImages = []string{
	"etcd:3.6.8-0", "pause:3.10.2", "coredns/coredns:v1.14.2", "kube-apiserver:v1.36.3", "kube-controller-manager:v1.36.3", "kube-scheduler:v1.36.3",
	"kube-proxy:v1.36.3", "cluster-api/cluster-api-controller:v1.13.6", "autoscaling/cluster-autoscaler:v1.36.0", "flannel-io/flannel:v0.28.10",
	"metrics-server/metrics-server:v0.9.0",
}

// world is the fixture of a test: a registry with the project's images, a private registry, and a folder of programs
// for nodes.
type world struct {
	*testing.T
	Gomega
	public, own *releasetest.Registry
	product     string
	dir         string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, Gomega: NewWithT(t), public: releasetest.Start(t), own: releasetest.Start(t), dir: t.TempDir()}
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	for _, image := range publishedImages {
		w.publish(image, "amd64", "arm64", "s390x")
	}
	w.product = w.own.PushIndex(t, w.own.Host+"/hypershift:v1", index(t, "hypershift", "amd64", "arm64"))
	w.write("ca.crt", string(w.public.CA)+string(w.own.CA))
	for _, arch := range []string{"amd64", "arm64"} {
		for _, program := range []string{"kubelet", "runc"} {
			w.program(program, arch)
		}
	}
	return w
}

// publish pushes an image for several architectures, as the project does.
func (w *world) publish(image string, architectures ...string) {
	w.Helper()
	w.public.PushIndex(w.T, w.public.Host+"/"+image, index(w.T, image, architectures...))
}

func index(t *testing.T, text string, architectures ...string) v1.ImageIndex {
	t.Helper()
	all := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range architectures {
		all = mutate.AppendManifests(all, mutate.IndexAddendum{
			Add: single(t, text, arch), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return all
}

func single(t *testing.T, text, arch string) v1.Image {
	t.Helper()
	image, err := containerimage.Assemble(containerimage.Image{Name: text}, arch, static.NewLayer([]byte(text+arch), types.OCIUncompressedLayer))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return image
}

// labelled returns an image of the product with two layers. The label gives the number of layers that nodes need.
func labelled(t *testing.T, layers string) v1.ImageIndex {
	t.Helper()
	g := NewWithT(t)
	all := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range []string{"amd64", "arm64"} {
		image, err := containerimage.Assemble(
			containerimage.Image{Name: "hypershift", User: containerimage.NonRoot, Labels: map[string]string{containerimage.NodeNetworkLayers: layers}}, arch,
			static.NewLayer([]byte("below "+arch), types.OCIUncompressedLayer), static.NewLayer([]byte("above "+arch), types.OCIUncompressedLayer))
		g.Expect(err).NotTo(HaveOccurred())
		all = mutate.AppendManifests(all, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	return all
}

// image pulls an image as a node of this architecture does.
func (w *world) image(spec, arch string) v1.Image {
	w.Helper()
	ref, err := name.NewDigest(spec)
	w.Expect(err).NotTo(HaveOccurred())
	transport, err := releaseinfo.NewTransport(w.own.CA, false)
	w.Expect(err).NotTo(HaveOccurred())
	image, err := remote.Image(ref, remote.WithTransport(transport), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
	w.Expect(err).NotTo(HaveOccurred())
	return image
}

// files returns the contents of an image's layers.
func (w *world) files(image v1.Image) []string {
	w.Helper()
	layers, err := image.Layers()
	w.Expect(err).NotTo(HaveOccurred())
	var contents []string
	for _, layer := range layers {
		body, err := layer.Compressed()
		w.Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(body)
		w.Expect(err).NotTo(HaveOccurred())
		contents = append(contents, string(content))
	}
	return contents
}

func (w *world) write(file, content string) string {
	w.Helper()
	path := filepath.Join(w.dir, file)
	w.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	w.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

// program writes the header of a program and its checksum.
func (w *world) program(name, arch string) {
	header := make([]byte, 20)
	copy(header, "\x7fELF")
	header[18] = map[string]byte{"amd64": 62, "arm64": 183}[arch]
	content := string(header) + name
	digest := sha256.Sum256([]byte(content))
	w.write(arch+"/"+name, content)
	w.write(arch+"/"+name+".sha256", hex.EncodeToString(digest[:])+"\n")
}

// run runs `release` with arguments and returns its standard output and standard error.
func (w *world) run(args ...string) (out, said string, err error) {
	w.Helper()
	var stdout, stderr bytes.Buffer
	cmd := NewCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(w.Context())
	return strings.TrimSpace(stdout.String()), stderr.String(), err
}

// build returns the arguments of a build of Kubernetes 1.36.3 with an existing node image.
func (w *world) build(more ...string) []string {
	return append([]string{
		"build", "--kubernetes", "v1.36.3", "--to", w.own.Host + "/team/release:1.36.3", "--image-repository", w.public.Host,
		"--product-image", w.product, "--ca-file", filepath.Join(w.dir, "ca.crt"), "--download-dir", filepath.Join(w.dir, "downloads"),
	}, more...)
}

// withNode adds an existing node image.
func (w *world) withNode(more ...string) []string {
	node := w.own.PushIndex(w.T, w.own.Host+"/mine/node:1", index(w.T, "node", "amd64", "arm64"))
	return w.build(append([]string{"--component", "node=" + node}, more...)...)
}

// release reads a release from a registry.
func (w *world) release(registry *releasetest.Registry, spec string) *releaseinfo.ReleaseImage {
	w.Helper()
	found, err := registry.Provider(w.T).Lookup(w.Context(), spec, nil)
	w.Expect(err).NotTo(HaveOccurred())
	return found
}

// pushed records the write requests that a registry receives.
func (w *world) pushed(registry *releasetest.Registry) *[]string {
	all := &[]string{}
	var side sync.Mutex // Layers are pushed concurrently.
	registry.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			side.Lock()
			defer side.Unlock()
			*all = append(*all, r.Method+" "+r.URL.Path)
		}
		return false
	})
	return all
}

// has checks that the registry serves an image of a release to a node.
func (w *world) has(registry *releasetest.Registry, spec string) {
	w.Helper()
	ref, err := name.NewDigest(spec)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(ref.RegistryStr()).To(Equal(registry.Host), spec)
	_, err = registry.Provider(w.T).Labels(context.WithoutCancel(w.Context()), spec, nil)
	w.Expect(err).NotTo(HaveOccurred())
}

// archives writes an archive of programs and its checksum for each architecture, and returns their path.
func (w *world) archives(name string, programs ...string) string {
	for _, arch := range []string{"amd64", "arm64"} {
		var content bytes.Buffer
		zipped := gzip.NewWriter(&content)
		archive := tar.NewWriter(zipped)
		for _, program := range programs {
			w.program(program, arch)
			data, err := os.ReadFile(filepath.Join(w.dir, arch, program))
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(archive.WriteHeader(&tar.Header{Name: "bin/" + program, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(data))})).To(Succeed())
			_, err = archive.Write(data)
			w.Expect(err).NotTo(HaveOccurred())
		}
		w.Expect(archive.Close()).To(Succeed())
		w.Expect(zipped.Close()).To(Succeed())
		digest := sha256.Sum256(content.Bytes())
		file := name + "-" + arch + ".tgz"
		w.write(file, content.String())
		w.write(file+".sha256", hex.EncodeToString(digest[:])+"  "+file+"\n")
	}
	return filepath.Join(w.dir, name+"-{arch}.tgz")
}
