// SPDX-License-Identifier: Apache-2.0

// Package identity turns Secrets and environment variables into MAAS clients, and keeps one client and one inventory for
// each MAAS and user.
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

// rereadAfter is how soon a changed Secret is noticed.
const rereadAfter = 10 * time.Second

// Identity is one user of one MAAS.
type Identity struct {
	// Client calls MAAS.
	Client *maas.Client
	// Inventory shares what is read of MAAS.
	Inventory *inventory.Inventory
	// SetAside remembers machines on which deployments failed.
	SetAside *inventory.SetAside
}

// MissingError tells that there are no credentials, or none that can be read.
type MissingError struct{ text string }

// Error says where the credentials were looked for and what is wrong with them.
func (e *MissingError) Error() string { return e.text }

// IsMissing tells that credentials are absent or malformed, as opposed to refused by MAAS.
func IsMissing(err error) bool {
	var missing *MissingError
	return errors.As(err, &missing)
}

// Options say where credentials come from.
type Options struct {
	// Reader reads Secrets. It should not cache: a Secret is read every ten seconds at most.
	Reader client.Reader
	// Secret is that of the process; an empty name means none.
	Secret client.ObjectKey
	// Environment is what MAAS_ENDPOINT, MAAS_API_KEY and MAAS_CA_BUNDLE hold, used when there is no Secret.
	Environment map[string][]byte
	// Template holds the client's time-outs, metrics, transport and clock.
	Template maas.Config
	// Ages say how old what is read of a MAAS may be.
	Ages  inventory.Ages
	Clock clock.PassiveClock
}

type read struct {
	at   time.Time
	data map[string][]byte
	err  error
}

// Resolver finds the identity to use. It is safe for concurrent use.
type Resolver struct {
	options Options

	mu         sync.Mutex
	reads      map[client.ObjectKey]read
	identities map[string]*Identity
}

// NewResolver returns a resolver that has read nothing yet.
func NewResolver(options Options) *Resolver {
	return &Resolver{options: options, reads: map[client.ObjectKey]read{}, identities: map[string]*Identity{}}
}

// For returns the identity of a Secret; an empty name means that of the process. A changed Secret gives another identity.
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
		return nil, err // Who asked gave up, which says nothing of the Secret.
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

// fingerprint tells configurations apart without keeping the key in a map that a dump would print.
func fingerprint(cfg maas.Config) string {
	h := sha256.New()
	for _, part := range []string{cfg.Endpoint, cfg.APIKey, string(cfg.CABundle)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
