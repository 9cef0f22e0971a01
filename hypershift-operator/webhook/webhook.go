// SPDX-License-Identifier: Apache-2.0

// Package webhook answers the API server: it sets those defaults of HostedClusters and NodePools that depend on other objects of the
// cluster, so that no schema can hold them, and converts objects of Cluster API between their versions. Nothing relies on the defaults
// for safety.
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

	"github.com/openshift/hypershift/support/operatorwebhook"
)

// Options say where the webhooks are served.
type Options struct {
	// Namespace is the operator's own: it holds the Service that the certificate is for, and the certificate's Secrets.
	Namespace string
	// Port is what the server listens on.
	Port int
	// Defaults says whether defaults are set as well. Without, objects are only converted.
	Defaults bool
	// Clock tells when certificates have to be renewed.
	Clock clock.PassiveClock
}

// Setup adds the server of the webhooks and the controller of its certificate to the manager. Every replica serves, leader
// or not.
func Setup(mgr ctrl.Manager, o Options) error {
	certificate := &Certificate{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Clock: o.Clock, Namespace: o.Namespace}
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{
		Port: o.Port,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.MinVersion = tls.VersionTLS12
			// Every pod may call it. HTTP/2 has had defects by which one client stops a server.
			c.NextProtos = []string{"http/1.1"}
			c.GetCertificate = certificate.Serving
		}},
	})
	convert, err := newConverter(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	server.Register(operatorwebhook.ConversionPath, convert)
	if o.Defaults {
		for path, hook := range hooks(mgr.GetAPIReader()) {
			server.Register(path, hook)
		}
	}
	if err := errors.Join(mgr.Add(server), certificate.SetupWithManager(mgr)); err != nil {
		return fmt.Errorf("setting up the webhooks: %w", err)
	}
	return nil
}

func hooks(cluster client.Reader) map[string]http.Handler {
	return map[string]http.Handler{
		operatorwebhook.HostedClusterPath: &admission.Webhook{Handler: handler{cluster, hostedClusterDefaults}},
		operatorwebhook.NodePoolPath:      &admission.Webhook{Handler: handler{cluster, nodePoolDefaults}},
	}
}
