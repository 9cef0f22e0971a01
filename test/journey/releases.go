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

// ReleaseImage is the release payload that the environment has built.
func (w *Walker) ReleaseImage(ctx context.Context) (string, error) {
	environment := lifecycle.Environment{Env: w.environment(), Out: w.Out}
	version, err := environment.KubernetesVersion(ctx)
	return lifecycle.Payload(version), err
}

// PreviousReleaseImage is the release payload of the minor before, from which people upgrade.
func (w *Walker) PreviousReleaseImage(ctx context.Context) (string, error) {
	environment := lifecycle.Environment{Env: w.environment(), Out: w.Out}
	version, err := environment.PreviousVersion(ctx)
	return lifecycle.Payload(version), err
}

// PatchReleaseImage makes a release payload of the patch that follows the release of the minor before.
func (w *Walker) PatchReleaseImage(ctx context.Context) (string, error) {
	environment := lifecycle.Environment{Env: w.environment(), Out: w.Out}
	return environment.BuildPatchPayload(ctx)
}

// Publish brings a released version of the product into the environment's registry.
func (w *Walker) Publish(ctx context.Context, version string) (lifecycle.Published, error) {
	environment := lifecycle.Environment{Env: w.environment(), Out: w.Out}
	return environment.Publish(ctx, version)
}

// RebuiltReleaseImage makes a release payload of the version of another one whose Kubernetes images have other digests, as
// when somebody built them again, and returns its pull spec by digest.
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

// rebuild pushes an image of the same files and another digest beside one, and returns its pull spec.
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
