// SPDX-License-Identifier: Apache-2.0

package releaseinfo

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/imageregistry"
)

const (
	defaultTimeout   = 30 * time.Second
	defaultCacheSize = 64
	defaultTagTTL    = time.Minute
)

// Options configure a Registry. The zero value reads directly from the registries that pull specs name.
type Options struct {
	// CABundle holds PEM certificates that are trusted in addition to the system's.
	CABundle []byte
	// Insecure accepts any certificate and plain HTTP. It is only for throw-away registries of a CLI user.
	Insecure bool
	// Overrides maps prefixes of pull specs to their replacements. They apply to the payload's own pull spec and to those
	// of its components.
	Overrides map[string]string
	// Mirrors are tried before the registry that a pull spec names. Components keep their names, because the container
	// runtime has its own mirrors.
	Mirrors []Mirror
	// Allow returns an error for users if a pull spec is refused. It checks the releases that are looked up, as
	// callers name them, and the mirrors that are tried for any image. It does not check the images that a release
	// names, or the results of Overrides for an allowed image. Nil allows everything.
	Allow func(image string) error
	// Guard refuses addresses of registries, which tenants name; nil allows every address.
	Guard *addressguard.Guard
	// Timeout limits the time for one registry; 0 means 30 seconds. A mirror that does not answer does not reduce the time
	// for the next one.
	Timeout time.Duration
	// CacheSize is the maximum number of cached payloads; 0 means 64.
	CacheSize int
	// TagTTL is how long the digest of a tag is cached; 0 means one minute.
	TagTTL time.Duration
	// Clock is for tests; nil means the real one.
	Clock clock.PassiveClock
	// Keychain provides the credentials of a Lookup without a pull secret; nil means anonymous.
	Keychain authn.Keychain
	// Transport is for tests; nil means one that trusts CABundle.
	Transport http.RoundTripper
}

// Registry is the Provider that reads payloads from container registries. It is safe for concurrent use.
type Registry struct {
	options   Options
	transport http.RoundTripper
	// payloads is keyed by digest and credentials: a user without permission to pull an image must not read it from the
	// cache either.
	payloads *lru.Cache
	labels   *lru.Cache
	tags     *lru.Cache
}

type cacheKey struct {
	image   string
	secrets [sha256.Size]byte
}

type resolvedTag struct {
	digest v1.Hash
	until  time.Time
}

// NewRegistry returns a Registry. It fails if the CA bundle contains no certificate.
func NewRegistry(o Options) (*Registry, error) {
	setDefaults(&o)
	transport := o.Transport
	if transport == nil {
		t, err := imageregistry.NewTransport(o.CABundle, o.Insecure)
		if err != nil {
			return nil, err
		}
		imageregistry.Restrict(t, o.Guard)
		transport = t
	}
	return &Registry{
		options:   o,
		transport: transport,
		payloads:  lru.New(o.CacheSize),
		labels:    lru.New(o.CacheSize),
		tags:      lru.New(o.CacheSize),
	}, nil
}

func setDefaults(o *Options) {
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.CacheSize == 0 {
		o.CacheSize = defaultCacheSize
	}
	if o.TagTTL == 0 {
		o.TagTTL = defaultTagTTL
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
}

// NewTransport returns an HTTP transport for registries; see imageregistry.NewTransport.
func NewTransport(caBundle []byte, insecure bool) (*http.Transport, error) {
	return imageregistry.NewTransport(caBundle, insecure)
}

// Lookup implements Provider.
func (r *Registry) Lookup(ctx context.Context, image string, pullSecret []byte) (*ReleaseImage, error) {
	if err := r.allow(image, image); err != nil {
		return nil, err
	}
	call, err := r.call(image, pullSecret)
	if err != nil {
		return nil, err
	}
	payload, err := fromAnyMirror(ctx, call, r.payloads, (*lookup).pull)
	if err != nil {
		return nil, err
	}
	return New(image, *payload), nil
}

// Labels returns the labels of an image, which need not be a release.
func (r *Registry) Labels(ctx context.Context, image string, pullSecret []byte) (map[string]string, error) {
	call, err := r.call(image, pullSecret)
	if err != nil {
		return nil, err
	}
	labels, err := fromAnyMirror(ctx, call, r.labels, (*lookup).pullLabels)
	if err != nil {
		return nil, err
	}
	return maps.Clone(*labels), nil
}

func (r *Registry) call(image string, pullSecret []byte) (*lookup, error) {
	keychain, err := Keychain(pullSecret)
	if err != nil {
		return nil, &Error{Reason: ReasonInvalidReference, Image: image, Err: err}
	}
	if len(pullSecret) == 0 && r.options.Keychain != nil {
		keychain = r.options.Keychain
	}
	return &lookup{
		Registry: r,
		image:    image,
		secrets:  sha256.Sum256(pullSecret),
		registry: &imageregistry.Client{Transport: r.transport, Keychain: keychain, Insecure: r.options.Insecure},
	}, nil
}

// lookup is the state of one call.
type lookup struct {
	*Registry
	image    string
	secrets  [sha256.Size]byte
	registry *imageregistry.Client
}

// puller reads the requested data of an image.
type puller[T any] func(*lookup, context.Context, name.Digest) (*T, error)

// fromAnyMirror tries all locations of an image. If all fail, it returns the error of the source, which comes last: a
// mirror may be incomplete.
func fromAnyMirror[T any](ctx context.Context, l *lookup, known *lru.Cache, pull puller[T]) (*T, error) {
	var failure error
	for _, spec := range candidates(Override(l.image, l.options.Overrides), l.options.Mirrors) {
		if failure = l.allowMirror(spec); failure != nil {
			continue
		}
		asked, done := context.WithTimeout(ctx, l.options.Timeout)
		found, err := read(asked, l, known, spec, pull)
		done()
		if err == nil {
			return found, nil
		}
		failure = classify(l.image, err)
	}
	return nil, failure
}

func read[T any](ctx context.Context, l *lookup, known *lru.Cache, spec string, pull puller[T]) (*T, error) {
	ref, err := l.registry.Parse(spec)
	if err != nil {
		return nil, &Error{Reason: ReasonInvalidReference, Image: l.image, Err: err}
	}
	digest, err := l.digest(ctx, ref)
	if err != nil {
		return nil, err
	}
	key := cacheKey{image: digest.String(), secrets: l.secrets}
	if cached, ok := known.Get(key); ok {
		return cached.(*T), nil
	}
	found, err := pull(l, ctx, ref.Context().Digest(digest.String()))
	if err != nil {
		return nil, err
	}
	known.Add(key, found)
	return found, nil
}

func (l *lookup) digest(ctx context.Context, ref name.Reference) (v1.Hash, error) {
	if d, ok := ref.(name.Digest); ok {
		return v1.NewHash(d.DigestStr())
	}
	key := cacheKey{image: ref.Name(), secrets: l.secrets}
	now := l.options.Clock.Now()
	if cached, ok := l.tags.Get(key); ok && now.Before(cached.(resolvedTag).until) {
		return cached.(resolvedTag).digest, nil
	}
	descriptor, err := l.registry.Head(ctx, ref)
	if err != nil {
		return v1.Hash{}, err
	}
	l.tags.Add(key, resolvedTag{digest: descriptor.Digest, until: now.Add(l.options.TagTTL)})
	return descriptor.Digest, nil
}

func (l *lookup) pull(ctx context.Context, ref name.Digest) (*Payload, error) {
	descriptor, err := l.registry.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	img, multi, err := imageOf(descriptor)
	if err != nil {
		return nil, err
	}
	payload, err := readPayload(imageregistry.Bound(img, ref.String()))
	if err != nil {
		return nil, err
	}
	if multi {
		payload.Architecture = ArchitectureMulti
	}
	payload.Digest = ref.DigestStr()
	for tag, image := range payload.Components {
		payload.Components[tag] = Override(image, l.options.Overrides)
	}
	return &payload, nil
}

func (l *lookup) pullLabels(ctx context.Context, ref name.Digest) (*map[string]string, error) {
	descriptor, err := l.registry.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	img, _, err := imageOf(descriptor)
	if err != nil {
		return nil, err
	}
	file, err := imageregistry.ConfigFile(img, ref.String())
	if err != nil {
		return nil, err
	}
	return &file.Config.Labels, nil
}

// imageOf returns any Linux image of an index, because the payloads of all its architectures have the same content.
// multi counts only Linux images. Other entries, such as the attestation that a builder adds, do not make a payload of
// several architectures.
func imageOf(descriptor *remote.Descriptor) (img v1.Image, multi bool, err error) {
	if !descriptor.MediaType.IsIndex() {
		img, err = descriptor.Image()
		return img, false, err
	}
	index, err := descriptor.ImageIndex()
	if err != nil {
		return nil, false, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, false, err
	}
	linux := slices.DeleteFunc(slices.Clone(manifest.Manifests), func(m v1.Descriptor) bool {
		return !m.MediaType.IsImage() || m.Platform != nil && m.Platform.OS != "linux"
	})
	if len(linux) == 0 {
		return nil, false, fmt.Errorf("%w: its index lists no Linux image", errNotARelease)
	}
	img, err = index.Image(linux[0].Digest)
	return img, len(linux) > 1, err
}
