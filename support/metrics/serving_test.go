// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/hypershift/support/metrics"
	"github.com/openshift/hypershift/support/metrics/metricstest"
	"github.com/openshift/hypershift/support/testenv"
)

func TestServing(t *testing.T) {
	g, config := NewWithT(t), testenv.Start(t)
	c, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	made, err := c.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "stranger", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	prometheus, stranger := metricstest.Reader(t, config), made.Status.Token

	options := metrics.Serving(":0", config)
	g.Expect(options.SecureServing).To(BeTrue())
	secured := &tls.Config{}
	for _, set := range options.TLSOpts {
		set(secured)
	}
	g.Expect(secured.MinVersion).To(BeEquivalentTo(tls.VersionTLS12))
	filter, err := options.FilterProvider(nil, nil)
	g.Expect(err).NotTo(HaveOccurred())
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("secret_metric 1")) }))
	g.Expect(err).NotTo(HaveOccurred())

	ask := func(authorization string) *httptest.ResponseRecorder {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		if authorization != "" {
			request.Header.Set("Authorization", authorization)
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer
	}
	for _, tt := range []struct {
		name, authorization string
		code                int
	}{
		{"a client without credentials", "", http.StatusUnauthorized},
		{"a client with an empty token", "Bearer ", http.StatusUnauthorized},
		{"a client with a password", "Basic " + prometheus, http.StatusUnauthorized},
		{"a client with an invalid token", "Bearer abc", http.StatusUnauthorized},
		{"a service account without rights", "Bearer " + stranger, http.StatusForbidden},
	} {
		t.Run("When "+tt.name+" requests metrics, it should return none", func(t *testing.T) {
			g := NewWithT(t)
			// A busy API server may fail to review the token within ten seconds. The status code is then a different one.
			g.Eventually(func() int {
				answer := ask(tt.authorization)
				g.Expect(answer.Body.String()).NotTo(ContainSubstring("secret_metric"))
				return answer.Code
			}, "2m").Should(Equal(tt.code))
		})
	}
	t.Run("When an authorized service account requests metrics, it should return them", func(t *testing.T) {
		// The API server needs a moment to observe a binding, and caches an earlier answer for half a minute.
		NewWithT(t).Eventually(func() string { return ask("Bearer " + prometheus).Body.String() }, "2m").Should(Equal("secret_metric 1"))
	})
}
