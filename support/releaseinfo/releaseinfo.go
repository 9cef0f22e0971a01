// SPDX-License-Identifier: Apache-2.0

// Package releaseinfo reads release payloads: images that say which version they are, which distribution, and
// which image runs each component.
package releaseinfo

import (
	"context"
	"maps"
	"strings"
)

// Distribution is the kind of Kubernetes that a payload carries.
type Distribution string

const (
	// Kubernetes is upstream Kubernetes, served by the control-plane-operator of this repository.
	Kubernetes Distribution = "Kubernetes"
	// OpenShift is OCP or OKD, whose payload brings its own control-plane-operator.
	OpenShift Distribution = "OpenShift"
)

// ArchitectureMulti is the architecture of a payload that serves several architectures.
const ArchitectureMulti = "multi"

// Provider looks up release payloads.
type Provider interface {
	// Lookup reads the payload that image names. pullSecret is the content of a .dockerconfigjson; nil means
	// anonymous. Every error is an *Error whose Reason tells the user what to do.
	Lookup(ctx context.Context, image string, pullSecret []byte) (*ReleaseImage, error)
}

// Payload is what a release payload says. It is the input of Build and New.
type Payload struct {
	// Version is a semantic version without leading "v", e.g. 1.36.3 or 4.19.0.
	Version string
	// Distribution defaults to OpenShift, as a payload that does not say is one.
	Distribution Distribution
	// Architecture is a Go architecture or ArchitectureMulti; empty means amd64.
	Architecture string
	// Components maps a component's tag to the pull spec of its image.
	Components map[string]string
	// ComponentVersions maps the name of a part to its version, e.g. kubernetes: 1.33.2.
	ComponentVersions map[string]string
	// BootImages are what machines start from.
	BootImages BootImages
	// Digest is that of the payload's image, e.g. sha256:0123..., or of the index that holds it. A registry's answer; Build
	// does not read it. Empty means that it is not known.
	Digest string
}

// ReleaseImage is a payload that was looked up. It cannot be changed, so it can be shared.
type ReleaseImage struct {
	pullSpec string
	payload  Payload
}

// New makes a ReleaseImage from what its payload says; pullSpec is the image it came from and may be empty.
func New(pullSpec string, p Payload) *ReleaseImage {
	p.Components = maps.Clone(p.Components)
	p.ComponentVersions = maps.Clone(p.ComponentVersions)
	if p.Distribution == "" {
		p.Distribution = OpenShift
	}
	if p.Architecture == "" {
		p.Architecture = "amd64"
	}
	return &ReleaseImage{pullSpec: pullSpec, payload: p}
}

// PullSpec is the image as the caller named it.
func (r *ReleaseImage) PullSpec() string { return r.pullSpec }

// Digest identifies the payload: two of the same version with other images have different ones. Empty when it is not known.
func (r *ReleaseImage) Digest() string { return r.payload.Digest }

// Pinned is the pull spec that names this very payload, whatever a tag of it points to later: the repository and the digest.
// A pull spec that had a digest stays as it was written, and so does one whose digest is not known.
func (r *ReleaseImage) Pinned() string {
	if r.payload.Digest == "" || strings.Contains(r.pullSpec, "@") {
		return r.pullSpec
	}
	repository := r.pullSpec
	if tag := strings.LastIndex(repository, ":"); tag > strings.LastIndex(repository, "/") {
		repository = repository[:tag]
	}
	return repository + "@" + r.payload.Digest
}

// Version is the payload's semantic version without leading "v".
func (r *ReleaseImage) Version() string { return r.payload.Version }

// Distribution tells upstream Kubernetes from OpenShift.
func (r *ReleaseImage) Distribution() Distribution { return r.payload.Distribution }

// Architecture is a Go architecture (amd64, arm64, ...) or ArchitectureMulti.
func (r *ReleaseImage) Architecture() string { return r.payload.Architecture }

// ComponentImages maps every component's tag to the pull spec of its image. The map is the caller's own.
func (r *ReleaseImage) ComponentImages() map[string]string { return maps.Clone(r.payload.Components) }

// ComponentImage returns the image of one component and whether the payload has it.
func (r *ReleaseImage) ComponentImage(tag string) (string, bool) {
	image, ok := r.payload.Components[tag]
	return image, ok
}

// ComponentVersions maps the name of a part (kubernetes, machine-os, ...) to its version. The map is the caller's own.
func (r *ReleaseImage) ComponentVersions() map[string]string {
	return maps.Clone(r.payload.ComponentVersions)
}
