// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/pki"
)

// Paths of an issuer's documents according to OpenID Connect.
const (
	discoveryPath = "/.well-known/openid-configuration"
	keysPath      = "/openid/v1/jwks"
)

var validOIDC = string(hyperv1.ValidOIDCConfiguration)

// IssuerFinalizer returns the finalizer that upstream HyperShift uses too.
func (*Platform) IssuerFinalizer() string { return hyperv1.AWSOIDCDiscoveryFinalizer }

// IssuerDocuments returns the discovery document and the keys, if the operator has a bucket and the issuer's URL ends
// with the cluster's infraID.
func (p *Platform) IssuerDocuments(ctx context.Context, c client.Reader, cluster platform.Cluster) (map[string][]byte, metav1.Condition, error) {
	hc := cluster.HostedCluster
	if !p.bucket.configured() {
		return nil, metav1.Condition{}, nil
	}
	if !strings.HasSuffix(hc.Spec.IssuerURL, "/"+hc.Spec.InfraID) {
		return nil, condition.Unknown(validOIDC, hyperv1.StatusUnknownReason, fmt.Sprintf(
			"The operator publishes only issuers whose URL ends with /%s, the cluster's infraID; "+
				"publish the documents of %s on the server of that URL", hc.Spec.InfraID, hc.Spec.IssuerURL)), nil
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: hosted.ServiceAccountKey}
	if err := c.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return nil, condition.Unknown(validOIDC, hyperv1.StatusUnknownReason, "Waiting for the control plane to make the key that signs service account tokens"), nil
	} else if err != nil {
		return nil, metav1.Condition{}, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	keys, err := keySet(secret.Data[pki.ServiceAccountPublicKey])
	if err != nil {
		return nil, metav1.Condition{}, fmt.Errorf("key %s of Secret %s: %w", pki.ServiceAccountPublicKey, key, err)
	}
	documents, err := issuerDocuments(hc.Spec.IssuerURL, keys)
	return documents, metav1.Condition{}, err
}

// discovery is the discovery document of an issuer in OpenID Connect.
type discovery struct {
	Issuer     string   `json:"issuer"`
	Keys       string   `json:"jwks_uri"`
	Responses  []string `json:"response_types_supported"`
	Subjects   []string `json:"subject_types_supported"`
	Algorithms []string `json:"id_token_signing_alg_values_supported"`
}

// jwk is a public key in the format of RFC 7517.
type jwk struct {
	Use       string `json:"use"`
	Type      string `json:"kty"`
	ID        string `json:"kid"`
	Algorithm string `json:"alg"`
	N         string `json:"n,omitempty"`
	E         string `json:"e,omitempty"`
	Curve     string `json:"crv,omitempty"`
	X         string `json:"x,omitempty"`
	Y         string `json:"y,omitempty"`
}

func issuerDocuments(issuer string, keys []jwk) (map[string][]byte, error) {
	var algorithms []string
	seen := map[string]bool{}
	for _, key := range keys {
		if !seen[key.Algorithm] {
			algorithms, seen[key.Algorithm] = append(algorithms, key.Algorithm), true
		}
	}
	about, err := json.MarshalIndent(discovery{
		Issuer: issuer, Keys: issuer + keysPath, Responses: []string{"id_token"}, Subjects: []string{"public"}, Algorithms: algorithms,
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the discovery document of %s: %w", issuer, err)
	}
	set, err := json.MarshalIndent(map[string][]jwk{"keys": keys}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the keys of %s: %w", issuer, err)
	}
	return map[string][]byte{discoveryPath: about, keysPath: set}, nil
}

// keySet returns the public keys of a PEM file: the current signing key, and earlier ones whose tokens may still be in
// use.
func keySet(file []byte) ([]jwk, error) {
	var keys []jwk
	for block, rest := pem.Decode(bytes.TrimSpace(file)); block != nil; block, rest = pem.Decode(rest) {
		public, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("public key %d: %w", len(keys)+1, err)
		}
		key, err := publicJWK(public)
		if err != nil {
			return nil, fmt.Errorf("public key %d: %w", len(keys)+1, err)
		}
		// The API server uses the same key ID in the tokens that it signs.
		id := sha256.Sum256(block.Bytes)
		key.Use, key.ID = "sig", encode(id[:])
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("it has no public key (PEM)")
	}
	return keys, nil
}

func publicJWK(public any) (jwk, error) {
	switch key := public.(type) {
	case *rsa.PublicKey:
		return jwk{Type: "RSA", Algorithm: "RS256", N: encode(key.N.Bytes()), E: encode(big.NewInt(int64(key.E)).Bytes())}, nil
	case *ecdsa.PublicKey:
		algorithm, known := map[string]string{"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}[key.Params().Name]
		if !known {
			return jwk{}, fmt.Errorf("the API server does not sign with a key on curve %s", key.Params().Name)
		}
		point, err := key.Bytes() // 4, x, y
		if err != nil {
			return jwk{}, err
		}
		size := (len(point) - 1) / 2
		return jwk{Type: "EC", Algorithm: algorithm, Curve: key.Params().Name, X: encode(point[1 : 1+size]), Y: encode(point[1+size:])}, nil
	}
	return jwk{}, fmt.Errorf("the API server does not sign with a key of type %T", public)
}

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }
