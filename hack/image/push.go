// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push pushes the image of an OCI layout to the reference image, and then its attached artifacts. It returns the pull
// specification by digest. It moves the tag only after the complete image is pushed.
func push(ctx context.Context, from, image string) (string, error) {
	target, err := name.NewTag(image, name.StrictValidation)
	if err != nil {
		return "", fmt.Errorf("%q is not an image with a tag, such as registry.example/hypershift:v1: %w", image, err)
	}
	store, err := layout.ImageIndexFromPath(from)
	if err != nil {
		return "", fmt.Errorf("reading the image in %s (make image builds it): %w", from, err)
	}
	manifest, err := store.IndexManifest()
	if err != nil {
		return "", fmt.Errorf("reading the image in %s: %w", from, err)
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	pushed := ""
	for _, entry := range manifest.Manifests {
		if !entry.MediaType.IsIndex() {
			err = pushAttached(store, entry.Digest, target, options)
		} else {
			pushed, err = pushIndex(store, entry.Digest, target, options)
		}
		if err != nil {
			return "", fmt.Errorf("pushing to %s: %w", target, err)
		}
	}
	if pushed == "" {
		return "", fmt.Errorf("%s holds no image (make image builds it)", from)
	}
	return pushed, nil
}

func pushIndex(store v1.ImageIndex, digest v1.Hash, target name.Tag, options []remote.Option) (string, error) {
	index, err := store.ImageIndex(digest)
	if err != nil {
		return "", err
	}
	return target.Context().Digest(digest.String()).String(), remote.WriteIndex(target, index, options...)
}

func pushAttached(store v1.ImageIndex, digest v1.Hash, target name.Tag, options []remote.Option) error {
	image, err := store.Image(digest)
	if err != nil {
		return err
	}
	return remote.Write(target.Context().Digest(digest.String()), image, options...)
}
