// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Serving returns the options with which every program of this product serves its metrics. The endpoint uses TLS with a
// self-signed certificate. It answers clients that may `get` the path in the cluster of config, according to
// TokenReview and SubjectAccessReview. The filter of controller-runtime does the same, but depends on all libraries of
// an API server.
func Serving(address string, config *rest.Config) metricsserver.Options {
	return metricsserver.Options{
		BindAddress: address, SecureServing: true,
		// Disable HTTP/2: it lets a client without rights open streams without a limit on their rate.
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.MinVersion, c.NextProtos = tls.VersionTLS12, []string{"http/1.1"} }},
		FilterProvider: func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
			reviews, err := kubernetes.NewForConfig(config)
			if err != nil {
				return nil, fmt.Errorf("creating the client for TokenReviews and SubjectAccessReviews: %w", err)
			}
			return func(log logr.Logger, handler http.Handler) (http.Handler, error) {
				return &guarded{reviews: reviews, log: log, handler: handler}, nil
			}, nil
		},
	}
}

// guarded wraps a handler for clients that may `get` its path.
type guarded struct {
	reviews kubernetes.Interface
	log     logr.Logger
	handler http.Handler
}

// ServeHTTP implements http.Handler.
func (g *guarded) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	token, bears := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	if !bears || token == "" {
		http.Error(w, "metrics are for service accounts with a token", http.StatusUnauthorized)
		return
	}
	user, err := g.userOf(request, token)
	if err != nil {
		g.log.Error(err, "Reviewing a token")
		http.Error(w, "the API server cannot review access to metrics; retry later", http.StatusServiceUnavailable)
		return
	}
	if user == nil {
		http.Error(w, "the token is not valid", http.StatusUnauthorized)
		return
	}
	may, err := g.may(request, user)
	switch {
	case err != nil:
		g.log.Error(err, "Reviewing access", "user", user.Username)
		http.Error(w, "the API server cannot review access to metrics; retry later", http.StatusServiceUnavailable)
	case !may:
		http.Error(w, fmt.Sprintf("%s may not get %s: bind ClusterRole hypershift-metrics-reader", user.Username, request.URL.Path), http.StatusForbidden)
	default:
		g.handler.ServeHTTP(w, request)
	}
}

// userOf returns the user of a token; nil if the token is not valid.
func (g *guarded) userOf(request *http.Request, token string) (*authenticationv1.UserInfo, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	review, err := g.reviews.AuthenticationV1().TokenReviews().Create(request.Context(), review, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	if !review.Status.Authenticated {
		return nil, nil
	}
	return &review.Status.User, nil
}

func (g *guarded) may(request *http.Request, user *authenticationv1.UserInfo) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: request.URL.Path, Verb: "get"},
	}}
	review, err := g.reviews.AuthorizationV1().SubjectAccessReviews().Create(request.Context(), review, metav1.CreateOptions{})
	return err == nil && review.Status.Allowed, err
}
