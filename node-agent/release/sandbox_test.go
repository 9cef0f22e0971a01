// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/node-agent/release"
	"github.com/openshift/hypershift/support/nodeplan"
)

const ctr = current + "/usr/bin/ctr --address /run/hypershift/containerd/containerd.sock --namespace k8s.io images "

// archived returns the files in an archive.
func archived(t *testing.T, archive io.Reader) map[string][]byte {
	t.Helper()
	files, reader := map[string][]byte{}, tar.NewReader(archive)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Error(err)
			return files
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Error(err)
		}
		files[header.Name] = content
	}
}

func TestSandbox(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	// world returns a machine with a container runtime. has is the runtime's list of images.
	world := func(t *testing.T, has string, imported func(io.Reader) error) (*world, *nodeplan.Plan) {
		w := newWorld(t)
		plan := &nodeplan.Plan{Pod: w.push("pod", layer{"pause": program("pause")})}
		w.Machine.Program = func(command string, stdin io.Reader) ([]byte, error) {
			switch {
			case strings.HasPrefix(command, ctr+"list"):
				return []byte(has), nil
			case strings.HasPrefix(command, ctr+"import"):
				return nil, imported(stdin)
			}
			return nil, nil
		}
		return w, plan
	}
	t.Run("When the runtime lacks the image, it should import the image under its name and pin it", func(t *testing.T) {
		var files map[string][]byte
		w, plan := world(t, "\n", func(archive io.Reader) error { files = archived(t, archive); return nil })
		w.Expect(release.Sandbox(t.Context(), w.Host, plan)).To(Succeed())
		w.Expect(w.Commands).To(Equal([]string{ctr + "list --quiet name==" + plan.Pod.Name, ctr + "import -", ctr + "label " + plan.Pod.Name + " io.cri-containerd.pinned=pinned"}))
		index := &v1.IndexManifest{}
		w.Expect(json.Unmarshal(files["index.json"], index)).To(Succeed())
		w.Expect(index.Manifests).To(HaveLen(1))
		w.Expect(index.Manifests[0].Annotations).To(HaveKeyWithValue("io.containerd.image.name", plan.Pod.Name))
		manifest := &v1.Manifest{}
		w.Expect(json.Unmarshal(files["blobs/sha256/"+index.Manifests[0].Digest.Hex], manifest)).To(Succeed())
		for _, part := range append(manifest.Layers, manifest.Config) {
			w.Expect(files).To(HaveKey("blobs/sha256/" + part.Digest.Hex))
		}
		w.Expect(files).To(HaveKey("oci-layout"))
	})
	t.Run("When the runtime has the image, it should pin the image without access to a registry", func(t *testing.T) {
		w, plan := world(t, "registry.example/pod\n", nil)
		requests := w.registry.Requests()
		w.Expect(release.Sandbox(t.Context(), w.Host, plan)).To(Succeed())
		w.Expect(w.registry.Requests()).To(Equal(requests))
		w.Expect(w.Commands[1:]).To(Equal([]string{ctr + "label " + plan.Pod.Name + " io.cri-containerd.pinned=pinned"}))
	})
	t.Run("When the runtime exits during the import, it should return an error", func(t *testing.T) {
		died := errors.New("signal: killed")
		w, plan := world(t, "", func(archive io.Reader) error {
			_, err := archive.Read(make([]byte, 1))
			return errors.Join(died, err)
		})
		w.Expect(release.Sandbox(t.Context(), w.Host, plan)).To(MatchError(died))
		w.Expect(w.Commands[len(w.Commands)-1]).To(HaveSuffix("import -"), "what is not there is not kept")
	})
	t.Run("When a layer cannot be pulled, it should not import the image", func(t *testing.T) {
		w, plan := world(t, "", func(io.Reader) error { t.Error("it was"); return nil })
		w.registry.Intercept(blobs(func(answer http.ResponseWriter) { answer.WriteHeader(http.StatusNotFound) }))
		w.Expect(release.Sandbox(t.Context(), w.Host, plan)).To(MatchError(ContainSubstring("pulling " + plan.Pod.Sources[0].Image)))
	})
	for _, verb := range []string{"list", "label"} {
		t.Run("When the runtime does not "+verb+", it should return an error", func(t *testing.T) {
			away := errors.New("connection refused")
			w, plan := world(t, "it", nil)
			answer := w.Machine.Program
			w.Machine.Program = func(command string, stdin io.Reader) ([]byte, error) {
				if strings.HasPrefix(command, ctr+verb) {
					return nil, away
				}
				return answer(command, stdin)
			}
			w.Expect(release.Sandbox(t.Context(), w.Host, plan)).To(MatchError(away))
		})
	}
	t.Run("When the imports are over, it should leave no temporary files", func(t *testing.T) {
		g := NewWithT(t)
		left, err := os.ReadDir(folder)
		g.Expect(err).NotTo(HaveOccurred())
		for _, entry := range left {
			g.Expect(entry.Name()).NotTo(ContainSubstring("pod-image"))
		}
	})
	t.Run("When the archive cannot be created, it should return an error", func(t *testing.T) {
		w, plan := world(t, "", nil)
		t.Setenv("TMPDIR", folder+"/nowhere")
		w.Expect(release.Sandbox(t.Context(), w.Host, plan)).To(MatchError(os.ErrNotExist))
	})
}
