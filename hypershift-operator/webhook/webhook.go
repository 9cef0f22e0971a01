// Package webhook sets those defaults of HostedClusters and NodePools that depend on other objects of the cluster, so that no
// schema can hold them. Nothing relies on it for safety.
package webhook

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/openshift/hypershift/support/defaultingwebhook"
)

// Options say where the webhooks are served.
type Options struct {
	// Namespace is the operator's own: it holds the Service that the certificate is for, and the certificate's Secrets.
	Namespace string
	// Port is what the server listens on; zero means defaultingwebhook.Port.
	Port int
	// Clock tells when certificates have to be renewed.
	Clock clock.PassiveClock
}

// Setup adds the server of the webhooks and the controller of its certificate to the manager. Every replica serves, leader
// or not.
func Setup(mgr ctrl.Manager, o Options) error {
	certificate := &Certificate{Client: mgr.GetClient(), Clock: o.Clock, Namespace: o.Namespace}
	if o.Port == 0 {
		o.Port = defaultingwebhook.Port
	}
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{
		Port: o.Port,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.MinVersion = tls.VersionTLS12
			c.GetCertificate = certificate.Serving
		}},
	})
	for path, hook := range hooks(mgr.GetAPIReader()) {
		server.Register(path, hook)
	}
	if err := errors.Join(mgr.Add(server), certificate.SetupWithManager(mgr)); err != nil {
		return fmt.Errorf("setting up the defaulting webhook: %w", err)
	}
	return nil
}

func hooks(cluster client.Reader) map[string]http.Handler {
	return map[string]http.Handler{
		defaultingwebhook.HostedClusterPath: &admission.Webhook{Handler: handler{cluster, hostedClusterDefaults}},
		defaultingwebhook.NodePoolPath:      &admission.Webhook{Handler: handler{cluster, nodePoolDefaults}},
	}
}
