// SPDX-License-Identifier: Apache-2.0

package releaseinfo

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// pullSecret finds the credentials of a registry as the kubelet does: the longest matching key of "auths" wins, so
// that registry.example/team may have other credentials than registry.example.
type pullSecret map[string]authn.AuthConfig

var errPullSecret = errors.New("the pull secret is not a valid .dockerconfigjson")

// Keychain returns a keychain with the credentials of a .dockerconfigjson. An empty one yields a keychain without
// credentials. The error does not contain any of the content.
func Keychain(dockerConfigJSON []byte) (authn.Keychain, error) {
	if len(dockerConfigJSON) == 0 {
		return pullSecret{}, nil
	}
	var cfg struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	if err := json.Unmarshal(dockerConfigJSON, &cfg); err != nil {
		// The JSON error may quote the content, so it is left out.
		return nil, errPullSecret
	}
	secret := pullSecret{}
	for key, auth := range cfg.Auths {
		secret[normalizeKey(key)] = auth
	}
	return secret, nil
}

// Resolve implements authn.Keychain.
func (s pullSecret) Resolve(target authn.Resource) (authn.Authenticator, error) {
	for key := target.String(); key != ""; key = parent(key) {
		if auth, ok := s[key]; ok {
			return authn.FromConfig(auth), nil
		}
	}
	return authn.Anonymous, nil
}

func parent(key string) string {
	return key[:max(strings.LastIndex(key, "/"), 0)]
}

func normalizeKey(key string) string {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	key = strings.TrimSuffix(key, "/")
	key = strings.TrimSuffix(strings.TrimSuffix(key, "/v1"), "/v2")
	if key == "docker.io" || key == "registry-1.docker.io" {
		return name.DefaultRegistry
	}
	return key
}
