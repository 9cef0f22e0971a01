// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/ignition-server/nodeconfig"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/kubeconfig"
	"github.com/openshift/hypershift/support/nodeinput"
)

// Hashes are the hashes of the inputs for which the operator wrote a token. An empty hash is not compared.
type Hashes struct {
	// PullSecret, TrustBundle and Configuration are computed by package nodeinput.
	PullSecret, TrustBundle, Configuration string
}

// check returns a Problem while the control plane has a different configuration than the one that the token was
// written for. Otherwise the outdated configuration would be reported as valid before the new one is rendered.
func (h Hashes) check(hcp *hyperv1.HostedControlPlane, in nodeconfig.Input) error {
	configuration, err := nodeinput.ConfigurationHash(hcp.Spec.Configuration)
	if err != nil {
		return err
	}
	for _, input := range []struct{ name, want, have string }{
		{"pull secret", h.PullSecret, nodeinput.HashValue(in.PullSecret)},
		{"additional trust bundle", h.TrustBundle, nodeinput.HashValue(string(in.TrustBundle))},
		{"configuration", h.Configuration, configuration},
	} {
		if input.want != "" && input.want != input.have {
			return &Problem{Reason: ReasonOutdated, RetryAfter: waitRetry,
				Message: fmt.Sprintf("Waiting for the control plane to apply the %s of the HostedCluster", input.name)}
		}
	}
	return nil
}

// gatherConfiguration reads the node settings of the cluster's configuration: its proxy and its registries.
func (g *Generator) gatherConfiguration(ctx context.Context, hcp *hyperv1.HostedControlPlane, in *nodeconfig.Input) error {
	configuration := hcp.Spec.Configuration
	if configuration == nil {
		return nil
	}
	in.Image = configuration.Image
	in.Proxy = nodeinput.ReadProxy(configuration.Proxy, hcp.Spec.Networking, apiServerHost(in.BootstrapKubeconfig))
	proxyCA, registryCAs := namedCAs(configuration)
	if proxyCA != "" {
		ca, err := g.configMap(ctx, proxyCA, hosted.UserCABundleKey)
		if err != nil {
			return err
		}
		if !x509.NewCertPool().AppendCertsFromPEM(ca) {
			return invalid("spec.configuration.proxy.trustedCA", proxyCA, fmt.Errorf("its key %q holds no PEM certificate: put the CA of the proxy there", hosted.UserCABundleKey))
		}
		in.ProxyCA = ca
	}
	if registryCAs == "" {
		return nil
	}
	data, err := g.configMapData(ctx, registryCAs)
	if err != nil {
		return err
	}
	if in.RegistryCAs, err = nodeinput.ReadRegistryCAs(data); err != nil {
		return invalid("spec.configuration.image.additionalTrustedCA", registryCAs, err)
	}
	return nil
}

func invalid(field, configMap string, err error) *Problem {
	return &Problem{Reason: ReasonInvalidConfig, Message: fmt.Sprintf("%s: the ConfigMap %s: %v", field, configMap, err)}
}

// apiServerHost returns the host of the API server, which is excluded from the proxy. The kubelet's long-lived
// connection should not depend on a proxy. The result is empty if the kubeconfig is unreadable; the kubelet reports
// that error.
func apiServerHost(raw []byte) string {
	access, err := kubeconfig.Parse(raw)
	if err != nil {
		return ""
	}
	server, err := url.Parse(access.Server)
	if err != nil {
		return ""
	}
	return server.Hostname()
}

func (g *Generator) configMap(ctx context.Context, name, key string) ([]byte, error) {
	data, err := g.configMapData(ctx, name)
	if err != nil {
		return nil, err
	}
	if data[key] == "" {
		return nil, waiting(fmt.Sprintf("key %q of ConfigMap %s/%s", key, g.Namespace, name))
	}
	return []byte(data[key]), nil
}

func (g *Generator) configMapData(ctx context.Context, name string) (map[string]string, error) {
	cm := &corev1.ConfigMap{}
	err := g.Client.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: name}, cm)
	if apierrors.IsNotFound(err) {
		return nil, waiting(fmt.Sprintf("ConfigMap %s/%s", g.Namespace, name))
	}
	if err == nil && name == hosted.KubeletClientCA {
		err = hosted.Trusted(cm)
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", g.Namespace, name, err)
	}
	return cm.Data, nil
}
