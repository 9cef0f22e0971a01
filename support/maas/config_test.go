// SPDX-License-Identifier: Apache-2.0

package maas_test

import (
	"encoding/pem"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/maas"
)

func TestEndpoint(t *testing.T) {
	for name, tc := range map[string]struct{ endpoint, want, fails string }{
		"When the endpoint ends in /MAAS, it should append the API path":           {"http://h:5240/MAAS", "http://h:5240/MAAS/api/2.0/", ""},
		"When the endpoint ends in a slash, it should not double it":               {"http://h:5240/MAAS/", "http://h:5240/MAAS/api/2.0/", ""},
		"When the endpoint has the API path, it should not change it":              {"https://h/MAAS/api/2.0/", "https://h/MAAS/api/2.0/", ""},
		"When the endpoint is empty, it should show an example":                    {" ", "", "endpoint is empty"},
		"When the endpoint has no scheme, it should return an error":               {"maas.example.com/MAAS", "", "not an http or https URL"},
		"When the endpoint has a user, it should return an error and not print it": {"http://admin:hunter2@h/MAAS", "", "holds a user"},
		"When the endpoint cannot be parsed, it should not print it":               {"http://admin:hunter2@h:port/MAAS", "", "not a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c, err := maas.NewClient(maas.Config{Endpoint: tc.endpoint, APIKey: key})
			if tc.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.fails)))
				g.Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.Endpoint()).To(Equal(tc.want))
		})
	}
}

func TestConfigFromSecret(t *testing.T) {
	for name, tc := range map[string]struct {
		data  map[string]string
		want  maas.Config
		fails string
	}{
		"When the Secret has our keys, it should read them": {
			data: map[string]string{"MAAS_ENDPOINT": "http://h/MAAS\n", "MAAS_API_KEY": " a:b:c\n", "MAAS_CA_BUNDLE": "pem"},
			want: maas.Config{Endpoint: "http://h/MAAS", APIKey: "a:b:c", CABundle: []byte("pem")},
		},
		"When the Secret uses the other spelling of the keys, it should read them": {
			data: map[string]string{"maas-server-url": "http://h/MAAS", "maas-api-key": "a:b:c"},
			want: maas.Config{Endpoint: "http://h/MAAS", APIKey: "a:b:c", CABundle: []byte{}},
		},
		"When keys are missing, it should name them":                           {data: nil, fails: "lacks MAAS_ENDPOINT and MAAS_API_KEY"},
		"When the API key is malformed, it should not print it":                {data: map[string]string{"MAAS_ENDPOINT": "http://h/MAAS", "MAAS_API_KEY": "hunter2"}, fails: "MAAS_API_KEY: the MAAS API key has 1 parts"},
		"When the endpoint is malformed, it should name its key in the Secret": {data: map[string]string{"MAAS_ENDPOINT": "h", "MAAS_API_KEY": "a:b:c"}, fails: "MAAS_ENDPOINT: "},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			data := map[string][]byte{}
			for k, v := range tc.data {
				data[k] = []byte(v)
			}
			got, err := maas.ConfigFromSecret(data)
			if tc.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.fails)))
				g.Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestTLS(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewTLSServer(body(`{"version": "3.6.5"}`))
	t.Cleanup(server.Close)
	_, err := newClient(t, maas.Config{Endpoint: server.URL}).GetVersion(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("certificate signed by unknown authority")))
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	version, err := newClient(t, maas.Config{Endpoint: server.URL, CABundle: ca}).GetVersion(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version.Version).To(Equal("3.6.5"))
	_, err = maas.NewClient(maas.Config{Endpoint: server.URL, APIKey: key, CABundle: []byte("nonsense")})
	g.Expect(err).To(MatchError(ContainSubstring("must be PEM")))
}
