// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	. "github.com/onsi/gomega"
)

// program returns the header of a Linux program, followed by a text that identifies it.
func program(arch, text string) []byte {
	header := make([]byte, 20)
	copy(header, "\x7fELF")
	header[18] = byte(machines[arch])
	return append(header, text...)
}

func archive(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	g := NewWithT(t)
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	g.Expect(w.WriteHeader(&tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755})).To(Succeed())
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content := files[name]
		mode := int64(0o755)
		if strings.HasPrefix(name, "README") {
			mode = 0o644
		}
		g.Expect(w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(content))})).To(Succeed())
		_, err := w.Write(content)
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(w.Close()).To(Succeed())
	g.Expect(zipped.Close()).To(Succeed())
	return out.Bytes()
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}

// upstream serves files by path, as the projects do.
type upstream struct {
	*httptest.Server
	files    map[string][]byte
	failures atomic.Int32
	asked    atomic.Int32
}

func newUpstream(t *testing.T) *upstream {
	u := &upstream{files: map[string][]byte{}}
	u.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.asked.Add(1)
		content, ok := u.files[r.URL.Path]
		switch {
		case u.failures.Add(-1) >= 0:
			w.WriteHeader(http.StatusBadGateway)
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		default:
			_, _ = w.Write(content)
		}
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) fetcher(t *testing.T) *Fetcher {
	return &Fetcher{Cache: t.TempDir(), Client: u.Client(), Retry: time.Millisecond}
}

func (u *upstream) publish(path string, content []byte, checksums string) {
	u.files[path] = content
	u.files[path+".sha256"] = []byte(checksums)
}

// sources returns all sources of an image, published for both architectures.
func (u *upstream) sources(t *testing.T) []Source {
	for _, arch := range []string{"amd64", "arm64"} {
		kubelet := program(arch, "kubelet")
		u.publish("/"+arch+"/kubelet", kubelet, sum(kubelet))
		runc := program(arch, "runc")
		u.publish("/runc."+arch, runc, "-----BEGIN PGP SIGNED MESSAGE-----\n\n"+strings.Repeat("0", 64)+" *runc.other\n"+sum(runc)+" *runc."+arch+"\n")
		containerd := archive(t, map[string][]byte{
			"bin/containerd": program(arch, "c"), "bin/containerd-shim-runc-v2": program(arch, "s"), "bin/ctr": program(arch, "t"), "bin/containerd-stress": program(arch, "x"),
		})
		u.publish("/containerd-"+arch+".tar.gz", containerd, sum(containerd)+"  containerd-"+arch+".tar.gz\n")
		plugins := archive(t, map[string][]byte{"./ptp": program(arch, "p"), "./loopback": program(arch, "l"), "./portmap": program(arch, "m"), "README.md": []byte("x")})
		u.publish("/cni-"+arch+".tgz", plugins, sum(plugins))
	}
	var all []Source
	for name, path := range map[string]string{
		"kubelet": "/{arch}/kubelet", "runc": "/runc.{arch}", "containerd": "/containerd-{arch}.tar.gz", "cni-plugins": "/cni-{arch}.tgz",
	} {
		source, err := ParseSource(name, u.URL+path)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		all = append(all, source)
	}
	return all
}

func digestOf(t *testing.T, u *upstream, f *Fetcher) (v1.ImageIndex, string) {
	t.Helper()
	g := NewWithT(t)
	index, err := Build(t.Context(), f, u.sources(t), []string{"arm64", "amd64"}, t.TempDir(), func(Source) {})
	g.Expect(err).NotTo(HaveOccurred())
	digest, err := index.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	return index, digest.String()
}

func TestBuild(t *testing.T) {
	t.Run("When all files are published, the image should hold each program at its path, per architecture", func(t *testing.T) {
		g := NewWithT(t)
		u := newUpstream(t)
		index, _ := digestOf(t, u, u.fetcher(t))
		manifest, err := index.IndexManifest()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(manifest.Manifests).To(HaveLen(2))
		for _, entry := range manifest.Manifests {
			image, err := index.Image(entry.Digest)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cmp.Diff(map[string]string{
				"/usr/bin/kubelet": "kubelet", "/usr/bin/runc": "runc", "/usr/bin/containerd": "c", "/usr/bin/containerd-shim-runc-v2": "s", "/usr/bin/ctr": "t",
				"/opt/cni/bin/ptp": "p", "/opt/cni/bin/loopback": "l", "/opt/cni/bin/portmap": "m",
			}, programsOf(t, image, entry.Platform.Architecture))).To(BeEmpty())
		}
	})
	t.Run("When the image is built again elsewhere, it should have the same digest", func(t *testing.T) {
		u := newUpstream(t)
		_, first := digestOf(t, u, u.fetcher(t))
		_, second := digestOf(t, u, u.fetcher(t))
		NewWithT(t).Expect(second).To(Equal(first))
	})
	t.Run("When a file is in the cache, it should not be downloaded again", func(t *testing.T) {
		u := newUpstream(t)
		f := u.fetcher(t)
		digestOf(t, u, f)
		u.asked.Store(0)
		digestOf(t, u, f)
		NewWithT(t).Expect(u.asked.Load()).To(Equal(int32(8)), "the checksums of four files for two architectures")
	})
}

// programsOf returns the image's files, and checks that they are programs of the architecture.
func programsOf(t *testing.T, image v1.Image, arch string) map[string]string {
	t.Helper()
	g := NewWithT(t)
	content := mutate.Extract(image)
	defer content.Close()
	found := map[string]string{}
	for r := tar.NewReader(content); ; {
		header, err := r.Next()
		if err != nil {
			return found
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		var data bytes.Buffer
		_, err = data.ReadFrom(r)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(header.Mode).To(Equal(int64(0o755)))
		g.Expect(data.Bytes()[18]).To(Equal(byte(machines[arch])))
		found["/"+header.Name] = data.String()[20:]
	}
}

func TestBuildRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(t *testing.T, u *upstream)
		want  string
	}{
		"When a checksum differs, it should name the file and both checksums": {func(_ *testing.T, u *upstream) {
			u.files["/arm64/kubelet.sha256"] = []byte(strings.Repeat("0", 64))
		}, "kubelet for arm64: .*/arm64/kubelet: SHA-256 mismatch: got [0-9a-f]{64}, want 0{64}"},
		"When a file is not published for an architecture, it should say so": {func(_ *testing.T, u *upstream) {
			delete(u.files, "/runc.arm64")
		}, "runc for arm64: download .*/runc.arm64: the server answered 404"},
		"When the checksum file has no checksum, it should say so": {func(_ *testing.T, u *upstream) {
			u.files["/runc.amd64.sha256"] = []byte("<html>")
		}, "runc for amd64: .*runc.amd64.sha256 has no SHA-256 of runc.amd64"},
		"When an archive lacks a program, it should name the program": {func(t *testing.T, u *upstream) {
			content := archive(t, map[string][]byte{"bin/containerd": program("amd64", "c")})
			u.publish("/containerd-amd64.tar.gz", content, sum(content))
		}, "containerd-amd64.tar.gz has no program containerd-shim-runc-v2"},
		"When a program is for another architecture, it should say so": {func(_ *testing.T, u *upstream) {
			content := program("amd64", "kubelet")
			u.publish("/arm64/kubelet", content, sum(content))
		}, "kubelet is for another architecture than arm64"},
		"When the server returns a page instead of a program, it should say so": {func(_ *testing.T, u *upstream) {
			content := []byte("<html>please log in to the network</html>")
			u.publish("/amd64/kubelet", content, sum(content))
		}, "kubelet is not a Linux program"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t)
			sources := u.sources(t)
			tc.spoil(t, u)
			_, err := Build(t.Context(), u.fetcher(t), sources, []string{"amd64", "arm64"}, t.TempDir(), func(Source) {})
			NewWithT(t).Expect(err).To(MatchError(MatchRegexp(tc.want)))
		})
	}
}

func TestFetch(t *testing.T) {
	content := program("amd64", "kubelet")
	t.Run("When the server fails temporarily, it should retry", func(t *testing.T) {
		g := NewWithT(t)
		u := newUpstream(t)
		u.publish("/kubelet", content, sum(content))
		u.failures.Store(2)
		path, err := u.fetcher(t).Fetch(t.Context(), Source{Place: u.URL + "/kubelet", Checksum: "sha256:" + sum(content)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.ReadFile(path)).To(Equal(content))
	})
	t.Run("When the server keeps failing, it should return the error", func(t *testing.T) {
		u := newUpstream(t)
		u.failures.Store(100)
		_, err := u.fetcher(t).Fetch(t.Context(), Source{Place: u.URL + "/kubelet", Checksum: "sha256:" + sum(content)})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("502")))
	})
	t.Run("When a cached file is corrupt, it should be downloaded again", func(t *testing.T) {
		g := NewWithT(t)
		u := newUpstream(t)
		u.publish("/kubelet", content, sum(content))
		f := u.fetcher(t)
		s := Source{Place: u.URL + "/kubelet", Checksum: "sha256:" + sum(content)}
		path, err := f.Fetch(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(path, []byte("half"), 0o600)).To(Succeed())
		path, err = f.Fetch(t.Context(), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.ReadFile(path)).To(Equal(content))
	})
	t.Run("When the checksum of a download differs, it should not be cached", func(t *testing.T) {
		g := NewWithT(t)
		u := newUpstream(t)
		u.publish("/kubelet", content, sum(content))
		f := u.fetcher(t)
		_, err := f.Fetch(t.Context(), Source{Place: u.URL + "/kubelet", Checksum: "sha256:" + strings.Repeat("a", 64)})
		g.Expect(err).To(HaveOccurred())
		kept, err := filepath.Glob(filepath.Join(f.Cache, "sha256", "*"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kept).To(BeEmpty())
	})
	t.Run("When the URL is plain HTTP, it should return an error", func(t *testing.T) {
		_, err := (&Fetcher{}).Fetch(t.Context(), Source{Place: "http://example.com/kubelet", Checksum: "http://example.com/kubelet.sha256"})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("use https")))
	})
	t.Run("When the source is a local file, it should be verified in place", func(t *testing.T) {
		g := NewWithT(t)
		file := filepath.Join(t.TempDir(), "kubelet")
		g.Expect(os.WriteFile(file, content, 0o600)).To(Succeed())
		g.Expect(os.WriteFile(file+".sha256", []byte(sum(content)+"\n"), 0o600)).To(Succeed())
		s, err := ParseSource("kubelet", file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect((&Fetcher{}).Fetch(t.Context(), s)).To(Equal(file))
	})
}

func TestParseSource(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	for name, tc := range map[string]struct {
		text string
		want Source
		fail string
	}{
		"When a checksum is set, it should be used":                                 {"/k@sha256:" + digest, Source{"kubelet", "/k", "sha256:" + digest}, ""},
		"When a checksum URL is set, it should be used":                             {"https://a/k@https://a/sums", Source{"kubelet", "https://a/k", "https://a/sums"}, ""},
		"When no checksum is set, the checksum URL should be derived from the file": {"https://a/k", Source{"kubelet", "https://a/k", "https://a/k.sha256"}, ""},
		"When the checksum is too short, it should be rejected":                     {"/k@sha256:00", Source{}, "64 hexadecimal digits"},
		"When the file is missing before the checksum, it should be rejected":       {"@sha256:" + digest, Source{}, "is not a source"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := ParseSource("kubelet", tc.text)
			if tc.fail != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.fail)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
	t.Run("When one file or checksum is set for two architectures, it should say how to fix that", func(t *testing.T) {
		g := NewWithT(t)
		both := []string{"amd64", "arm64"}
		g.Expect(Source{Place: "/k", Checksum: "/s"}.Validate(both)).To(MatchError(ContainSubstring("put {arch}")))
		g.Expect(Source{Place: "/{arch}", Checksum: "sha256:" + digest}.Validate(both)).To(MatchError(ContainSubstring("one checksum")))
		g.Expect(Source{Place: "/{arch}", Checksum: "/s"}.Validate(both)).To(Succeed())
		g.Expect(Source{Place: "/k", Checksum: "sha256:" + digest}.Validate(both[:1])).To(Succeed())
	})
}
