// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"strconv"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/openshift/hypershift/cmd/release/transfer"
	"github.com/openshift/hypershift/support/containerimage"
	"github.com/openshift/hypershift/support/imageregistry"
)

// onNodes returns an image with the layers of the product's image that nodes run, so that nodes do not pull the
// operators. It returns nil if the product's image does not label these layers: nodes then pull the complete image.
func onNodes(product *transfer.Image, architectures []string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range architectures {
		whole, err := product.For(arch)
		if err != nil {
			return nil, err
		}
		image, err := lowest(whole, arch)
		if image == nil || err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return index, nil
}

// lowest returns an image of the lowest layers; the label of the complete image gives their number.
func lowest(whole v1.Image, arch string) (v1.Image, error) {
	config, err := imageregistry.ConfigFile(whole, "of the product")
	if err != nil {
		return nil, err
	}
	label, ok := config.Config.Labels[containerimage.NodeNetworkLayers]
	if !ok {
		return nil, nil
	}
	layers, err := whole.Layers()
	if err != nil {
		return nil, err
	}
	count, err := strconv.Atoi(label)
	if err != nil || count < 1 || count > len(layers) {
		return nil, fmt.Errorf("its label %s is %q, and it has %d layers", containerimage.NodeNetworkLayers, label, len(layers))
	}
	return containerimage.Assemble(containerimage.Image{
		Name: containerimage.NodeNetwork, User: config.Config.User, Entrypoint: []string{"/usr/bin/" + containerimage.NodeNetwork},
	}, arch, layers[:count]...)
}
