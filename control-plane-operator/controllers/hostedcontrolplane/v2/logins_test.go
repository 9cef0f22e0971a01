// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/pki"
)

// TestLogins checks which users a real API server accepts, by tokens of an issuer and by certificates of the user's
// signer.
func TestLogins(t *testing.T) {
	findBinaries(t)
	issuer, signer := newIssuer(t), fixture.CA(t, "house")
	hcp := controlPlane(func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{
			APIServer:      &configv1.APIServerSpec{ClientCA: configv1.ConfigMapNameReference{Name: "house-ca"}},
			Authentication: &configv1.AuthenticationSpec{Type: configv1.AuthenticationTypeOIDC, OIDCProviders: []configv1.OIDCProvider{issuer.provider()}},
		}
	})
	m := newMachine(t, hcp, bundle("issuer-ca", issuer.ca()), bundle("house-ca", string(signer.CertPEM)))
	m.start(Kubernetes(Config{})[:2])

	good := map[string]any{"iss": issuer.URL, "aud": "demo", "sub": "ann", "hd": "example.com", "roles": []string{"dev"}, "team": "metal", "oid": "77"}
	with := func(claim string, value any) string {
		claims := maps.Clone(good)
		claims[claim] = value
		return issuer.token(t, claims)
	}
	m.waitForTokens(with("hd", "example.com"))
	tokens := map[string]struct {
		token string
		want  *authenticationv1.UserInfo
	}{
		"every required claim": {with("sub", "ann"), &authenticationv1.UserInfo{
			Username: "sso:ann", UID: "77", Groups: []string{"sso:dev", "system:authenticated"},
			Extra: map[string]authenticationv1.ExtraValue{"example.com/team": {"metal"}},
		}},
		"a claim that a CEL rule rejects":      {with("hd", "elsewhere.example"), nil},
		"a user that a CEL rule rejects":       {with("sub", "root"), nil},
		"another audience":                     {with("aud", "other"), nil},
		"a signature of another issuer":        {newIssuer(t).token(t, good), nil},
		"no claim for the username expression": {with("sub", nil), nil},
		"an empty value for a required claim":  {with("hd", ""), nil},
	}
	for name, tc := range tokens {
		t.Run("When a token has "+name+" it should be accepted or rejected", func(t *testing.T) {
			config := rest.AnonymousClientConfig(m.guestConfig())
			config.BearerToken = tc.token
			expectLogin(t, config, tc.want)
		})
	}
	for name, tc := range map[string]struct {
		signer *pki.KeyPair
		want   *authenticationv1.UserInfo
	}{
		"the user's own signer":           {signer, &authenticationv1.UserInfo{Username: "bob", Groups: []string{"ops", "system:authenticated"}}},
		"another signer of the same name": {fixture.CA(t, "house"), nil},
	} {
		t.Run("When a client certificate is from "+name+" it should be accepted or rejected", func(t *testing.T) {
			leaf, err := tc.signer.Issue(pki.Leaf{Name: pki.Name{CommonName: "bob", Organizations: []string{"ops"}}, Client: true}, pki.Lifetime{}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			config := rest.AnonymousClientConfig(m.guestConfig())
			config.CertData, config.KeyData = leaf.CertPEM, leaf.KeyPEM
			expectLogin(t, config, tc.want)
		})
	}
}

func bundle(name, certificates string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"ca-bundle.crt": certificates},
	}
}

// waitForTokens waits until the API server has loaded the issuer's keys, which happens some time after its start.
func (m *machine) waitForTokens(token string) {
	m.t.Helper()
	config := rest.AnonymousClientConfig(m.guestConfig())
	config.BearerToken = token
	var last error
	err := wait.PollUntilContextTimeout(m.t.Context(), 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, last = whoAmI(ctx, config)
		return last == nil, nil
	})
	if err != nil {
		m.t.Fatalf("no token was ever accepted: %v", last)
	}
}

func whoAmI(ctx context.Context, config *rest.Config) (*authenticationv1.UserInfo, error) {
	review, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().
		Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &review.Status.UserInfo, nil
}

// expectLogin checks that the API server authenticates the client as the expected user, or rejects the client if no
// user is expected.
func expectLogin(t *testing.T, config *rest.Config, want *authenticationv1.UserInfo) {
	t.Helper()
	got, err := whoAmI(t.Context(), config)
	if want == nil {
		if !apierrors.IsUnauthorized(err) {
			t.Fatalf("it let in %v (%v)", got, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	// Ignore what the API server adds for certificates.
	delete(got.Extra, "authentication.kubernetes.io/credential-id")
	if len(got.Extra) == 0 {
		got.Extra = nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("user differs (-want +got):\n%s", diff)
	}
}

// issuer is an OpenID Connect issuer on the local machine.
type issuer struct {
	*httptest.Server
	key *rsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	i := &issuer{Server: httptest.NewTLSServer(mux), key: key}
	t.Cleanup(i.Close)
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{"keys": []map[string]string{{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one",
			"n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	return i
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

func (i *issuer) ca() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}))
}

// provider returns a provider that accepts members of the organization except root.
func (i *issuer) provider() configv1.OIDCProvider {
	return configv1.OIDCProvider{
		Name: "sso",
		Issuer: configv1.TokenIssuer{
			URL: i.URL, Audiences: []configv1.TokenAudience{"demo"}, CertificateAuthority: configv1.ConfigMapNameReference{Name: "issuer-ca"},
		},
		ClaimMappings: configv1.TokenClaimMappings{
			Username: configv1.UsernameClaimMapping{Expression: "'sso:' + claims.sub"},
			Groups:   configv1.PrefixedClaimMapping{TokenClaimMapping: configv1.TokenClaimMapping{Expression: "dyn(claims.roles).map(r, 'sso:' + r)"}},
			UID:      &configv1.TokenClaimOrExpressionMapping{Claim: "oid"},
			Extra:    []configv1.ExtraMapping{{Key: "example.com/team", ValueExpression: "claims.team"}},
		},
		ClaimValidationRules: []configv1.TokenClaimValidationRule{{
			Type: configv1.TokenValidationRuleTypeCEL,
			CEL:  configv1.TokenClaimValidationCELRule{Expression: "claims.hd == 'example.com'", Message: "not of the house"},
		}},
		UserValidationRules: []configv1.TokenUserValidationRule{{Expression: "user.username != 'sso:root'", Message: "nobody is root"}},
	}
}

// token signs claims, which are good for an hour.
func (i *issuer) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	claims = maps.Clone(claims)
	claims["iat"], claims["exp"] = time.Now().Unix(), time.Now().Add(time.Hour).Unix()
	part := func(value any) string {
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	signed := part(map[string]string{"alg": "RS256", "kid": "one"}) + "." + part(claims)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}
