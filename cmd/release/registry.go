// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/spf13/pflag"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/release/transfer"
	"github.com/openshift/hypershift/support/imageregistry"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// answerTimeout is how long a registry may take to answer; some process a large upload first.
const answerTimeout = 5 * time.Minute

// registryFlags holds the flags for the access to registries.
type registryFlags struct {
	caFile, pullSecretFile string
	insecure               bool
}

func (r *registryFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&r.caFile, "ca-file", "", "file with CAs of the registries (PEM), besides the system's")
	flags.StringVar(&r.pullSecretFile, "pull-secret", "",
		"file with credentials of the registries (.dockerconfigjson); by default what docker login or podman login wrote")
	flags.BoolVar(&r.insecure, "insecure", false, "accept any certificate, and plain HTTP")
}

func (r *registryFlags) read() (ca, pullSecret []byte, err error) {
	if r.caFile != "" {
		if ca, err = os.ReadFile(r.caFile); err != nil {
			return nil, nil, fmt.Errorf("--ca-file: %w", err)
		}
	}
	if r.pullSecretFile != "" {
		if pullSecret, err = os.ReadFile(r.pullSecretFile); err != nil {
			return nil, nil, fmt.Errorf("--pull-secret: %w", err)
		}
	}
	return ca, pullSecret, nil
}

// client returns a registry client for the flags. Its errors are usage errors.
func (r *registryFlags) client() (*transfer.Client, error) {
	ca, pullSecret, err := r.read()
	if err != nil {
		return nil, exit.UsageError(err)
	}
	transport, err := imageregistry.NewTransport(ca, r.insecure)
	if err != nil {
		return nil, exit.UsageError(fmt.Errorf("--ca-file: %w", err))
	}
	transport.ResponseHeaderTimeout = answerTimeout
	client := &transfer.Client{Transport: transport, Keychain: authn.DefaultKeychain, Insecure: r.insecure}
	if len(pullSecret) > 0 {
		if client.Keychain, err = releaseinfo.Keychain(pullSecret); err != nil {
			return nil, exit.UsageError(fmt.Errorf("--pull-secret: %w", err))
		}
	}
	return client, nil
}

// downloads returns the HTTP client for published programs. It always verifies certificates, since the checksums come
// from the same servers.
func (r *registryFlags) downloads() (*http.Client, error) {
	ca, _, err := r.read()
	if err != nil {
		return nil, exit.UsageError(err)
	}
	transport, err := imageregistry.NewTransport(ca, false)
	if err != nil {
		return nil, exit.UsageError(fmt.Errorf("--ca-file: %w", err))
	}
	return &http.Client{Transport: transport}, nil
}

// lookup reads a release payload.
func (r *registryFlags) lookup(ctx context.Context, image string) (*releaseinfo.ReleaseImage, error) {
	ca, pullSecret, err := r.read()
	if err != nil {
		return nil, exit.UsageError(err)
	}
	return r.lookupWith(ctx, image, ca, pullSecret)
}

func (r *registryFlags) lookupWith(ctx context.Context, image string, ca, pullSecret []byte) (*releaseinfo.ReleaseImage, error) {
	provider, err := releaseinfo.NewRegistry(releaseinfo.Options{CABundle: ca, Insecure: r.insecure, Keychain: authn.DefaultKeychain})
	if err != nil {
		return nil, exit.UsageError(fmt.Errorf("--ca-file: %w", err))
	}
	return provider.Lookup(ctx, image, pullSecret)
}

// Registry reads release payloads for the commands of other packages.
type Registry struct{ flags registryFlags }

// AddFlags adds the flags for the access to registries.
func (r *Registry) AddFlags(flags *pflag.FlagSet) { r.flags.addFlags(flags) }

// Lookup reads a release payload. pullSecret is the content of a .dockerconfigjson, which the flag --pull-secret
// replaces; nil means what docker login or podman login wrote.
func (r *Registry) Lookup(ctx context.Context, image string, pullSecret []byte) (*releaseinfo.ReleaseImage, error) {
	ca, given, err := r.flags.read()
	if err != nil {
		return nil, exit.UsageError(err)
	}
	if len(given) > 0 {
		pullSecret = given
	}
	return r.flags.lookupWith(ctx, image, ca, pullSecret)
}
