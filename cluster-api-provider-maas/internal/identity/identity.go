// SPDX-License-Identifier: Apache-2.0

// Package identity creates MAAS clients from Secrets and environment variables. It caches one client and one inventory
// for each MAAS and user.
package identity

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cluster-api-provider-maas/internal/inventory"
	"github.com/openshift/hypershift/support/maas"
)

// rereadAfter is the maximum age of a cached Secret, and so the delay until a change takes effect.
const rereadAfter = 10 * time.Second

// Identity is one MAAS user.
type Identity struct {
	// Client calls the MAAS API.
	Client *maas.Client
	// Inventory caches reads from MAAS.
	Inventory *inventory.Inventory
	// SetAside holds the machines on which deployments failed.
	SetAside *inventory.SetAside
}

// MissingError reports that the credentials are missing or malformed.
type MissingError struct{ text string }

// Error returns the source of the credentials and the problem.
func (e *MissingError) Error() string { return e.text }

// IsMissing reports whether the credentials are missing or malformed. It is false if MAAS rejected them.
func IsMissing(err error) bool {
	var missing *MissingError
	return errors.As(err, &missing)
}

// Options holds the sources of credentials and the settings of the clients.
type Options struct {
	// Reader reads Secrets, preferably without a cache. Each Secret is read at most once every ten seconds.
	Reader client.Reader
	// Secret is the default credentials Secret of the process; an empty name means none.
	Secret client.ObjectKey
	// Environment holds MAAS_ENDPOINT, MAAS_API_KEY and MAAS_CA_BUNDLE. It is used when there is no Secret.
	Environment map[string][]byte
	// Template holds the timeouts, metrics, transport and clock of the clients.
	Template maas.Config
	// Ages holds the maximum ages of cached reads from MAAS.
	Ages  inventory.Ages
	Clock clock.PassiveClock
}

type read struct {
	at   time.Time
	data map[string][]byte
	err  error
}

// Resolver resolves credentials Secrets to identities. It is safe for concurrent use.
type Resolver struct {
	options Options

	mu         sync.Mutex
	reads      map[client.ObjectKey]read
	identities map[string]*Identity
}

// NewResolver returns a resolver with an empty cache.
func NewResolver(options Options) *Resolver {
	return &Resolver{options: options, reads: map[client.ObjectKey]read{}, identities: map[string]*Identity{}}
}

// For returns the identity of a Secret; an empty name means the default credentials of the process. After a change of
// the Secret, it returns a new identity.
func (r *Resolver) For(ctx context.Context, secret client.ObjectKey) (*Identity, error) {
	data, source, err := r.credentials(ctx, secret)
	if err != nil {
		return nil, err
	}
	cfg, err := maas.ConfigFromSecret(data)
	if err != nil {
		return nil, &MissingError{fmt.Sprintf("the MAAS credentials of %s are unusable: %v", source, err)}
	}
	return r.identity(cfg, source)
}

func (r *Resolver) credentials(ctx context.Context, secret client.ObjectKey) (map[string][]byte, string, error) {
	if secret.Name == "" {
		secret = r.options.Secret
	}
	if secret.Name == "" {
		return r.options.Environment, "the environment", nil
	}
	source := "Secret " + secret.String()
	data, err := r.read(ctx, secret)
	if apierrors.IsNotFound(err) {
		return nil, source, &MissingError{fmt.Sprintf("%s with the MAAS credentials does not exist: create it with the keys %s and %s",
			source, maas.SecretKeyEndpoint, maas.SecretKeyAPIKey)}
	}
	if err != nil {
		return nil, source, fmt.Errorf("reading the MAAS credentials in %s: %w", source, err)
	}
	return data, source, nil
}

func (r *Resolver) read(ctx context.Context, key client.ObjectKey) (map[string][]byte, error) {
	r.mu.Lock()
	last, ok := r.reads[key]
	r.mu.Unlock()
	if ok && r.options.Clock.Since(last.at) < rereadAfter {
		return last.data, last.err
	}
	secret := &corev1.Secret{}
	err := r.options.Reader.Get(ctx, key, secret)
	if err != nil && ctx.Err() != nil {
		return nil, err // Do not cache: the context was cancelled.
	}
	r.mu.Lock()
	r.reads[key] = read{at: r.options.Clock.Now(), data: secret.Data, err: err}
	r.mu.Unlock()
	return secret.Data, err
}

func (r *Resolver) identity(cfg maas.Config, source string) (*Identity, error) {
	digest := fingerprint(cfg)
	r.mu.Lock()
	defer r.mu.Unlock()
	if id, ok := r.identities[digest]; ok {
		return id, nil
	}
	template := r.options.Template
	template.Endpoint, template.APIKey, template.CABundle = cfg.Endpoint, cfg.APIKey, cfg.CABundle
	c, err := maas.NewClient(template)
	if err != nil {
		return nil, &MissingError{fmt.Sprintf("the MAAS credentials of %s are unusable: %v", source, err)}
	}
	id := &Identity{Client: c, Inventory: inventory.New(c, r.options.Clock, r.options.Ages), SetAside: inventory.NewSetAside(r.options.Clock)}
	r.identities[digest] = id
	return id, nil
}

// fingerprint returns a hash that identifies a configuration. A dump of the map must not reveal the API key.
func fingerprint(cfg maas.Config) string {
	h := sha256.New()
	for _, part := range []string{cfg.Endpoint, cfg.APIKey, string(cfg.CABundle)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
