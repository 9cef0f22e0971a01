// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/openshift/hypershift/support/containerimage"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/images"
)

// ErrNotBuilt is the error of Publish if the programs of the version are not built.
var ErrNotBuilt = errors.New("its programs are not built: run make released-programs")

// Published is a released version of the product in the environment's registry.
type Published struct {
	// Command is the path of its hypershift command.
	Command string
	// Product is the pull specification of its image.
	Product string
	// Payload is the pull specification of the release payload that the version's command built for this build's
	// version of Kubernetes.
	Payload string
}

// Publish pushes the product image of a released version, such as "0.1.0", and a release payload. It returns
// ErrNotBuilt if bin/released has no programs of the version.
func (e *Environment) Publish(ctx context.Context, version string) (Published, error) {
	programs := filepath.Join(e.Bin, "released", version)
	p := Published{Command: filepath.Join(programs, "hypershift"), Payload: Payload("by-" + version)}
	if _, err := os.Stat(p.Command); errors.Is(err, fs.ErrNotExist) {
		return Published{}, fmt.Errorf("publishing HyperShift %s: %w", version, ErrNotBuilt)
	}
	product, err := e.pushProduct(ctx, programs, version)
	if err != nil {
		return Published{}, fmt.Errorf("publishing HyperShift %s: %w", version, err)
	}
	p.Product = product
	specs, err := images.Pullspecs(e.Images(), env.Registry)
	if err != nil {
		return Published{}, err
	}
	releases, err := images.Releases(ctx, e.Bin)
	if err != nil {
		return Published{}, err
	}
	return p, e.buildPayload(ctx, payload{releases[0], p.Command, p.Product, p.Payload, specs})
}

// PublishPrevious pushes the release payload that the command of a published version builds for the previous minor
// version of Kubernetes. It returns its pull specification.
func (e *Environment) PublishPrevious(ctx context.Context, p Published) (string, error) {
	specs, err := images.Pullspecs(e.Images(), env.Registry)
	if err != nil {
		return "", err
	}
	releases, err := images.Releases(ctx, e.Bin)
	if err != nil {
		return "", err
	}
	if len(releases) < 2 {
		return "", errors.New("the previous minor of Kubernetes is not built: run make images")
	}
	target := p.Payload + "-previous"
	return target, e.buildPayload(ctx, payload{releases[1], p.Command, p.Product, target, specs})
}

// pushProduct builds and pushes the product image of programs, and returns its pull specification.
func (e *Environment) pushProduct(ctx context.Context, programs, version string) (string, error) {
	base, err := containerimage.Base()
	if err != nil {
		return "", err
	}
	ca, err := os.ReadFile(e.RegistryCA())
	if err != nil {
		return "", err
	}
	image := containerimage.Product(programs, base)
	image.Name += "-" + version
	image.Files, image.Below = slices.DeleteFunc(image.Files, absent), slices.DeleteFunc(image.Below, absent)
	built := filepath.Join(e.Dir, "released", version)
	if err := os.MkdirAll(filepath.Dir(built), 0o755); err != nil {
		return "", err
	}
	if err := images.Build(built, []containerimage.Image{image}); err != nil {
		return "", err
	}
	if err := images.Push(ctx, built, env.Registry, ca); err != nil {
		return "", err
	}
	specs, err := images.Pullspecs(built, env.Registry)
	return specs[image.Name], err
}

// absent reports whether a file of the product's image is a program that a released version did not have yet.
func absent(file containerimage.File) bool {
	if file.Source == "" {
		return false
	}
	_, err := os.Stat(file.Source)
	return errors.Is(err, fs.ErrNotExist)
}
