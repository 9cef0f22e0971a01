// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
)

func TestTraffic(t *testing.T) {
	g := NewWithT(t)
	address := serve(t, t.TempDir())
	image, err := random.Image(1000, 2)
	g.Expect(err).NotTo(HaveOccurred())
	push(g, address, "/a/b:one", image)
	pushed := served(g, address)
	g.Expect(pushed).To(BeNumerically("<", 1000), "what is pushed is not served")

	pulled, err := remote.Image(reference(g, address, "/a/b:one"))
	g.Expect(err).NotTo(HaveOccurred())
	size, err := pulled.Size()
	g.Expect(err).NotTo(HaveOccurred())
	layers, err := pulled.Layers()
	g.Expect(err).NotTo(HaveOccurred())
	want := size
	for _, layer := range layers {
		body, err := layer.Compressed()
		g.Expect(err).NotTo(HaveOccurred())
		n, err := io.Copy(io.Discard, body)
		g.Expect(err).NotTo(HaveOccurred())
		want += n
	}
	g.Expect(served(g, address)-pushed).To(Equal(want), "the manifest and both layers")
}

// served returns the number of bytes served to this process.
func served(g Gomega, address string) int64 {
	answer, err := http.Get("http://" + address + TrafficPath)
	g.Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	bytes := map[string]int64{}
	g.Expect(json.NewDecoder(answer.Body).Decode(&bytes)).To(Succeed())
	return bytes["127.0.0.1"]
}
