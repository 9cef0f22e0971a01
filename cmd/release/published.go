// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/release/nodeimage"
	"github.com/openshift/hypershift/cmd/release/published"
	"github.com/openshift/hypershift/cmd/release/transfer"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// downloadRetry is the first pause before a download is retried.
const downloadRetry = 2 * time.Second

// runPublished builds a release from the images that the Kubernetes project publishes. It finds everything and builds
// the node image before it pushes anything.
func (b *build) runPublished(cmd *cobra.Command) error {
	p, err := b.plan()
	if err != nil {
		return exit.UsageError(err)
	}
	warn(cmd.ErrOrStderr(), p.versions)
	if b.dryRun {
		return p.print(cmd.OutOrStdout())
	}
	client, err := b.registry.client()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "release-build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	m := &making{build: b, plan: p, client: client, scratch: scratch, out: cmd.ErrOrStderr()}
	if err := m.gather(cmd.Context()); err != nil {
		return err
	}
	payload, err := m.publish(cmd.Context())
	if err != nil {
		return err
	}
	return b.finish(cmd, client, payload)
}

// making is the state of a release that is built from published images.
type making struct {
	*build
	*plan
	client *transfer.Client
	// scratch is the folder of the node image's layers until they are pushed.
	scratch string
	// out gets one line for each component.
	out io.Writer

	// gather sets found to the existing images, and made to the images that are built here, by component.
	found map[string]*transfer.Image
	made  map[string]v1.ImageIndex
}

func (m *making) gather(ctx context.Context) error {
	m.found, m.made = map[string]*transfer.Image{}, map[string]v1.ImageIndex{}
	for _, tag := range slices.Sorted(maps.Keys(m.images)) {
		image, err := m.client.Find(ctx, m.images[tag], m.architectures)
		if err != nil {
			return fmt.Errorf("component %s: %w", tag, err)
		}
		m.found[tag] = image
		m.say(tag, "%s is %s, for %s", m.images[tag], image.Ref.DigestStr(), strings.Join(image.Architectures, ", "))
	}
	for _, tag := range published.OfProduct {
		if err := m.gatherProduct(tag); err != nil {
			return fmt.Errorf("component %s: %w", tag, err)
		}
	}
	if len(m.sources) == 0 {
		return nil
	}
	return m.gatherNode(ctx)
}

// gatherProduct extracts the layers that nodes run from the product's image, unless a separate image is given.
func (m *making) gatherProduct(tag string) error {
	if _, given := m.components[tag]; given {
		return nil
	}
	made, err := onNodes(m.found[tag], m.architectures)
	if made != nil {
		m.made[tag] = made
		delete(m.found, tag)
	}
	return err
}

func (m *making) gatherNode(ctx context.Context) error {
	cache, err := m.downloadDir()
	if err != nil {
		return exit.UsageError(err)
	}
	downloads, err := m.registry.downloads()
	if err != nil {
		return err
	}
	fetcher := &nodeimage.Fetcher{Cache: cache, Client: downloads, Retry: downloadRetry}
	m.made[published.NodeImage], err = nodeimage.Build(ctx, fetcher, m.sources, m.architectures, m.scratch, func(s nodeimage.Source) {
		m.say(published.NodeImage, "%s from %s", s.Name, s.Place)
	})
	if err != nil {
		return fmt.Errorf("component %s: %w", published.NodeImage, err)
	}
	return nil
}

// publish pushes the images of the payload, and returns the payload.
func (m *making) publish(ctx context.Context) (releaseinfo.Payload, error) {
	p := releaseinfo.Payload{
		Version: m.plan.version, Distribution: releaseinfo.Kubernetes, Architecture: m.architecture(),
		Components: map[string]string{}, ComponentVersions: m.plan.versions,
	}
	for _, tag := range slices.Sorted(maps.Keys(m.found)) {
		ref, err := m.place(ctx, tag, m.found[tag])
		if err != nil {
			return p, fmt.Errorf("component %s: %w", tag, err)
		}
		p.Components[tag] = ref
	}
	for _, tag := range slices.Sorted(maps.Keys(m.made)) {
		ref, err := m.pushMade(ctx, tag)
		if err != nil {
			return p, fmt.Errorf("component %s: %w", tag, err)
		}
		p.Components[tag] = ref
	}
	return p, nil
}

// place returns the image's location in the payload: its source, or the mirror.
func (m *making) place(ctx context.Context, tag string, image *transfer.Image) (string, error) {
	if m.mirrorTo == "" {
		return image.Ref.Name(), nil
	}
	to, err := m.client.Repository(m.mirrorTo + "/" + image.Ref.RepositoryStr())
	if err != nil {
		return "", fmt.Errorf("--mirror-to: %w", err)
	}
	ref, err := m.client.Copy(ctx, image, to)
	if err != nil {
		return "", err
	}
	m.say(tag, "copied to %s", ref)
	return ref.Name(), nil
}

func (m *making) pushMade(ctx context.Context, tag string) (string, error) {
	repository, err := m.repository(tag)
	if err != nil {
		return "", err
	}
	to, err := m.client.Repository(repository)
	if err != nil {
		return "", fmt.Errorf("--node-to: %w", err)
	}
	ref, err := m.client.Push(ctx, to.Tag("v"+m.plan.version), m.made[tag])
	if err != nil {
		return "", err
	}
	m.say(tag, "pushed as %s", ref)
	return ref.Name(), nil
}

func (m *making) say(component, format string, args ...any) {
	fmt.Fprintf(m.out, "%-25s %s\n", component, fmt.Sprintf(format, args...))
}
