// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"github.com/spf13/cobra"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/release/published"
	"github.com/openshift/hypershift/cmd/release/transfer"
	"github.com/openshift/hypershift/support/imageregistry"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// pushTimeout limits the push of a payload, which has a few kilobytes.
const pushTimeout = 2 * time.Minute

// build holds the flags of `release build`.
type build struct {
	registry     registryFlags
	version      string
	distribution string
	arch         string
	components   map[string]string
	versions     map[string]string
	to           string

	// All fields below belong to --kubernetes.
	kubernetes      string
	imageRepository string
	productImage    string
	without         []string
	programs        map[string]*string
	nodeTo          string
	mirrorTo        string
	cache           string
	dryRun          bool
}

func newBuildCommand() *cobra.Command {
	b := &build{programs: map[string]*string{}}
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Make a release payload, push it, and print its pull spec by digest",
		Long: `Make a release payload, push it, and print its pull spec by digest.

With --kubernetes it is made of what the Kubernetes project publishes. These are the images that belong to that version, and an image for nodes that is
built here from the published kubelet, containerd, runc, CNI plugins and crictl. With --version it names the images that you give.
The payload is pushed last, when everything that it names is there. What was downloaded or pushed once is not sent again.`,
		Example: `  hypershift release build --kubernetes v1.36.3 --to registry.example.com/release:1.36.3

  hypershift release build --version 1.36.3 --to registry.example.com/release:1.36.3 \
    --component etcd=registry.example.com/etcd:3.6.8 --component kube-apiserver=registry.example.com/kube-apiserver:1.36.3 ...`,
		Args: cobra.NoArgs,
		RunE: b.run,
	}
	b.addFlags(cmd)
	return cmd
}

func (b *build) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&b.version, "version", "", "version of a release that is made of --component alone, e.g. 1.36.3")
	flags.StringVar(&b.distribution, "distribution", "kubernetes", "kubernetes or openshift")
	flags.StringVar(&b.arch, "arch", "", "CPU architecture of the components: amd64, arm64, or multi for both (default: multi with --kubernetes, else amd64)")
	flags.StringToStringVar(&b.components, "component", nil, "tag=pull spec of a component; can be given many times")
	flags.StringToStringVar(&b.versions, "component-version", nil,
		"name=version of a part, e.g. kubernetes=1.36.3; with --kubernetes the version to take instead of the one that belongs to the release, e.g. etcd=3.6.8-0")
	flags.StringVar(&b.to, "to", "", "where to push the payload, with a tag (required)")
	flags.StringVar(&b.kubernetes, "kubernetes", "", "version of Kubernetes to make a release of, from the images that the project publishes, e.g. v1.36.3")
	flags.StringVar(&b.imageRepository, "image-repository", published.Registry, "registry, or registry and path, that has the published images")
	flags.StringVar(&b.productImage, "product-image", "",
		"image of this product, which nodes run for their network (default: the one that belongs to this program, if it was built with one)")
	flags.StringSliceVar(&b.without, "without", nil, "what to leave out: "+strings.Join(optional, ", "))
	flags.StringVar(&b.nodeTo, "node-to", "", "repository for the node image (default: node, beside the payload, or below --mirror-to)")
	flags.StringVar(&b.mirrorTo, "mirror-to", "", "registry, or registry and path, to copy all images to; the payload names the copies")
	flags.StringVar(&b.cache, "download-dir", "", "where to keep downloads (default: hypershift/downloads in the user's cache folder)")
	flags.BoolVar(&b.dryRun, "dry-run", false, "print what the payload would be made of, and do nothing")
	for program, what := range map[string]string{
		"kubelet": "kubelet", "containerd": "archive with containerd, containerd-shim-runc-v2 and ctr", "runc": "runc",
		"cni-plugins": "archive with CNI plugins", "crictl": "crictl, or an archive with it",
	} {
		b.programs[program] = flags.String(program, "", what+": URL-or-file@sha256:<hex>, or URL-or-file@<URL or file of its checksum>; "+
			"{arch} stands for the architecture (default: as its project publishes it)")
	}
	b.registry.addFlags(flags)
}

func (b *build) run(cmd *cobra.Command, _ []string) error {
	if b.kubernetes != "" {
		return b.runPublished(cmd)
	}
	payload, err := b.payload()
	if err != nil {
		return exit.UsageError(err)
	}
	warn(cmd.ErrOrStderr(), payload.ComponentVersions)
	client, err := b.registry.client()
	if err != nil {
		return err
	}
	return b.finish(cmd, client, payload)
}

// payload returns a payload with the images of --component only.
func (b *build) payload() (releaseinfo.Payload, error) {
	p := releaseinfo.Payload{
		Version: b.version, Architecture: cmp.Or(b.arch, "amd64"), Components: b.components, ComponentVersions: b.versions,
	}
	if b.version == "" {
		return p, errors.New("--kubernetes is required, e.g. --kubernetes v1.36.3, or --version with every --component")
	}
	if _, err := semver.Parse(b.version); err != nil {
		return p, fmt.Errorf("--version %q is not a version such as 1.36.3 (without \"v\"): %w", b.version, err)
	}
	if err := b.validate(); err != nil {
		return p, err
	}
	if len(b.components) == 0 {
		return p, errors.New("--component is required, e.g. --component etcd=registry.example.com/etcd:3.6.8")
	}
	switch strings.ToLower(b.distribution) {
	case "kubernetes":
		p.Distribution = releaseinfo.Kubernetes
	case "openshift":
		p.Distribution = releaseinfo.OpenShift
	default:
		return p, fmt.Errorf("--distribution %q: use kubernetes or openshift", b.distribution)
	}
	return p, nil
}

// validate checks the flags that both ways to build have.
func (b *build) validate() error {
	if b.to == "" {
		return errors.New("--to is required, e.g. registry.example.com/release:" + cmp.Or(b.version, strings.TrimPrefix(b.kubernetes, "v")))
	}
	if _, err := imageregistry.Parse(b.to); err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	for _, tag := range slices.Sorted(maps.Keys(b.components)) {
		if _, err := imageregistry.Parse(b.components[tag]); err != nil {
			return fmt.Errorf("--component %s: %w", tag, err)
		}
	}
	return nil
}

// finish pushes the payload. It does so last: only the payload makes the pushed images usable.
func (b *build) finish(cmd *cobra.Command, client *transfer.Client, p releaseinfo.Payload) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), pushTimeout)
	defer cancel()
	img, err := releaseinfo.Build(p)
	if err != nil {
		return err
	}
	ref, err := client.Parse(b.to)
	if err != nil {
		return exit.UsageError(fmt.Errorf("--to: %w", err))
	}
	pushed, err := client.Push(ctx, ref, img)
	if err != nil {
		return fmt.Errorf("release payload: %w", err)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), pushed)
	return err
}

// downloadDir returns the folder of cached downloads.
func (b *build) downloadDir() (string, error) {
	if b.cache != "" {
		return b.cache, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("--download-dir is required here: %w", err)
	}
	return filepath.Join(dir, "hypershift", "downloads"), nil
}
