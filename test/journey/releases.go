// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/lifecycle"
)

// ReleaseImage returns the release payload that the environment has built.
func (w *Walker) ReleaseImage(ctx context.Context) (string, error) {
	environment := lifecycle.Environment{Env: w.environment(), Out: w.Out}
	version, err := environment.KubernetesVersion(ctx)
	return lifecycle.Payload(version), err
}

// PreviousReleaseImage returns the release payload of the previous minor, from which users upgrade.
func (w *Walker) PreviousReleaseImage(ctx context.Context) (string, error) {
	environment := lifecycle.Environment{Env: w.environment(), Out: w.Out}
	version, err := environment.PreviousVersion(ctx)
	return lifecycle.Payload(version), err
}

// PatchReleaseImage builds the release payload of the patch after the previous minor's release.
func (w *Walker) PatchReleaseImage(ctx context.Context) (string, error) {
	environment := lifecycle.Environment{Env: w.environment(), Out: w.Out}
	return environment.BuildPatchPayload(ctx)
}

// Publish pushes a released version of the product to the environment's registry.
func (w *Walker) Publish(ctx context.Context, version string) (lifecycle.Published, error) {
	environment := lifecycle.Environment{Env: w.environment(), Out: w.Out}
	return environment.Publish(ctx, version)
}

// PublishPrevious pushes the payload that a published version builds for the previous minor version of Kubernetes.
func (w *Walker) PublishPrevious(ctx context.Context, p lifecycle.Published) (string, error) {
	environment := lifecycle.Environment{Env: w.environment(), Out: w.Out}
	return environment.PublishPrevious(ctx, p)
}

// RebuiltReleaseImage builds a copy of a release payload of the same version, whose Kubernetes images have other
// digests, as after a rebuild. It returns its pull spec by digest.
func (w *Walker) RebuiltReleaseImage(ctx context.Context, release string) (string, error) {
	ca, err := os.ReadFile(w.environment().RegistryCA())
	if err != nil {
		return "", err
	}
	registry, err := releaseinfo.NewRegistry(releaseinfo.Options{CABundle: ca})
	if err != nil {
		return "", err
	}
	of, err := registry.Lookup(ctx, release, nil)
	if err != nil {
		return "", err
	}
	transport, err := releaseinfo.NewTransport(ca, false)
	if err != nil {
		return "", err
	}
	args := []string{"hypershift", "release", "build", "--version", of.Version(), "--arch", of.Architecture(),
		"--to", env.Registry + "/hypershift/release:" + of.Version() + "-rebuilt", "--ca-file", w.environment().RegistryCA()}
	components := of.ComponentImages()
	for _, tag := range slices.Sorted(maps.Keys(components)) {
		image := components[tag]
		if strings.Contains(image, "/kube@") {
			if image, err = rebuild(ctx, image, remote.WithTransport(transport)); err != nil {
				return "", fmt.Errorf("building %s again: %w", tag, err)
			}
		}
		args = append(args, "--component", tag+"="+image)
	}
	out, err := w.Read(ctx, args...)
	return strings.TrimSpace(out), err
}

// rebuild pushes an image with the same files and another digest to the same repository, and returns its pull spec.
func rebuild(ctx context.Context, image string, options ...remote.Option) (string, error) {
	options = append(options, remote.WithContext(ctx))
	ref, err := name.ParseReference(image)
	if err != nil {
		return "", err
	}
	original, err := remote.Image(ref, options...)
	if err != nil {
		return "", err
	}
	config, err := original.ConfigFile()
	if err != nil {
		return "", err
	}
	config = config.DeepCopy()
	config.Config.Labels = map[string]string{"rebuilt": "true"}
	built, err := mutate.ConfigFile(original, config)
	if err != nil {
		return "", err
	}
	digest, err := built.Digest()
	if err != nil {
		return "", err
	}
	target := ref.Context().Digest(digest.String())
	return target.Name(), remote.Write(target, built, options...)
}
