// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/support/releaseinfo"
)

var tags = []string{
	"cluster-autoscaler", "cluster-capi-controllers", "coredns", "etcd", "flannel", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler",
	"metrics-server", "node", "node-network", "pod", "tunnel",
}

func TestBuildPublished(t *testing.T) {
	t.Run("When a Kubernetes version is set, it should build a release of its images, by digest", func(t *testing.T) {
		w := newWorld(t)
		spec, said, err := w.run(w.withNode()...)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(spec).To(MatchRegexp(`^` + w.own.Host + `/team/release@sha256:[0-9a-f]{64}$`))
		release := w.release(w.own, spec)
		w.Expect(release.Version()).To(Equal("1.36.3"))
		w.Expect(release.Distribution()).To(Equal(releaseinfo.Kubernetes))
		w.Expect(release.Architecture()).To(Equal("multi"))
		w.Expect(release.ComponentVersions()).To(And(HaveKeyWithValue("etcd", "3.6.8-0"), HaveKeyWithValue("kubernetes", "1.36.3"), Not(HaveKey("containerd"))))
		images := release.ComponentImages()
		w.Expect(images).To(HaveLen(len(tags)))
		for _, tag := range tags {
			w.Expect(images[tag]).To(MatchRegexp(`@sha256:[0-9a-f]{64}$`), tag)
			w.Expect(said).To(ContainSubstring(tag + " "))
		}
		w.Expect(images["coredns"]).To(HavePrefix(w.public.Host + "/coredns/coredns@"))
		w.Expect(images["node-network"]).To(Equal(w.product))
		w.Expect(images["tunnel"]).To(Equal(w.product))
	})
	t.Run("When it is built twice, the digest should be the same; with another etcd, it should differ", func(t *testing.T) {
		w := newWorld(t)
		first, _, err := w.run(w.withNode()...)
		w.Expect(err).NotTo(HaveOccurred())
		second, _, err := w.run(w.withNode()...)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(second).To(Equal(first))
		w.publish("etcd:3.6.9-0", "amd64", "arm64")
		other, _, err := w.run(w.withNode("--component-version", "etcd=3.6.9-0")...)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(other).NotTo(Equal(first))
		w.Expect(w.release(w.own, other).ComponentVersions()).To(HaveKeyWithValue("etcd", "3.6.9-0"))
	})
	t.Run("When the node image is built, it should be pushed next to the release and be reproducible", func(t *testing.T) {
		w := newWorld(t)
		spec, _, err := w.run(w.nodeFrom("{arch}")...)
		w.Expect(err).NotTo(HaveOccurred())
		node := w.release(w.own, spec).ComponentImages()["node"]
		w.Expect(node).To(HavePrefix(w.own.Host + "/team/node@sha256:"))
		w.has(w.own, node)
		again, _, err := w.run(w.nodeFrom("{arch}")...)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(again).To(Equal(spec))
	})
	t.Run("When the product image labels its node layers, the nodes should pull only those layers", func(t *testing.T) {
		w := newWorld(t)
		w.product = w.own.PushIndex(w.T, w.own.Host+"/hypershift:v2", labelled(t, "1"))
		before := w.pushed(w.own)
		spec, _, err := w.run(w.withNode()...)
		w.Expect(err).NotTo(HaveOccurred())
		network := w.release(w.own, spec).ComponentImages()["node-network"]
		w.Expect(network).To(HavePrefix(w.own.Host + "/team/node-network@sha256:"))
		for _, arch := range []string{"amd64", "arm64"} {
			image := w.image(network, arch)
			w.Expect(w.files(image)).To(Equal([]string{"below " + arch}))
			config, err := image.ConfigFile()
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(config.Architecture).To(Equal(arch))
			w.Expect(config.Config.Entrypoint).To(Equal([]string{"/usr/bin/node-network"}))
			w.Expect(config.Config.User).To(Equal("65532:65532"))
		}
		w.Expect(*before).To(ContainElement(MatchRegexp("PUT /v2/team/node-network/manifests/v1.36.3")))
		mirrored, _, err := w.run(w.withNode("--mirror-to", w.own.Host+"/mirror")...)
		w.Expect(err).NotTo(HaveOccurred())
		w.has(w.own, w.release(w.own, mirrored).ComponentImages()["node-network"])
		w.Expect(w.release(w.own, mirrored).ComponentImages()["node-network"]).To(HavePrefix(w.own.Host + "/mirror/node-network@"))
	})
	t.Run("When a node-network image is set, it should be used unchanged", func(t *testing.T) {
		w := newWorld(t)
		given := w.own.PushIndex(w.T, w.own.Host+"/hypershift:v2", labelled(t, "1"))
		spec, _, err := w.run(w.withNode("--component", "node-network="+given)...)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(w.release(w.own, spec).ComponentImages()["node-network"]).To(Equal(given))
	})
	t.Run("When all images are mirrored, the release should name only the mirror, with the same digests", func(t *testing.T) {
		w := newWorld(t)
		plain, _, err := w.run(w.withNode()...)
		w.Expect(err).NotTo(HaveOccurred())
		mirrored, _, err := w.run(w.withNode("--mirror-to", w.own.Host+"/mirror")...)
		w.Expect(err).NotTo(HaveOccurred())
		sources := w.release(w.own, plain).ComponentImages()
		for tag, image := range w.release(w.own, mirrored).ComponentImages() {
			w.Expect(image).To(HavePrefix(w.own.Host+"/mirror/"), tag)
			w.has(w.own, image)
			w.Expect(image[strings.Index(image, "@"):]).To(Equal(sources[tag][strings.Index(sources[tag], "@"):]), tag)
		}
	})
	t.Run("When a component is omitted, it should not be looked up", func(t *testing.T) {
		w := newWorld(t)
		spec, _, err := w.run(w.withNode("--without", "cluster-autoscaler", "--component-version", "cluster-autoscaler=v0")...)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(w.release(w.own, spec).ComponentImages()).NotTo(HaveKey("cluster-autoscaler"))
	})
	t.Run("When it is a dry run, it should print the images and sources and make no requests", func(t *testing.T) {
		w := newWorld(t)
		before := w.public.Requests() + w.own.Requests()
		out, _, err := w.run(w.build("--dry-run")...)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(out).To(And(
			MatchRegexp(`(?m)^etcd +`+w.public.Host+`/etcd:3.6.8-0$`),
			MatchRegexp(`(?m)^kubelet \(arm64\) +https://dl.k8s.io/release/v1.36.3/bin/linux/arm64/kubelet +https://.*/kubelet.sha256$`),
		))
		w.Expect(w.public.Requests() + w.own.Requests()).To(Equal(before))
	})
}

// nodeFrom returns the arguments of a build whose node image comes from programs in folders by architecture. It omits
// containerd, the CNI plugins and crictl: they are archives, which the tests of nodeimage cover.
func (w *world) nodeFrom(arch string) []string {
	args := w.build("--without", "crictl")
	for flag, program := range map[string]string{"kubelet": "kubelet", "runc": "runc"} {
		args = append(args, "--"+flag, filepath.Join(w.dir, arch, program))
	}
	return append(args, "--containerd", w.archives("containerd", "containerd", "containerd-shim-runc-v2", "ctr"),
		"--cni-plugins", w.archives("cni-plugins", "loopback", "portmap"))
}

func TestBuildRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments func(w *world) []string
		want      string
		code      int
	}{
		"When the minor version is unknown": {func(w *world) []string { return w.withNode("--kubernetes", "v1.99.0") }, "Kubernetes 1.99 is not known here, only 1.31 to 1.36", exit.Usage},
		"When an image lacks an architecture": {func(w *world) []string {
			w.publish("etcd:3.6.8-0", "amd64")
			return w.withNode()
		}, "component etcd: image .*/etcd:3.6.8-0 is not there for arm64, only for amd64", exit.Failure},
		"When an image is for a single architecture": {func(w *world) []string {
			w.public.Push(w.T, w.public.Host+"/pause:3.10.2", single(w.T, "pause", "amd64"))
			return w.withNode()
		}, "component pod: .* is not there for arm64", exit.Failure},
		"When the layer label of the product image is invalid": {func(w *world) []string {
			w.product = w.own.PushIndex(w.T, w.own.Host+"/hypershift:v2", labelled(w.T, "3"))
			return w.withNode()
		}, `component node-network: .*io.hypershift.node-network.layers is "3", and it has 2 layers`, exit.Failure},
		"When an image is not published": {func(w *world) []string { return w.withNode("--component-version", "etcd=9") },
			"component etcd: cannot read image .*/etcd:9: .*; check the name and the tag", exit.Failure},
		"When a checksum differs": {func(w *world) []string {
			w.write("arm64/runc.sha256", strings.Repeat("0", 64))
			return w.nodeFrom("{arch}")
		}, "component node: runc for arm64: .*: SHA-256 mismatch: got", exit.Failure},
		"When the source registry denies access": {func(w *world) []string {
			w.public.Intercept(func(rw http.ResponseWriter, _ *http.Request) bool {
				rw.WriteHeader(http.StatusUnauthorized)
				return true
			})
			return w.withNode()
		}, `component cluster-autoscaler: cannot read image .*--pull-secret`, exit.Failure},
		"When the certificate is not trusted": {func(w *world) []string {
			return append(w.withNode(), "--ca-file", w.write("own.crt", string(w.own.CA)))
		}, "certificate .*--ca-file", exit.Failure},
		"When no product image is set":                    {func(w *world) []string { return w.withNode("--product-image", "") }, "--product-image is required", exit.Usage},
		"When a required component is omitted":            {func(w *world) []string { return w.withNode("--without", "etcd") }, "--without etcd: a release needs it", exit.Usage},
		"When the architecture is unknown":                {func(w *world) []string { return w.withNode("--arch", "mips") }, `--arch "mips"`, exit.Usage},
		"When --version is also set":                      {func(w *world) []string { return w.withNode("--version", "1.36.3") }, "--version", exit.Usage},
		"When a program and the node image are both set":  {func(w *world) []string { return w.withNode("--kubelet", "/k") }, "--kubelet is not for use with --component node", exit.Usage},
		"When a program is set for only one architecture": {func(w *world) []string { return w.build("--kubelet", "/k@/sums") }, "--kubelet: /k is one file for the architectures amd64, arm64", exit.Usage},
	} {
		t.Run(name+" it should say so in one line and push nothing", func(t *testing.T) {
			w := newWorld(t)
			arguments := tc.arguments(w)
			pushed := w.pushed(w.own)
			out, _, err := w.run(arguments...)
			w.Expect(err).To(MatchError(And(MatchRegexp(tc.want), Not(ContainSubstring("\n")))))
			w.Expect(exit.Code(err)).To(Equal(tc.code))
			w.Expect(out).To(BeEmpty())
			w.Expect(*pushed).To(BeEmpty())
		})
	}
	for name, tc := range map[string]struct {
		path   string
		status int
		more   func(w *world) []string
		want   string
	}{
		"When the target denies the push of the mirror": {"/kube-proxy", http.StatusForbidden, func(w *world) []string {
			return w.withNode("--mirror-to", w.own.Host+"/mirror")
		}, "component kube-proxy: push .*/mirror/kube-proxy:v1.36.3: .*--pull-secret"},
		"When the target denies the push of the node image": {"/team/node/", http.StatusUnauthorized, func(w *world) []string {
			return w.nodeFrom("{arch}")
		}, "component node: push .*/team/node:v1.36.3: .*--pull-secret"},
		"When the target denies the push of the release": {"/team/release/", http.StatusForbidden, func(w *world) []string {
			return w.withNode()
		}, "release payload: push .*/team/release:1.36.3: .*check that you may push there.*--pull-secret"},
		"When the target has no space left": {"/team/release/", http.StatusInsufficientStorage, func(w *world) []string {
			return w.withNode()
		}, "release payload: push .*; the registry has a problem: try again later"},
	} {
		t.Run(name+" it should say so in one line, and there should be no release, nor a half of what was refused", func(t *testing.T) {
			w := newWorld(t)
			arguments := tc.more(w)
			var kept []string
			var side sync.Mutex // Images of an index are pushed concurrently.
			w.own.Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
				write := r.Method != http.MethodGet && r.Method != http.MethodHead
				if write && strings.Contains(r.URL.Path, tc.path) {
					rw.WriteHeader(tc.status)
					return true
				}
				if write && strings.Contains(r.URL.Path, "/manifests/") {
					side.Lock()
					defer side.Unlock()
					kept = append(kept, r.URL.Path)
				}
				return false
			})
			out, _, err := w.run(arguments...)
			w.Expect(err).To(MatchError(And(MatchRegexp(tc.want), Not(ContainSubstring("\n")))))
			w.Expect(exit.Code(err)).To(Equal(exit.Failure))
			w.Expect(out).To(BeEmpty())
			w.Expect(kept).NotTo(ContainElement(Or(ContainSubstring("/team/release/"), ContainSubstring(tc.path))))
		})
	}
}

// TestBuildAgain interrupts a build, completes it, and repeats it.
func TestBuildAgain(t *testing.T) {
	w := newWorld(t)
	arguments := w.withNode("--mirror-to", w.own.Host+"/mirror")
	w.own.Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		broken := r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/kube-proxy")
		if broken {
			rw.WriteHeader(http.StatusForbidden)
		}
		return broken
	})
	_, _, err := w.run(arguments...)
	w.Expect(err).To(HaveOccurred())
	sent := w.pushed(w.own)
	_, _, err = w.run(arguments...)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(*sent).To(ContainElement(ContainSubstring("/mirror/kube-proxy/blobs/")))
	w.Expect(*sent).NotTo(ContainElement(MatchRegexp("/mirror/(etcd|coredns/coredns|kube-apiserver)/blobs/")))

	*sent = nil
	_, _, err = w.run(arguments...)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(*sent).NotTo(ContainElement(ContainSubstring("/blobs/")))
}

func TestDiff(t *testing.T) {
	w := newWorld(t)
	from, _, err := w.run(w.withNode()...)
	w.Expect(err).NotTo(HaveOccurred())
	w.publish("etcd:3.6.9-0", "amd64", "arm64")
	to, _, err := w.run(w.withNode("--component-version", "etcd=3.6.9-0", "--without", "cluster-autoscaler")...)
	w.Expect(err).NotTo(HaveOccurred())
	ca := []string{"--ca-file", filepath.Join(w.dir, "ca.crt")}

	out, _, err := w.run(append([]string{"diff", from, to}, ca...)...)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(out).To(And(
		MatchRegexp(`(?m)^etcd +3.6.8-0 +3.6.9-0$`), MatchRegexp(`(?m)^cluster-autoscaler +`+w.public.Host+`/autoscaling/\S+ +-$`),
		Not(ContainSubstring("kube-apiserver")),
	))
	out, _, err = w.run(append([]string{"diff", from, to, "-o", "json"}, ca...)...)
	w.Expect(err).NotTo(HaveOccurred())
	var got difference
	w.Expect(json.Unmarshal([]byte(out), &got)).To(Succeed())
	w.Expect(got.Versions).To(HaveKeyWithValue("etcd", change{"3.6.8-0", "3.6.9-0"}))
	w.Expect(got.Components).To(HaveLen(2))
	out, _, err = w.run(append([]string{"diff", from, from}, ca...)...)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(out).To(ContainSubstring("made of the same images"))
	_, _, err = w.run("diff", from)
	w.Expect(err).To(MatchError(ContainSubstring("name two release images")))
}

func TestMirror(t *testing.T) {
	built := func(w *world) (spec string, ca []string) {
		spec, _, err := w.run(w.withNode()...)
		w.Expect(err).NotTo(HaveOccurred())
		return spec, []string{"--ca-file", filepath.Join(w.dir, "ca.crt")}
	}
	t.Run("When it copies to another registry, the release should name only that registry", func(t *testing.T) {
		w := newWorld(t)
		_, ca := built(w)
		out, _, err := w.run(append([]string{"mirror", w.own.Host + "/team/release:1.36.3", "--to", w.public.Host + "/rack"}, ca...)...)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(out).To(HavePrefix(w.public.Host + "/rack/team/release@sha256:"))
		for _, image := range w.release(w.public, w.public.Host+"/rack/team/release:1.36.3").ComponentImages() {
			w.has(w.public, image)
		}
	})
	t.Run("When it copies through a folder, it should need neither of the original registries", func(t *testing.T) {
		w := newWorld(t)
		spec, ca := built(w)
		dir := filepath.Join(w.dir, "release")
		for range 2 {
			out, said, err := w.run(append([]string{"mirror", spec, "--to-dir", dir}, ca...)...)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(out).To(Equal(dir))
			w.Expect(said).To(ContainSubstring("kube-apiserver"))
		}
		rack := newWorld(t)
		away := func(rw http.ResponseWriter, _ *http.Request) bool {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		w.own.Intercept(away)
		w.public.Intercept(away)
		out, _, err := rack.run("mirror", "--from-dir", dir, "--to", rack.own.Host+"/rack", "--ca-file", filepath.Join(rack.dir, "ca.crt"))
		w.Expect(err).NotTo(HaveOccurred())
		release := w.release(rack.own, out)
		w.Expect(release.ComponentImages()).To(HaveLen(len(tags)))
		w.Expect(release.ComponentVersions()).To(HaveKeyWithValue("etcd", "3.6.8-0"))
		for _, image := range release.ComponentImages() {
			w.has(rack.own, image)
		}
	})
	t.Run("When the folder is incomplete, it should say so and push nothing", func(t *testing.T) {
		w := newWorld(t)
		spec, ca := built(w)
		dir := filepath.Join(w.dir, "release")
		w.public.Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
			cut := strings.Contains(r.URL.Path, "/kube-proxy/blobs")
			if cut {
				rw.WriteHeader(http.StatusForbidden)
			}
			return cut
		})
		_, _, err := w.run(append([]string{"mirror", spec, "--to-dir", dir}, ca...)...)
		w.Expect(err).To(MatchError(ContainSubstring("component kube-proxy: copying")))
		pushed := w.pushed(w.own)
		_, _, err = w.run(append([]string{"mirror", "--from-dir", dir, "--to", w.own.Host + "/rack"}, ca...)...)
		w.Expect(err).To(MatchError(ContainSubstring("holds no complete release")))
		w.Expect(*pushed).To(BeEmpty())
	})
	t.Run("When an image of the release is missing, it should name the image and copy nothing", func(t *testing.T) {
		w := newWorld(t)
		spec, ca := built(w)
		w.public.Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
			gone := strings.Contains(r.URL.Path, "/pause/")
			if gone {
				rw.WriteHeader(http.StatusNotFound)
			}
			return gone
		})
		pushed := w.pushed(w.own)
		_, _, err := w.run(append([]string{"mirror", spec, "--to", w.own.Host + "/rack"}, ca...)...)
		w.Expect(err).To(MatchError(And(MatchRegexp("component pod: cannot read image .*/pause@sha256:.*; check the name and the tag"), Not(ContainSubstring("\n")))))
		w.Expect(*pushed).To(BeEmpty())
	})
	t.Run("When an OpenShift release is mirrored, it should keep its signed digest", func(t *testing.T) {
		w := newWorld(t)
		spec := w.own.PushRelease(t, releaseinfo.Payload{Version: "4.20.1", Components: map[string]string{"etcd": w.product}})
		out, _, err := w.run("mirror", spec, "--to", w.public.Host+"/rack", "--ca-file", filepath.Join(w.dir, "ca.crt"))
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(w.release(w.public, out).Digest()).To(Equal(w.release(w.own, spec).Digest()))
		w.has(w.public, strings.Replace(w.product, w.own.Host, w.public.Host+"/rack", 1))
	})
	for name, args := range map[string][]string{
		"When no target is set":                     {"mirror", "r/a:1"},
		"When two targets are set":                  {"mirror", "r/a:1", "--to", "r/b", "--to-dir", "c"},
		"When no source is set":                     {"mirror", "--to", "r/b"},
		"When two sources are set":                  {"mirror", "r/a:1", "--from-dir", "d", "--to", "r/b"},
		"When both source and target are folders":   {"mirror", "--from-dir", "d", "--to-dir", "e"},
		"When the target is not a valid repository": {"mirror", "r/a:1", "--to", "R R"},
	} {
		t.Run(name+" it should be a mistake of the caller", func(t *testing.T) {
			w := newWorld(t)
			_, _, err := w.run(args...)
			w.Expect(exit.Code(err)).To(Equal(exit.Usage), "%v", err)
		})
	}
	t.Run("When the image is not a release, it should say so", func(t *testing.T) {
		w := newWorld(t)
		_, _, err := w.run("mirror", w.product, "--to-dir", filepath.Join(w.dir, "x"), "--ca-file", filepath.Join(w.dir, "ca.crt"))
		w.Expect(err).To(MatchError(ContainSubstring("is not a release image")))
	})
	t.Run("When the folder holds other data, it should not write to the folder", func(t *testing.T) {
		w := newWorld(t)
		spec, ca := built(w)
		dir := filepath.Dir(w.write("x/index.json", "{"))
		_, _, err := w.run(append([]string{"mirror", spec, "--to-dir", dir}, ca...)...)
		w.Expect(err).To(HaveOccurred())
		w.Expect(os.ReadFile(filepath.Join(dir, "index.json"))).To(Equal([]byte("{")))
	})
}
