// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"

	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/apiproxy"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/support/kubeconfig"
)

const (
	localAPIAddress   = "172.20.0.1"
	localAPIAddressV6 = "fd00::1"
	localAPIPort      = 6443
	proxyImageTag     = "haproxy-router"
	operatorImageTag  = "hypershift"
)

// apiProxyConfig returns the MachineConfig that gives the nodes of an OpenShift cluster a local address of the API
// server. former is the MachineConfig that version 0.1.0 would have rendered; it is empty if config is the same.
func (r *Reconciler) apiProxyConfig(ctx context.Context, s *reconciliation) (config, former string, err error) {
	host, port, err := r.publishedAPI(ctx, s)
	if err != nil {
		return "", "", err
	}
	direct := s.reachesAPIDirectly(host, port)
	if config, err = s.apiProxyFor(direct, host, port); err != nil || direct == s.reachedAPIDirectly() {
		return config, "", err
	}
	former, err = s.apiProxyFor(!direct, host, port)
	return config, former, err
}

func (s *reconciliation) apiProxyFor(direct bool, host string, port int32) (string, error) {
	proxy, err := s.apiTunnel(direct)
	if err != nil {
		return "", err
	}
	image, err := s.forwarderImage(proxy != "")
	if err != nil {
		return "", err
	}
	address, internalPort := localAPI(s.HC)
	return apiproxy.MachineConfig(apiproxy.Input{
		Image: image, Proxy: proxy, InternalAddress: address, InternalPort: internalPort, ExternalHost: host, ExternalPort: port,
	})
}

// apiTunnel returns host:port of the cluster's HTTPS proxy, or an empty string if nodes connect directly.
func (s *reconciliation) apiTunnel(direct bool) (string, error) {
	if direct {
		return "", nil
	}
	to, err := url.Parse(s.HC.Spec.Configuration.Proxy.HTTPSProxy)
	if err != nil || to.Hostname() == "" {
		return "", errors.New("HostedCluster: spec.configuration.proxy.httpsProxy is not a URL with a host; use http://HOST:PORT")
	}
	return net.JoinHostPort(to.Hostname(), cmp.Or(to.Port(), map[string]string{"http": "80", "https": "443"}[to.Scheme])), nil
}

// forwarderImage returns the image of HAProxy. For a tunnel, it returns the image of the payload's
// control-plane-operator, which can connect through a proxy. It uses the pool's payload, so that an update of the
// control plane does not replace machines.
func (s *reconciliation) forwarderImage(tunnel bool) (string, error) {
	tag, named := proxyImageTag, s.Pool.Annotations[hyperv1.HAProxyImageAnnotation]
	if tunnel {
		tag, named = operatorImageTag, s.HC.Annotations[hyperv1.ControlPlaneOperatorImageAnnotation]
	}
	if named != "" {
		return named, nil
	}
	image, ok := s.Release.ComponentImage(tag)
	if !ok {
		return "", fmt.Errorf("the release %s has no image %s: use a complete release image", s.Release.Version(), tag)
	}
	return image, nil
}

// localAPI returns the address and the port at which pods reach the API server.
func localAPI(hc *hyperv1.HostedCluster) (string, int32) {
	address := localAPIAddress
	if networks := hc.Spec.Networking.ServiceNetwork; len(networks) > 0 && networks[0].CIDR.IP.To4() == nil {
		address = localAPIAddressV6
	}
	api := hc.Spec.Networking.APIServer
	if api == nil {
		return address, localAPIPort
	}
	return ptr.Deref(api.AdvertiseAddress, address), ptr.Deref(api.Port, localAPIPort)
}

// publishedAPI returns the external host and port of the API server, from the admin kubeconfig.
func (r *Reconciler) publishedAPI(ctx context.Context, s *reconciliation) (string, int32, error) {
	name := s.HC.Status.KubeConfig.Name
	data, err := scope.SecretData(ctx, r.Client, s.Pool.Namespace, name)
	if err != nil {
		return "", 0, err
	}
	server := &url.URL{}
	access, err := kubeconfig.Parse(data["kubeconfig"])
	if err == nil {
		server, err = url.Parse(access.Server)
	}
	if err != nil {
		return "", 0, fmt.Errorf("reading the cluster's kubeconfig in Secret %s/%s: %w", s.Pool.Namespace, name, err)
	}
	if server.Port() == "" {
		return server.Hostname(), 443, nil
	}
	port, err := strconv.ParseInt(server.Port(), 10, 32)
	if err != nil {
		return "", 0, fmt.Errorf("the server in the cluster's kubeconfig has port %q", server.Port())
	}
	return server.Hostname(), int32(port), nil
}
