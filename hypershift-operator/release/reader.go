// SPDX-License-Identifier: Apache-2.0

// Package release reads the release payloads of hosted clusters and decides which of them a cluster or pool may use.
package release

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/lru"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/pace"
	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/releaseinfo"
)

const (
	// lookupTimeout is short, so that the registry of one cluster does not block a worker for long.
	lookupTimeout = 15 * time.Second
	// namespaces is the number of namespaces whose payloads are cached. In each, readers is the number of cached
	// registry clients, one for each set of CAs and mirrors. A namespace cannot displace the clients of another
	// namespace.
	namespaces, readers = 256, 16
)

// Access describes how one cluster accesses its registries.
type Access struct {
	// PullSecret is the content of a .dockerconfigjson.
	PullSecret []byte
	// TrustBundle holds PEM certificates that are trusted in addition to those of the system.
	TrustBundle []byte
	// Mirrors are tried first.
	Mirrors []hyperv1.ImageContentSource
}

// Lookup reads payloads.
type Lookup interface {
	// Lookup reads the payload that image names.
	Lookup(ctx context.Context, image string, access Access) (*releaseinfo.ReleaseImage, error)
	// Labels reads the labels of an image, a component of a payload.
	Labels(ctx context.Context, image string, access Access) (map[string]string, error)
}

// Reader is the Lookup that reads from registries. It is safe for concurrent use.
type Reader struct {
	overrides map[string]string
	allow     func(image string) error
	guard     *addressguard.Guard
	// byNamespace holds an lru.Cache with the clients of each namespace.
	byNamespace *lru.Cache
}

// NewReader returns a Reader; overrides maps prefixes of image references to their replacements.
func NewReader(overrides map[string]string) *Reader {
	return &Reader{overrides: overrides, byNamespace: lru.New(namespaces)}
}

// Limited makes the reader reject all releases and mirrors for which allow returns an error, and returns the reader.
func (r *Reader) Limited(allow func(image string) error) *Reader {
	r.allow = allow
	return r
}

// Guarded makes the reader refuse registries with the addresses that a guard blocks, and returns the reader.
func (r *Reader) Guarded(guard *addressguard.Guard) *Reader {
	r.guard = guard
	return r
}

// Lookup implements Lookup.
func (r *Reader) Lookup(ctx context.Context, image string, access Access) (*releaseinfo.ReleaseImage, error) {
	registry, err := r.registry(pace.NamespaceOf(ctx), access)
	if err != nil {
		return nil, err
	}
	return registry.Lookup(ctx, image, access.PullSecret)
}

// Labels implements Lookup.
func (r *Reader) Labels(ctx context.Context, image string, access Access) (map[string]string, error) {
	registry, err := r.registry(pace.NamespaceOf(ctx), access)
	if err != nil {
		return nil, err
	}
	return registry.Labels(ctx, image, access.PullSecret)
}

// registry returns the registry client of a namespace, which has a cache, for a set of CAs and mirrors.
func (r *Reader) registry(namespace string, access Access) (*releaseinfo.Registry, error) {
	byAccess, key := r.clients(namespace), key(access)
	if known, ok := byAccess.Get(key); ok {
		return known.(*releaseinfo.Registry), nil
	}
	registry, err := releaseinfo.NewRegistry(releaseinfo.Options{
		CABundle: access.TrustBundle, Overrides: r.overrides, Mirrors: mirrors(access.Mirrors), Timeout: lookupTimeout,
		Allow: r.allow, Guard: r.guard,
	})
	if err != nil {
		return nil, fmt.Errorf("spec.additionalTrustBundle: %w", err)
	}
	byAccess.Add(key, registry)
	return registry, nil
}

// clients returns the cached registry clients of a namespace. Two concurrent first calls may create two caches; the
// later one stays.
func (r *Reader) clients(namespace string) *lru.Cache {
	if known, ok := r.byNamespace.Get(namespace); ok {
		return known.(*lru.Cache) //nolint:forcetypeassert // It holds nothing else.
	}
	made := lru.New(readers)
	r.byNamespace.Add(namespace, made)
	return made
}

func key(access Access) string {
	parts := []string{string(access.TrustBundle)}
	for _, source := range access.Mirrors {
		parts = append(parts, source.Source, strings.Join(source.Mirrors, ","))
	}
	return strings.Join(parts, "\x00")
}

func mirrors(sources []hyperv1.ImageContentSource) []releaseinfo.Mirror {
	var all []releaseinfo.Mirror
	for _, source := range sources {
		all = append(all, releaseinfo.Mirror{Source: source.Source, Mirrors: slices.Clone(source.Mirrors)})
	}
	return all
}
