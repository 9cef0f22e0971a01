// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/openshift/hypershift/cmd/install"
	"github.com/openshift/hypershift/cmd/release/nodeimage"
	"github.com/openshift/hypershift/cmd/release/published"
	"github.com/openshift/hypershift/support/imageregistry"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// optional lists the components that a release can omit.
var optional = []string{"cluster-autoscaler", "crictl", "flannel", "metrics-server"}

// plan describes the parts of a release of published images.
type plan struct {
	version       string
	architectures []string
	// images maps components to pull specs.
	images map[string]string
	// sources are the sources of the node image; none if an existing image is given.
	sources []nodeimage.Source
	// versions are the versions of the parts that the user did not replace.
	versions map[string]string
}

func (b *build) plan() (*plan, error) {
	if b.version != "" || !strings.EqualFold(b.distribution, "kubernetes") {
		return nil, errors.New("--kubernetes is not for use with --version or another --distribution")
	}
	release, err := published.Of(b.kubernetes, b.versions)
	if err != nil {
		return nil, fmt.Errorf("--kubernetes: %w", err)
	}
	for _, name := range b.without {
		if !slices.Contains(optional, name) {
			return nil, fmt.Errorf("--without %s: a release needs it; only %s can be left out", name, strings.Join(optional, ", "))
		}
	}
	p := &plan{version: release.Version, images: map[string]string{}, versions: release.Versions}
	if p.architectures, err = architectures(b.arch); err != nil {
		return nil, err
	}
	if err := b.planImages(p, release); err != nil {
		return nil, err
	}
	if err := b.planNode(p, release); err != nil {
		return nil, err
	}
	return p, b.validate()
}

func architectures(arch string) ([]string, error) {
	switch arch {
	case "", releaseinfo.ArchitectureMulti:
		return []string{"amd64", "arm64"}, nil
	case "amd64", "arm64":
		return []string{arch}, nil
	}
	return nil, fmt.Errorf("--arch %q: use amd64, arm64, or multi for both", arch)
}

func (p *plan) architecture() string {
	if len(p.architectures) > 1 {
		return releaseinfo.ArchitectureMulti
	}
	return p.architectures[0]
}

// parts maps component tags to the names of their versions, if the names differ.
var parts = map[string]string{"cluster-capi-controllers": "cluster-api", "pod": "pause"}

func (b *build) planImages(p *plan, release published.Release) error {
	for _, image := range release.Images {
		if slices.Contains(b.without, image.Tag) {
			delete(p.versions, image.Tag)
			continue
		}
		p.images[image.Tag] = fmt.Sprintf("%s/%s:%s", b.registryOf(image), image.Repository, image.Version)
		if _, replaced := b.components[image.Tag]; replaced {
			delete(p.versions, cmp.Or(parts[image.Tag], image.Tag))
		}
	}
	for _, tag := range published.OfProduct {
		p.images[tag] = cmp.Or(b.productImage, install.BuiltImage())
	}
	maps.Copy(p.images, b.components)
	if slices.ContainsFunc(published.OfProduct, func(tag string) bool { return p.images[tag] == "" }) {
		return errors.New("--product-image is required, since this program was built without one: name what `make image-push` printed")
	}
	for _, tag := range slices.Sorted(maps.Keys(p.images)) {
		if _, err := imageregistry.Parse(p.images[tag]); err != nil {
			return fmt.Errorf("image of %s: %w", tag, err)
		}
	}
	return nil
}

// registryOf returns the registry of an image. A mirror that the user sets has all images.
func (b *build) registryOf(image published.Image) string {
	if image.Registry != "" && b.imageRepository == published.Registry {
		return image.Registry
	}
	return b.imageRepository
}

func (b *build) planNode(p *plan, release published.Release) error {
	_, given := b.components[published.NodeImage]
	for _, program := range release.Programs {
		flag := *b.programs[program.Name]
		switch {
		case given && flag != "":
			return fmt.Errorf("--%s is not for use with --component node=..., which has it", program.Name)
		case given || slices.Contains(b.without, program.Name):
			delete(p.versions, program.Name)
			continue
		}
		source := nodeimage.Source{Name: program.Name, Place: program.Source, Checksum: program.Checksums}
		if flag != "" {
			delete(p.versions, program.Name)
			var err error
			if source, err = nodeimage.ParseSource(program.Name, flag); err != nil {
				return fmt.Errorf("--%s: %w", program.Name, err)
			}
		}
		if err := source.Validate(p.architectures); err != nil {
			return fmt.Errorf("--%s: %w", program.Name, err)
		}
		p.sources = append(p.sources, source)
	}
	return nil
}

// repository returns the repository for an image that is built here.
func (b *build) repository(tag string) (string, error) {
	if b.nodeTo != "" && tag == published.NodeImage {
		return b.nodeTo, nil
	}
	if b.mirrorTo != "" {
		return b.mirrorTo + "/" + tag, nil
	}
	to, err := imageregistry.Parse(b.to)
	if err != nil {
		return "", fmt.Errorf("--to: %w", err)
	}
	return to.Context().RegistryStr() + "/" + path.Join(path.Dir(to.Context().RepositoryStr()), tag), nil
}

func (p *plan) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "Version\t%s\nArchitectures\t%s\n\nCOMPONENT\tIMAGE\n", p.version, strings.Join(p.architectures, ", "))
	for _, tag := range slices.Sorted(maps.Keys(p.images)) {
		fmt.Fprintf(table, "%s\t%s\n", tag, p.images[tag])
	}
	if len(p.sources) > 0 {
		fmt.Fprint(table, "\nPROGRAM OF THE NODE IMAGE\tSOURCE\tCHECKSUM\n")
	}
	for _, arch := range p.architectures {
		for _, source := range p.sources {
			s := source.For(arch)
			fmt.Fprintf(table, "%s (%s)\t%s\t%s\n", s.Name, arch, s.Place, s.Checksum)
		}
	}
	return table.Flush()
}
