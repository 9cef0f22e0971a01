// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/test/devcluster/pki"
)

func serve(t *testing.T, dir string) string {
	t.Helper()
	opened, err := Open(t.Context(), dir)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	server := httptest.NewServer(opened)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func reference(g Gomega, address, rest string) name.Reference {
	ref, err := name.ParseReference(address+rest, name.Insecure)
	g.Expect(err).NotTo(HaveOccurred())
	return ref
}

func push(g Gomega, address, rest string, image v1.Image) {
	g.Expect(remote.Write(reference(g, address, rest), image)).To(Succeed())
}

func digest(g Gomega, image interface{ Digest() (v1.Hash, error) }) v1.Hash {
	hash, err := image.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	return hash
}

func TestRestart(t *testing.T) {
	t.Run("When the registry is reopened, it should still serve the images by tag and by digest", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		image, err := random.Image(512, 2)
		g.Expect(err).NotTo(HaveOccurred())
		push(g, serve(t, dir), "/a/b:one", image)

		again := serve(t, dir)
		for _, rest := range []string{"/a/b:one", "/a/b@" + digest(g, image).String()} {
			found, err := remote.Image(reference(g, again, rest))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(digest(g, found)).To(Equal(digest(g, image)))
			layers, err := found.Layers()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(layers).To(HaveLen(2))
		}
	})
	t.Run("When a tag was moved, it should name the newer image after a restart", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		address := serve(t, dir)
		older, err := random.Image(64, 1)
		g.Expect(err).NotTo(HaveOccurred())
		newer, err := random.Image(64, 1)
		g.Expect(err).NotTo(HaveOccurred())
		push(g, address, "/a:tag", older)
		push(g, address, "/a:tag", newer)
		found, err := remote.Image(reference(g, serve(t, dir), "/a:tag"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(digest(g, found)).To(Equal(digest(g, newer)))
	})
	t.Run("When there is an index, it should be restored after the images that it lists", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		image, err := random.Image(64, 1)
		g.Expect(err).NotTo(HaveOccurred())
		index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image})
		g.Expect(remote.WriteIndex(reference(g, serve(t, dir), "/a:index"), index)).To(Succeed())
		found, err := remote.Index(reference(g, serve(t, dir), "/a:index"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(digest(g, found)).To(Equal(digest(g, index)))
	})
	t.Run("When a stored file is damaged, the registry should name the file instead of starting without the image", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		image, err := random.Image(64, 1)
		g.Expect(err).NotTo(HaveOccurred())
		push(g, serve(t, dir), "/a:tag", image)
		files, err := filepath.Glob(filepath.Join(dir, "manifests", "*.json"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(files).NotTo(BeEmpty())
		g.Expect(os.WriteFile(files[0], []byte("{"), 0o600)).To(Succeed())
		_, err = Open(t.Context(), dir)
		g.Expect(err).To(MatchError(ContainSubstring(files[0])))
	})
}

func TestRefusedManifest(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	address := serve(t, dir)
	index := `{"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:` + strings.Repeat("0", 64) + `"}]}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+address+"/v2/a/manifests/index", strings.NewReader(index))
	g.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/vnd.oci.image.index.v1+json")
	answer, err := http.DefaultClient.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	g.Expect(answer.StatusCode).To(BeNumerically(">=", 400))
	entries, err := os.ReadDir(filepath.Join(dir, "manifests"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries).To(BeEmpty(), "what was refused is not kept")
}

func TestServe(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	opened, err := Open(t.Context(), dir)
	g.Expect(err).NotTo(HaveOccurred())
	authority, err := pki.Ensure(dir, "ca")
	g.Expect(err).NotTo(HaveOccurred())
	pair, err := authority.Issue(pki.Leaf{Name: "registry", User: "registry", Hosts: []string{"127.0.0.1"}})
	g.Expect(err).NotTo(HaveOccurred())
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	g.Expect(err).NotTo(HaveOccurred())

	free := httptest.NewServer(nil)
	address := free.Listener.Addr().String()
	free.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- opened.Serve(ctx, address, certificate) }()

	roots := x509.NewCertPool()
	g.Expect(roots.AppendCertsFromPEM(authority.PEM)).To(BeTrue())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	g.Eventually(func() (int, error) {
		answer, err := client.Get("https://" + address + "/v2/")
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}).WithTimeout(2 * time.Minute).Should(Equal(http.StatusOK))

	large, err := random.Image(4<<20, 4)
	g.Expect(err).NotTo(HaveOccurred())
	target, err := name.ParseReference(address + "/large:1")
	g.Expect(err).NotTo(HaveOccurred())
	both := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	pushing, stop := context.WithTimeout(ctx, 5*time.Minute)
	defer stop()
	g.Expect(remote.Write(target, large, remote.WithTransport(both), remote.WithContext(pushing))).To(Succeed(), "several large layers at a time")

	g.Expect(opened.Serve(ctx, address, certificate)).To(MatchError(ContainSubstring(address)), "a port that is taken is an error")
	cancel()
	g.Eventually(ended, 2*time.Minute).Should(Receive(BeNil()))
}
