// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/hypershift/support/objectstore/storetest"
)

func publicPEM(t *testing.T, key any) (file []byte, id string) {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(der)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), base64.RawURLEncoding.EncodeToString(sum[:])
}

func number(t *testing.T, text string) *big.Int {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return new(big.Int).SetBytes(raw)
}

func TestIssuerDocuments(t *testing.T) {
	g := NewWithT(t)
	first, err := rsa.GenerateKey(rand.Reader, 2048)
	g.Expect(err).NotTo(HaveOccurred())
	former, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	firstPEM, firstID := publicPEM(t, &first.PublicKey)
	formerPEM, formerID := publicPEM(t, &former.PublicKey)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "sa-signing-key"}, Data: map[string][]byte{"service-account.pub": append(firstPEM, formerPEM...)},
	}
	p, _ := withBucket(t, storetest.New(t))
	cluster := testCluster()
	cluster.HostedCluster.Spec.IssuerURL = "https://oidc.s3.eu-west-1.amazonaws.com/demo-abcde"

	documents, _, err := p.IssuerDocuments(t.Context(), testClient(t, secret), cluster)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(documents).To(HaveLen(2))
	about := map[string]any{}
	g.Expect(json.Unmarshal(documents["/.well-known/openid-configuration"], &about)).To(Succeed())
	if diff := cmp.Diff(map[string]any{
		"issuer": "https://oidc.s3.eu-west-1.amazonaws.com/demo-abcde", "jwks_uri": "https://oidc.s3.eu-west-1.amazonaws.com/demo-abcde/openid/v1/jwks",
		"response_types_supported": []any{"id_token"}, "subject_types_supported": []any{"public"}, "id_token_signing_alg_values_supported": []any{"RS256", "ES256"},
	}, about); diff != "" {
		t.Errorf("discovery (-want +got):\n%s", diff)
	}
	var set struct{ Keys []map[string]string }
	g.Expect(json.Unmarshal(documents["/openid/v1/jwks"], &set)).To(Succeed())
	g.Expect(set.Keys).To(HaveLen(2), "tokens of the former key are still around")
	g.Expect(set.Keys[0]).To(And(HaveKeyWithValue("kid", firstID), HaveKeyWithValue("kty", "RSA"), HaveKeyWithValue("alg", "RS256"), HaveKeyWithValue("use", "sig"),
		HaveKeyWithValue("e", "AQAB"), Not(HaveKey("crv"))))
	g.Expect(number(t, set.Keys[0]["n"])).To(Equal(first.N))
	g.Expect(set.Keys[1]).To(And(HaveKeyWithValue("kid", formerID), HaveKeyWithValue("kty", "EC"), HaveKeyWithValue("crv", "P-256"), Not(HaveKey("n"))))
	point, err := former.PublicKey.Bytes()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(number(t, set.Keys[1]["x"])).To(Equal(new(big.Int).SetBytes(point[1:33])))
	g.Expect(number(t, set.Keys[1]["y"])).To(Equal(new(big.Int).SetBytes(point[33:])))
}

func TestIssuersThatAreNotPublished(t *testing.T) {
	key := func(content string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "sa-signing-key"}, Data: map[string][]byte{"service-account.pub": []byte(content)},
		}
	}
	p, _ := withBucket(t, storetest.New(t))
	for _, tc := range []struct {
		name, issuer string
		platform     *Platform
		secret       *corev1.Secret
		says, err    string
	}{
		{"When the operator has no bucket, it should report nothing", "https://oidc.example/demo-abcde", &Platform{bucket: &bucket{}}, key(""), "", ""},
		{"When the issuer is not served from the bucket, it should report which URL is expected", "https://kubernetes.default.svc", p, key(""), "ends with /demo-abcde", ""},
		{"When there is no signing key yet, it should wait", "https://oidc.example/demo-abcde", p, nil, "Waiting for the control plane", ""},
		{"When the signing key is invalid, it should name the Secret", "https://oidc.example/demo-abcde", p, key("nonsense"), "", "Secret clusters-demo/sa-signing-key"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := testClient(t)
			if tc.secret != nil {
				c = testClient(t, tc.secret)
			}
			cluster := testCluster()
			cluster.HostedCluster.Spec.IssuerURL = tc.issuer
			documents, told, err := tc.platform.IssuerDocuments(t.Context(), c, cluster)
			g.Expect(documents).To(BeEmpty())
			g.Expect(told.Message).To(ContainSubstring(tc.says))
			g.Expect(told.Type == "").To(Equal(tc.says == ""))
			if told.Type != "" {
				g.Expect(told.Status).To(Equal(metav1.ConditionUnknown))
			}
			if tc.err == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
		})
	}
}
