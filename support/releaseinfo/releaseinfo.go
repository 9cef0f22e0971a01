// SPDX-License-Identifier: Apache-2.0

// Package releaseinfo reads release payloads: images that contain their version, their distribution, and the image of
// each component.
package releaseinfo

import (
	"context"
	"maps"
	"strings"
)

// Distribution is the kind of Kubernetes in a payload.
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
	// Lookup reads the payload that image names. pullSecret is the content of a .dockerconfigjson; nil means anonymous.
	// Every error is an *Error, whose Reason has a remedy for the user.
	Lookup(ctx context.Context, image string, pullSecret []byte) (*ReleaseImage, error)
}

// Payload is the content of a release payload. It is the input of Build and New.
type Payload struct {
	// Version is a semantic version without leading "v", e.g. 1.36.3 or 4.19.0.
	Version string
	// Distribution is the payload's distribution. Empty means OpenShift, because OpenShift payloads do not state one.
	Distribution Distribution
	// Architecture is a Go architecture or ArchitectureMulti; empty means amd64.
	Architecture string
	// LowestOperator is the lowest version of the operator that can run the payload, such as 0.2.0; empty if all can. The
	// operator of 0.1.0 does not read it.
	LowestOperator string
	// Components maps a component's tag to the pull spec of its image.
	Components map[string]string
	// ComponentVersions maps the name of a part to its version, e.g. kubernetes: 1.33.2.
	ComponentVersions map[string]string
	// BootImages are the images from which machines boot.
	BootImages BootImages
	// Digest is the digest of the payload's image, e.g. sha256:0123..., or of the index that contains it. The registry
	// provides it; Build ignores it. Empty means unknown.
	Digest string
}

// ReleaseImage is a payload that was looked up. It is immutable, so it can be shared.
type ReleaseImage struct {
	pullSpec string
	payload  Payload
}

// New returns a ReleaseImage with the given payload. pullSpec is the image that contains it and may be empty.
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

// PullSpec returns the image as the caller named it.
func (r *ReleaseImage) PullSpec() string { return r.pullSpec }

// Digest identifies the payload: payloads of the same version with other images have different digests. Empty means
// unknown.
func (r *ReleaseImage) Digest() string { return r.payload.Digest }

// Pinned returns a pull spec of exactly this payload: the repository and the digest. It does not depend on where a tag
// points later. A pull spec with a digest, or of an unknown digest, is returned unchanged.
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

// Version returns the payload's semantic version without leading "v".
func (r *ReleaseImage) Version() string { return r.payload.Version }

// Distribution returns the payload's distribution.
func (r *ReleaseImage) Distribution() Distribution { return r.payload.Distribution }

// Architecture returns a Go architecture (amd64, arm64, ...) or ArchitectureMulti.
func (r *ReleaseImage) Architecture() string { return r.payload.Architecture }

// LowestOperator returns the lowest version of the operator that can run the payload; empty if all can.
func (r *ReleaseImage) LowestOperator() string { return r.payload.LowestOperator }

// ComponentImages returns a map of every component's tag to the pull spec of its image. The caller may change the map.
func (r *ReleaseImage) ComponentImages() map[string]string { return maps.Clone(r.payload.Components) }

// ComponentImage returns the image of one component and whether the payload has it.
func (r *ReleaseImage) ComponentImage(tag string) (string, bool) {
	image, ok := r.payload.Components[tag]
	return image, ok
}

// ComponentVersions returns a map of the names of parts (kubernetes, machine-os, ...) to their versions. The caller may
// change the map.
func (r *ReleaseImage) ComponentVersions() map[string]string {
	return maps.Clone(r.payload.ComponentVersions)
}
