// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/release"
	"github.com/openshift/hypershift/support/nodeplan"
)

// blobs returns a handler that answers requests for blobs instead of the registry.
func blobs(answer func(http.ResponseWriter)) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		answer(w)
		return true
	}
}

// TestDamagedOnTheWay covers a registry, or a proxy in front of it, that does not send the requested content.
func TestDamagedOnTheWay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		says   string
	}{
		"a layer has other content": {blobs(func(w http.ResponseWriter) { _, _ = w.Write([]byte("evil")) }), ""},
		"a layer is empty":          {blobs(func(http.ResponseWriter) {}), ""},
		"a layer is truncated": {blobs(func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte{0x1f, 0x8b, 8, 0})
			panic(http.ErrAbortHandler)
		}), ""},
		"the registry has no layers": {blobs(func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }), "404"},
		"the disk of the registry is full": {func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "no space left on device", http.StatusInsufficientStorage)
			return true
		}, "507"},
		"the manifest belongs to another image": {func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			_, _ = w.Write([]byte(`{"schemaVersion": 2, "layers": []}`))
			return true
		}, "does not match"},
	} {
		t.Run("When "+name+", it should use nothing of the image and start over on a retry", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			image := w.push("node", programs())
			w.registry.Intercept(tt.answer)
			w.Expect(w.install(image)).To(MatchError(And(ContainSubstring("pulling "+image.Sources[0].Image+": "), ContainSubstring(tt.says))))
			w.Expect(w.slots()).To(BeEmpty(), "half of it takes room")
			w.Expect(w.Exists(current)).To(BeFalse())
			w.Expect(w.Exists("/opt/cni/bin/ptp")).To(BeFalse())
			w.registry.Intercept(nil)
			w.Expect(w.install(image)).To(Succeed())
			w.Expect(w.installed()).To(Equal(whole()))
		})
	}
}

// TestLayers covers an image with one invalid layer, whose other layers are complete.
func TestLayers(t *testing.T) {
	t.Parallel()
	t.Run("When a lower layer cannot be pulled, it should not install the image without it", func(t *testing.T) {
		w := newWorld(t)
		layers := []layer{{"opt/cni/bin/portmap": program("portmap")}, programs()}
		image := w.push("node", layers...)
		lower, err := imageOf(t, layers...).Layers()
		w.Expect(err).NotTo(HaveOccurred())
		digest, err := lower[0].Digest()
		w.Expect(err).NotTo(HaveOccurred())
		w.registry.Intercept(func(answer http.ResponseWriter, r *http.Request) bool {
			gone := strings.HasSuffix(r.URL.Path, digest.String())
			if gone {
				http.Error(answer, "gone", http.StatusNotFound)
			}
			return gone
		})
		w.Expect(w.install(image)).To(MatchError(ContainSubstring("404")))
		w.Expect(w.slots()).To(BeEmpty())
		w.registry.Intercept(nil)
		w.Expect(w.install(image)).To(Succeed())
		w.Expect(w.Text("/opt/cni/bin/portmap")).To(Equal("portmap"))
	})
	t.Run("When a layer does not match its digest, it should not install the image", func(t *testing.T) {
		w := newWorld(t)
		image := w.push("node", programs(layer{"usr/share/doc": program(strings.Repeat("so that the other one is shorter ", 9))}))
		evil, err := imageOf(t, programs(layer{"usr/bin/kubelet": program("evil")})).Layers()
		w.Expect(err).NotTo(HaveOccurred())
		w.registry.Intercept(blobs(func(answer http.ResponseWriter) {
			content, err := evil[0].Compressed()
			if err == nil {
				_ = http.NewResponseController(answer).Flush() // The answer must not announce its size.
				_, _ = io.Copy(answer, content)
			}
		}))
		w.Expect(w.install(image)).To(MatchError(ContainSubstring("verifying")))
		w.Expect(w.slots()).To(BeEmpty())
		w.Expect(w.Exists(current)).To(BeFalse())
	})
}

func TestSources(t *testing.T) {
	t.Parallel()
	nowhere := nodeplan.Source{Image: "127.0.0.1:1/away:1"}
	t.Run("When the first registry is unreachable, it should use the next one", func(t *testing.T) {
		w := newWorld(t)
		image := w.push("node", programs())
		image.Sources = append([]nodeplan.Source{nowhere, {Image: "no reference of an image"}}, image.Sources...)
		w.Expect(w.install(image)).To(Succeed())
	})
	t.Run("When the first registry sends part of the image, it should start again with the next one", func(t *testing.T) {
		w := newWorld(t)
		image := w.push("node", programs())
		first := true
		w.registry.Intercept(func(answer http.ResponseWriter, r *http.Request) bool {
			if !first || !strings.Contains(r.URL.Path, "/blobs/") {
				return false
			}
			first = false
			http.Error(answer, "half", http.StatusBadGateway)
			return true
		})
		image.Sources = append(image.Sources, image.Sources[0])
		w.Put(nodeDir+"/.partial/usr/bin/kubelet", "half of an earlier one")
		w.Expect(w.install(image)).To(Succeed())
		w.Expect(w.installed()).To(Equal(whole()))
	})
	t.Run("When the first registry has the image, it should not access the others", func(t *testing.T) {
		w := newWorld(t)
		image, other := w.push("node", programs()), newWorld(t)
		image.Sources = append(image.Sources, other.push("node", programs()).Sources...)
		requests := other.registry.Requests()
		w.Expect(w.install(image)).To(Succeed())
		w.Expect(other.registry.Requests()).To(Equal(requests))
	})
	t.Run("When no registry has the image, it should return the error of each registry", func(t *testing.T) {
		w := newWorld(t)
		image := w.push("node", programs())
		gone := nodeplan.Source{Image: w.registry.Host + "/gone:1", CAs: []string{caPath}}
		image.Sources = []nodeplan.Source{nowhere, gone}
		w.Expect(w.install(image)).To(MatchError(And(ContainSubstring("pulling "+nowhere.Image+": "), ContainSubstring("pulling "+gone.Image+": "), ContainSubstring("NAME_UNKNOWN"))))
	})
	t.Run("When no source is permitted, it should return an error that names the image", func(t *testing.T) {
		w := newWorld(t)
		w.Expect(w.install(nodeplan.Image{Name: "registry.example/node:1"})).To(MatchError("no source is permitted for image registry.example/node:1"))
	})
	t.Run("When the image is for other architectures, it should return an error that names the requested platform", func(t *testing.T) {
		w := newWorld(t)
		index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
			Add: imageOf(t, programs()), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}},
		})
		spec := w.registry.PushIndex(t, w.registry.Host+"/other:1", index)
		w.Expect(w.install(nodeplan.Image{Name: spec, Sources: []nodeplan.Source{{Image: spec, CAs: []string{caPath}}}})).To(MatchError(ContainSubstring("linux/")))
		w.Expect(w.slots()).To(BeEmpty())
	})
}

func TestTrust(t *testing.T) {
	t.Parallel()
	const planned = "/etc/planned.crt"
	for name, tt := range map[string]struct {
		cas  []string
		file func(w *world) []nodeplan.File
		says string
	}{
		"When the machine has the registry's CA, it should trust that CA": {[]string{caPath}, nil, ""},
		"When the plan contains the CA, it should trust the CA before it is written to the machine": {[]string{planned},
			func(w *world) []nodeplan.File { return []nodeplan.File{{Path: planned, Content: w.registry.CA}} }, ""},
		"When the plan and the machine have different CAs, it should use that of the plan": {[]string{caPath},
			func(*world) []nodeplan.File { return []nodeplan.File{{Path: caPath, Content: []byte("none")}} }, caPath + " holds no certificate"},
		"When the plan only appends to the CA file, it should use the file on the machine": {[]string{caPath},
			func(*world) []nodeplan.File { return []nodeplan.File{{Path: caPath, Append: [][]byte{[]byte("more")}}} }, ""},
		"When the CA is missing, it should return an error that names the file":     {[]string{planned}, nil, planned + " holds no certificate"},
		"When the CA cannot be read, it should return an error that names the path": {[]string{"/etc/containerd"}, nil, "/etc/containerd"},
		"When no CA is listed, it should not trust the registry":                    {nil, nil, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			plan := &nodeplan.Plan{Node: w.push("node", programs())}
			plan.Node.Sources[0].CAs = tt.cas
			if tt.file != nil {
				plan.Files = tt.file(w)
			}
			err := release.Install(t.Context(), w.Host, plan)
			if tt.says == "" {
				w.Expect(err).NotTo(HaveOccurred())
				return
			}
			w.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			w.Expect(w.Exists(current)).To(BeFalse())
		})
	}
	t.Run("When a registry is marked insecure, it should not verify the registry's certificate", func(t *testing.T) {
		w := newWorld(t)
		image := w.push("node", programs())
		image.Sources = []nodeplan.Source{{Image: image.Name, Insecure: true}}
		w.Expect(w.install(image)).To(Succeed())
	})
}

// TestPlainHTTP pulls from a registry without TLS that only a proxy reaches. Its address is not the loopback address,
// for which a proxy is never used.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	const outside = "0.0.0.0:1"
	w := newWorld(t)
	var mu sync.Mutex
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.Host)
		http.Error(answer, "no such image", http.StatusNotFound)
	}))
	t.Cleanup(proxy.Close)
	plan := &nodeplan.Plan{
		Node:  nodeplan.Image{Name: outside + "/node:1", Sources: []nodeplan.Source{{Image: outside + "/node:1", Insecure: true}}},
		Proxy: nodeplan.Proxy{HTTP: proxy.URL},
	}
	w.Expect(release.Install(t.Context(), w.Host, plan)).NotTo(Succeed())
	w.Expect(asked).To(And(Not(BeEmpty()), HaveEach(outside)))
	asked = nil
	plan.Proxy.NoProxy = "0.0.0.0"
	w.Expect(release.Install(t.Context(), w.Host, plan)).NotTo(Succeed())
	w.Expect(asked).To(BeEmpty())
}

func TestPullSecret(t *testing.T) {
	t.Parallel()
	const password = "hunter2"
	// guarded makes the registry require a user name and a password.
	guarded := func(w *world) {
		want := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+password))
		w.registry.Intercept(func(answer http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Authorization") == want {
				return false
			}
			answer.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			http.Error(answer, "who are you", http.StatusUnauthorized)
			return true
		})
	}
	secret := func(host, password string) []byte {
		return []byte(`{"auths": {"` + host + `": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("me:"+password)) + `"}}}`)
	}
	t.Run("When the registry requires authentication, it should use the pull secret", func(t *testing.T) {
		w := newWorld(t)
		plan := &nodeplan.Plan{Node: w.push("node", programs()), PullSecret: secret(w.registry.Host, password)}
		guarded(w)
		w.Expect(release.Install(t.Context(), w.Host, plan)).To(Succeed())
		w.Expect(w.Log()).NotTo(ContainSubstring(password))
	})
	t.Run("When the password is wrong, it should return an error without the password", func(t *testing.T) {
		w := newWorld(t)
		plan := &nodeplan.Plan{Node: w.push("node", programs()), PullSecret: secret(w.registry.Host, "swordfish")}
		guarded(w)
		err := release.Install(t.Context(), w.Host, plan)
		w.Expect(err).To(MatchError(And(ContainSubstring("401"), Not(ContainSubstring("swordfish")), Not(ContainSubstring(base64.StdEncoding.EncodeToString([]byte("me:swordfish")))))))
	})
	t.Run("When the pull secret is for another registry, it should not send its password", func(t *testing.T) {
		w := newWorld(t)
		plan := &nodeplan.Plan{Node: w.push("node", programs()), PullSecret: secret("quay.example", password)}
		w.registry.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Authorization") != "" {
				t.Error("the password of another registry came")
			}
			return false
		})
		w.Expect(release.Install(t.Context(), w.Host, plan)).To(Succeed())
	})
	t.Run("When the pull secret is corrupt, it should pull nothing and return an error without its content", func(t *testing.T) {
		w := newWorld(t)
		plan := &nodeplan.Plan{Node: w.push("node", programs()), PullSecret: []byte(`{"auths": hunter2`)}
		requests := w.registry.Requests()
		err := release.Install(t.Context(), w.Host, plan)
		w.Expect(err).To(MatchError(And(ContainSubstring("pull secret"), Not(ContainSubstring(password)))))
		w.Expect(w.registry.Requests()).To(Equal(requests))
	})
}

func TestMain(m *testing.M) {
	// The proxy settings of the user's shell must not affect the tests.
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"} {
		_ = os.Unsetenv(name)
	}
	os.Exit(m.Run())
}
