// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/release/transfer"
	"github.com/openshift/hypershift/support/imageregistry"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// mirror holds the flags of `release mirror`.
type mirror struct {
	registry           registryFlags
	to, toDir, fromDir string
}

func newMirrorCommand() *cobra.Command {
	m := &mirror{}
	cmd := &cobra.Command{
		Use:   "mirror [release image]",
		Short: "Copy a release and all that it names to another registry, or to a folder and from it",
		Long: `Copy a release and all that it names to another registry, or to a folder and from it.

Images keep their digests and the paths of their repositories, below --to. A Kubernetes release is rewritten at the end to name the copies, so its
digest changes. An OpenShift release is copied unchanged, since it is signed; name the mirror to its clusters with --image-content-sources.
The folder is an OCI layout. What was copied once is not sent again.`,
		Example: `  hypershift release mirror registry.example.com/release:1.36.3 --to registry.rack.example/mirror

  # Across an air gap:
  hypershift release mirror registry.example.com/release:1.36.3 --to-dir release-1.36.3
  hypershift release mirror --from-dir release-1.36.3 --to registry.rack.example/mirror`,
		RunE: m.run,
	}
	flags := cmd.Flags()
	flags.StringVar(&m.to, "to", "", "registry, or registry and path, to copy to")
	flags.StringVar(&m.toDir, "to-dir", "", "folder to copy to, which is made or completed")
	flags.StringVar(&m.fromDir, "from-dir", "", "folder to copy from, which --to-dir made")
	m.registry.addFlags(flags)
	return cmd
}

func (m *mirror) run(cmd *cobra.Command, args []string) error {
	if err := m.validate(args); err != nil {
		return exit.UsageError(err)
	}
	client, err := m.registry.client()
	if err != nil {
		return err
	}
	var from source
	if m.fromDir != "" {
		from, err = openFolder(m.fromDir, client)
	} else {
		from, err = &fromRegistry{client}, nil
	}
	if err != nil {
		return err
	}
	c := &copying{client: client, from: from, out: cmd.ErrOrStderr()}
	if err := c.start(cmd.Context(), args); err != nil {
		return err
	}
	done := m.toDir
	if m.toDir != "" {
		err = c.toFolder(cmd.Context(), m.toDir)
	} else {
		done, err = c.toRegistry(cmd.Context(), m.to)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), done)
	return err
}

func (m *mirror) validate(args []string) error {
	if (m.to == "") == (m.toDir == "") {
		return errors.New("--to or --to-dir is required, one of them: where to copy to")
	}
	if (len(args) == 1) == (m.fromDir != "") || len(args) > 1 {
		return errors.New("name one release image or --from-dir: what to copy")
	}
	if m.fromDir != "" && m.toDir != "" {
		return errors.New("--from-dir needs --to; copy a folder to another folder with a file tool")
	}
	if m.to != "" {
		if _, err := (&imageregistry.Client{}).Repository(m.to + "/release"); err != nil {
			return fmt.Errorf("--to: %w", err)
		}
	}
	return nil
}

// source is where a release is copied from.
type source interface {
	// release finds the release image that args name, if any.
	release(ctx context.Context, args []string) (*transfer.Image, error)
	// image finds an image by a pull spec of the release.
	image(ctx context.Context, spec string) (*transfer.Image, error)
}

type fromRegistry struct{ client *transfer.Client }

func (f *fromRegistry) release(ctx context.Context, args []string) (*transfer.Image, error) {
	return f.client.Find(ctx, args[0], nil)
}

func (f *fromRegistry) image(ctx context.Context, spec string) (*transfer.Image, error) {
	return f.client.Find(ctx, spec, nil)
}

// copying holds the state of a copy.
type copying struct {
	client *transfer.Client
	from   source
	out    io.Writer

	// Set by start.
	release *transfer.Image
	payload releaseinfo.Payload
	images  map[string]*transfer.Image
}

// start finds all images before any is copied.
func (c *copying) start(ctx context.Context, args []string) (err error) {
	if c.release, err = c.from.release(ctx, args); err != nil {
		return err
	}
	image, err := c.release.Any()
	if err != nil {
		return fmt.Errorf("reading release image %s: %w", c.release.Named, err)
	}
	if c.payload, err = releaseinfo.Read(image, c.release.Named.String()); err != nil {
		return fmt.Errorf("%s is not a release image: %w", c.release.Named, err)
	}
	c.images = map[string]*transfer.Image{}
	for _, tag := range slices.Sorted(maps.Keys(c.payload.Components)) {
		if c.images[tag], err = c.from.image(ctx, c.payload.Components[tag]); err != nil {
			return fmt.Errorf("component %s: %w", tag, err)
		}
	}
	return nil
}

// toRegistry returns the pull specification of the copied release, which is pushed last.
func (c *copying) toRegistry(ctx context.Context, prefix string) (string, error) {
	for _, tag := range slices.Sorted(maps.Keys(c.images)) {
		image := c.images[tag]
		to, err := c.client.Repository(prefix + "/" + image.Ref.RepositoryStr())
		if err != nil {
			return "", exit.UsageError(fmt.Errorf("--to: %w", err))
		}
		ref, err := c.client.Copy(ctx, image, to)
		if err != nil {
			return "", fmt.Errorf("component %s: %w", tag, err)
		}
		c.payload.Components[tag] = ref.Name()
		fmt.Fprintf(c.out, "%-25s copied to %s\n", tag, ref)
	}
	to, err := c.client.Repository(prefix + "/" + c.release.Ref.RepositoryStr())
	if err != nil {
		return "", exit.UsageError(fmt.Errorf("--to: %w", err))
	}
	content := c.release.Content
	if c.payload.Distribution == releaseinfo.Kubernetes {
		if content, err = releaseinfo.Build(c.payload); err != nil {
			return "", err
		}
	}
	target := to.Tag(c.payload.Version)
	if tag, ok := c.release.Named.(name.Tag); ok {
		target = to.Tag(tag.TagStr())
	}
	pushed, err := c.client.Push(ctx, target, content)
	if err != nil {
		return "", fmt.Errorf("release payload: %w", err)
	}
	return pushed.Name(), nil
}
