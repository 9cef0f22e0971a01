// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/support/nodeplan"
)

// imageName is the annotation with the name that containerd gives an imported image.
const imageName = "io.containerd.image.name"

// Sandbox imports the pod image into the container runtime. The runtime would pull the image without the pull secret,
// which the kubelet passes only for the images of containers.
func Sandbox(ctx context.Context, h *host.Host, plan *nodeplan.Plan) error {
	ctr := func(stdin io.Reader, args ...string) ([]byte, error) {
		return h.Run(ctx, stdin, Program(h, "ctr"), append([]string{"--address", socket, "--namespace", "k8s.io", "images"}, args...)...)
	}
	present, err := ctr(nil, "list", "--quiet", "name=="+plan.Pod.Name)
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(present)) == "" {
		h.Say("importing pod sandbox image %s", plan.Pod.Name)
		err := pull(ctx, h, plan, plan.Pod, func(image v1.Image) error {
			return inArchive(image, plan.Pod.Name, func(archive io.Reader) error {
				_, err := ctr(archive, "import", "-")
				return err
			})
		})
		if err != nil {
			return err
		}
	}
	// Without the label, the kubelet may remove the image as unused.
	_, err = ctr(nil, "label", plan.Pod.Name, "io.cri-containerd.pinned=pinned")
	return err
}

// inArchive calls use with an archive of the image in OCI layout, which contains the name of the image.
func inArchive(image v1.Image, name string, use func(io.Reader) error) (err error) {
	dir, err := os.MkdirTemp("", "hypershift-pod-image-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: image, Descriptor: v1.Descriptor{Annotations: map[string]string{imageName: name}},
	})
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	read, write := io.Pipe()
	go func() {
		archive := tar.NewWriter(write)
		write.CloseWithError(errors.Join(archive.AddFS(os.DirFS(dir)), archive.Close()))
	}()
	return errors.Join(use(read), read.Close())
}
