// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"context"
	"encoding/pem"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/containerimage"
	"github.com/openshift/hypershift/test/devcluster/registry"
)

func sample(t *testing.T) []containerimage.Image {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	NewWithT(t).Expect(os.WriteFile(program, []byte("#!"), 0o600)).To(Succeed())
	return []containerimage.Image{
		{
			Name: "one", User: "65532:65532", Entrypoint: []string{"/usr/bin/program"}, Env: []string{"A=b"},
			Files: []containerimage.File{
				{Path: "/usr/bin/again", HardLink: "/usr/bin/program"},
				{Path: "/usr/bin/program", Source: program},
				{Path: "/link", Link: "/usr/bin/program"},
				{Path: "/etc/passwd", Data: []byte("root")},
				{Path: "/tmp", Mode: fs.ModeSticky | 0o777},
			},
		},
		{Name: "two", Files: []containerimage.File{{Path: "/pause", Source: program}}},
	}
}

func build(t *testing.T, images []containerimage.Image) string {
	t.Helper()
	target := filepath.Join(t.TempDir(), "oci")
	NewWithT(t).Expect(Build(target, images)).To(Succeed())
	return target
}

func TestBuild(t *testing.T) {
	t.Run("When the same files are built twice, the images should be identical", func(t *testing.T) {
		g := NewWithT(t)
		images := sample(t)
		first, err := List(build(t, images))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.Chtimes(images[1].Files[0].Source, fixed, fixed)).To(Succeed())
		second, err := List(build(t, images))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(first).To(HaveLen(2))
		g.Expect(second).To(Equal(first))
	})
	t.Run("When a file changes, the digest of the image should change", func(t *testing.T) {
		g := NewWithT(t)
		images := sample(t)
		first, err := List(build(t, images))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(images[1].Files[0].Source, []byte("##"), 0o600)).To(Succeed())
		second, err := List(build(t, images))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(second[1].Digest).NotTo(Equal(first[1].Digest))
	})
	t.Run("When an image is built, it should be valid and its config should name the program", func(t *testing.T) {
		g := NewWithT(t)
		target := build(t, sample(t))
		built, err := List(target)
		g.Expect(err).NotTo(HaveOccurred())
		image, err := layout.Path(target).Image(built[0].Digest)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(validate.Image(image, validate.Fast)).To(Succeed())
		config, err := image.ConfigFile()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.OS).To(Equal("linux"))
		g.Expect(config.Config.User).To(Equal("65532:65532"))
		g.Expect(config.Config.Entrypoint).To(Equal([]string{"/usr/bin/program"}))
		g.Expect(config.Config.Env).To(ConsistOf(ContainSubstring("/usr/local/bin:"), "A=b"))
	})
	t.Run("When the images are built again, they should replace the old ones", func(t *testing.T) {
		g := NewWithT(t)
		images := sample(t)
		target := build(t, images)
		g.Expect(Build(target, images[1:])).To(Succeed())
		built, err := List(target)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(built).To(HaveLen(1))
	})
	t.Run("When a program is missing, the error should name the image and the old images should stay", func(t *testing.T) {
		g := NewWithT(t)
		target := build(t, sample(t))
		broken := []containerimage.Image{{Name: "broken", Files: []containerimage.File{{Path: "/x", Source: filepath.Join(t.TempDir(), "none")}}}}
		g.Expect(Build(target, broken)).To(MatchError(ContainSubstring("building image broken")))
		g.Expect(List(target)).To(HaveLen(2))
	})
	t.Run("When nothing was built, the error should say how to build the images", func(t *testing.T) {
		_, err := List(filepath.Join(t.TempDir(), "none"))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("make images")))
	})
}

func TestLayer(t *testing.T) {
	g := NewWithT(t)
	target := filepath.Join(t.TempDir(), "layer.tar")
	_, err := newLayer(target, sample(t)[0].Files)
	g.Expect(err).NotTo(HaveOccurred())
	file, err := os.Open(target)
	g.Expect(err).NotTo(HaveOccurred())
	defer file.Close()

	var order []string
	headers := map[string]*tar.Header{}
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
		order = append(order, header.Name)
		headers[header.Name] = header
	}
	g.Expect(order).To(Equal([]string{"etc/", "etc/passwd", "link", "tmp/", "usr/", "usr/bin/", "usr/bin/program", "usr/bin/again"}),
		"folders come before what is in them, a hard link after its file")
	g.Expect(headers["usr/bin/again"]).To(HaveField("Linkname", "usr/bin/program"))
	g.Expect(headers["usr/bin/program"]).To(HaveField("Mode", int64(0o755)))
	g.Expect(headers["etc/passwd"]).To(HaveField("Mode", int64(0o644)))
	g.Expect(headers["tmp/"]).To(HaveField("Mode", int64(0o1777)))
	g.Expect(headers["link"]).To(HaveField("Linkname", "/usr/bin/program"))
	for _, header := range headers {
		g.Expect(header.ModTime.Unix()).To(BeZero())
		g.Expect(header.Uid).To(BeZero())
	}
}

// served returns a registry with TLS that counts uploads.
func served(t *testing.T, handler http.Handler) (address string, ca []byte, uploads *atomic.Int32) {
	t.Helper()
	uploads = &atomic.Int32{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			uploads.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return strings.TrimPrefix(server.URL, "https://"), ca, uploads
}

func TestPush(t *testing.T) {
	pull := func(g Gomega, built Built, address string, ca []byte) {
		reference, err := name.ParseReference(built.Pullspec(address))
		g.Expect(err).NotTo(HaveOccurred())
		transport, err := trusting(ca)
		g.Expect(err).NotTo(HaveOccurred())
		image, err := remote.Image(reference, remote.WithTransport(transport), remote.WithContext(context.WithoutCancel(t.Context())))
		g.Expect(err).NotTo(HaveOccurred())
		content := mutate.Extract(image)
		defer content.Close()
		g.Expect(io.Copy(io.Discard, content)).To(BeNumerically(">", 0), "the layers can be read and have their digests")
	}
	t.Run("When the registry is empty, every image should be pushed by digest and by tag", func(t *testing.T) {
		g := NewWithT(t)
		target := build(t, sample(t))
		address, ca, uploads := served(t, ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0))))
		g.Expect(Push(t.Context(), target, address, ca)).To(Succeed())
		g.Expect(uploads.Load()).To(BeNumerically(">", 0))
		built, err := List(target)
		g.Expect(err).NotTo(HaveOccurred())
		for _, image := range built {
			pull(g, image, address, ca)
		}
	})
	t.Run("When the registry has every image already, no data should be uploaded", func(t *testing.T) {
		g := NewWithT(t)
		target := build(t, sample(t))
		address, ca, uploads := served(t, ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0))))
		g.Expect(Push(t.Context(), target, address, ca)).To(Succeed())
		uploads.Store(0)
		g.Expect(Push(t.Context(), target, address, ca)).To(Succeed())
		g.Expect(uploads.Load()).To(BeZero())
	})
	t.Run("When the registry was seeded, only the manifests should be uploaded", func(t *testing.T) {
		g := NewWithT(t)
		target := build(t, sample(t))
		dir := t.TempDir()
		g.Expect(Seed(target, registry.Blobs(dir))).To(Succeed())
		g.Expect(Seed(target, registry.Blobs(dir))).To(Succeed(), "seeding twice is no error")
		seeded, err := registry.Open(t.Context(), dir)
		g.Expect(err).NotTo(HaveOccurred())
		address, ca, uploads := served(t, seeded)
		g.Expect(Push(t.Context(), target, address, ca)).To(Succeed())
		g.Expect(uploads.Load()).To(BeZero())
		built, err := List(target)
		g.Expect(err).NotTo(HaveOccurred())
		pull(g, built[0], address, ca)
	})
	t.Run("When another CA signed the registry's certificate, the push should fail", func(t *testing.T) {
		g := NewWithT(t)
		target := build(t, sample(t))
		address, _, _ := served(t, ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0))))
		other := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: selfSigned(g)})
		g.Expect(Push(t.Context(), target, address, other)).To(MatchError(ContainSubstring("certificate")))
	})
	t.Run("When the CA is not a certificate, the error should say so", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(Push(t.Context(), build(t, sample(t)), "127.0.0.1:1", []byte("x"))).To(MatchError(ContainSubstring("not a PEM certificate")))
	})
}

func TestPullspecs(t *testing.T) {
	g := NewWithT(t)
	specs, err := Pullspecs(build(t, sample(t)), "192.0.2.1:5000")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(specs).To(HaveKeyWithValue("one", MatchRegexp(`^192\.0\.2\.1:5000/hypershift/one@sha256:[0-9a-f]{64}$`)))
	g.Expect(specs).To(HaveKey("two"))
}

func TestNeededLibraries(t *testing.T) {
	t.Run("When a program loads libraries, it should find all of them and the loader", func(t *testing.T) {
		g := NewWithT(t)
		program, err := findProgram("mount")
		g.Expect(err).NotTo(HaveOccurred())
		libraries, err := libraryClosure([]string{program})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(libraries).To(ContainElements(ContainSubstring("libc.so"), ContainSubstring("libmount.so"), ContainSubstring("ld-linux")))
		for _, library := range libraries {
			g.Expect(library).To(BeARegularFile())
		}
	})
	t.Run("When the file is not a program, the error should name it", func(t *testing.T) {
		_, err := libraryClosure([]string{"/etc/passwd"})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("/etc/passwd")))
	})
	t.Run("When a program is missing, the error should say how to get it", func(t *testing.T) {
		_, err := findProgram("no-such-program")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("make os-commands")))
	})
}

func TestRecipes(t *testing.T) {
	if _, err := packetFilterTools(); err != nil {
		t.Skip("needs nft and iptables on this machine: ", err)
	}
	g := NewWithT(t)
	recipes, err := Recipes("/built", []Release{{Folder: "kube", Version: "1.36.3"}, {Folder: "kube-previous", Version: "1.35.0", Suffix: "-previous"}})
	g.Expect(err).NotTo(HaveOccurred())
	files := map[string][]string{}
	for _, image := range recipes {
		for _, file := range slices.Concat(image.FilesByLayer()...) {
			files[image.Name] = append(files[image.Name], file.Path)
		}
	}
	// These paths are used by other packages, see docs/architecture.md.
	for image, paths := range map[string][]string{
		"hypershift": {
			"/usr/bin/hypershift", "/usr/bin/hcp", "/usr/bin/hypershift-operator", "/usr/bin/control-plane-operator",
			"/usr/bin/ignition-server", "/usr/bin/cluster-api-provider-maas", "/manager", "/usr/bin/node-network", "/usr/bin/tunnel", "/opt/cni/bin/ptp",
			"/opt/cni/bin/host-local", "/opt/cni/bin/portmap", "/etc/ssl/certs/ca-certificates.crt", "/etc/passwd",
		},
		"etcd":                             {"/usr/local/bin/etcd"},
		"kube-apiserver":                   {"/usr/local/bin/kube-apiserver"},
		"kube-apiserver-previous":          {"/usr/local/bin/kube-apiserver"},
		"kube-controller-manager-previous": {"/usr/local/bin/kube-controller-manager"},
		"kube-scheduler":                   {"/usr/local/bin/kube-scheduler"},
		"kube-proxy":                       {"/usr/local/bin/kube-proxy", "/usr/sbin/nft", "/usr/sbin/iptables"},
		"pause":                            {"/pause"},
		"coredns":                          {"/coredns"},
		"cluster-api":                      {"/manager"},
		"flannel":                          {"/opt/bin/flanneld", "/usr/sbin/iptables"},
		"metrics-server":                   {"/metrics-server"},
		"web":                              {"/usr/bin/web", "/usr/bin/cat"},
		"standin":                          {"/manager"},
	} {
		g.Expect(files[image]).To(ContainElements(paths), image)
	}
}

// TestPublishedNames compares the pushed images with the modules that they are built from, and with the users and
// entrypoints of the images of registry.k8s.io.
func TestPublishedNames(t *testing.T) {
	if _, err := packetFilterTools(); err != nil {
		t.Skip("needs nft and iptables on this machine: ", err)
	}
	g := NewWithT(t)
	recipes, err := Recipes("/built", []Release{{Folder: "kube", Version: "1.36.3"}, {Folder: "kube-previous", Version: "1.35.0", Suffix: "-previous"}})
	g.Expect(err).NotTo(HaveOccurred())
	references := map[string]string{}
	for _, image := range recipes {
		if image.Reference != "" {
			references[image.Reference] = strings.Join(image.Entrypoint, " ") + " " + image.User
		}
	}
	wanted := map[string]string{
		"registry.k8s.io/pause:3.10.2": "/pause 65535:65535",
		"registry.k8s.io/coredns/coredns:" + requirement(t, "coredns", "github.com/coredns/coredns"):                     "/coredns 65532:65532",
		"registry.k8s.io/cluster-api/cluster-api-controller:" + requirement(t, "clusterapi", "sigs.k8s.io/cluster-api"):  "/manager 65532:65532",
		"registry.k8s.io/flannel-io/flannel:" + requirement(t, "flannel", "github.com/flannel-io/flannel"):               "/opt/bin/flanneld ",
		"registry.k8s.io/metrics-server/metrics-server:" + requirement(t, "metricsserver", "sigs.k8s.io/metrics-server"): "/metrics-server 65534",
		"registry.k8s.io/etcd:" + strings.TrimPrefix(requirement(t, "kube", "go.etcd.io/etcd/server/v3"), "v") + "-0":    " ",
	}
	for _, program := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		for _, version := range []string{"v1.36.3", "v1.35.0"} {
			wanted["registry.k8s.io/"+program+":"+version] = "/go-runner "
			if program == "kube-proxy" {
				wanted["registry.k8s.io/"+program+":"+version] = " "
			}
		}
	}
	g.Expect(references).To(Equal(wanted))
}

// requirement returns the version of a module that one of the environment's modules requires.
func requirement(t *testing.T, folder, module string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", folder, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require ")); len(words) > 1 && words[0] == module {
			return words[1]
		}
	}
	t.Fatalf("%s does not require %s", folder, module)
	return ""
}

func TestPublishedReference(t *testing.T) {
	g := NewWithT(t)
	all := sample(t)
	all[0].Reference = "registry.k8s.io/one:v1"
	target := build(t, all)
	address, ca, _ := served(t, ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0))))
	g.Expect(Push(t.Context(), target, address, ca)).To(Succeed())
	built, err := List(target)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(built[0].Pullspec(address)).To(HavePrefix(address + "/registry.k8s.io/one@sha256:"))
	reference, err := name.ParseReference(address + "/registry.k8s.io/one:v1")
	g.Expect(err).NotTo(HaveOccurred())
	transport, err := trusting(ca)
	g.Expect(err).NotTo(HaveOccurred())
	found, err := remote.Head(reference, remote.WithTransport(transport), remote.WithContext(t.Context()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Digest).To(Equal(built[0].Digest))
}
