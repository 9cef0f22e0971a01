// SPDX-License-Identifier: Apache-2.0

// Package webhook implements admission and conversion webhooks. It sets those defaults of HostedClusters and NodePools
// that depend on other objects of the cluster, which a schema cannot express. It also converts objects of Cluster API
// between their versions. No security property depends on the defaults.
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

// Options configure where the webhooks are served.
type Options struct {
	// Namespace is the operator's own namespace. It contains the webhook's Service and the certificate's Secrets.
	Namespace string
	// Port is the port of the webhook server.
	Port int
	// Defaults enables the defaulting webhooks. Without it, the server only converts objects.
	Defaults bool
	// DefaultRelease is the release image of HostedClusters that name none; empty for none.
	DefaultRelease string
	// Clock determines when certificates are renewed.
	Clock clock.PassiveClock
}

// Setup adds the webhook server and its certificate controller to the manager. Every replica serves, whether or not it
// is the leader.
func Setup(mgr ctrl.Manager, o Options) error {
	certificate := &Certificate{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Clock: o.Clock, Namespace: o.Namespace}
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{
		Port: o.Port,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.MinVersion = tls.VersionTLS12
			// Every pod can connect to this server. In HTTP/2, several defects have allowed one client to stop a server.
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
		for path, hook := range hooks(mgr.GetAPIReader(), o.DefaultRelease) {
			server.Register(path, hook)
		}
	}
	if err := errors.Join(mgr.Add(server), certificate.SetupWithManager(mgr)); err != nil {
		return fmt.Errorf("setting up the webhooks: %w", err)
	}
	return nil
}

func hooks(cluster client.Reader, release string) map[string]http.Handler {
	return map[string]http.Handler{
		operatorwebhook.HostedClusterPath: &admission.Webhook{Handler: handler{cluster, hostedClusterDefaults(release)}},
		operatorwebhook.NodePoolPath:      &admission.Webhook{Handler: handler{cluster, nodePoolDefaults}},
	}
}
