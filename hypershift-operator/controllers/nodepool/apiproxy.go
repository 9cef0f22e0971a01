package nodepool

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/apiproxy"
)

const (
	localAPIAddress   = "172.20.0.1"
	localAPIAddressV6 = "fd00::1"
	localAPIPort      = 6443
	proxyImageTag     = "haproxy-router"
)

// apiProxyConfig is the MachineConfig that gives the nodes of an OpenShift cluster a local address of the API server.
func (r *Reconciler) apiProxyConfig(ctx context.Context, s *scope) (string, error) {
	host, port, err := r.publishedAPI(ctx, s)
	if err != nil {
		return "", err
	}
	image := s.pool.Annotations[hyperv1.HAProxyImageAnnotation]
	if image == "" {
		var ok bool
		if image, ok = s.release.ComponentImage(proxyImageTag); !ok {
			return "", fmt.Errorf("the release %s has no image %s: use a complete release image", s.release.Version(), proxyImageTag)
		}
	}
	address, internalPort := localAPI(s.hc)
	return apiproxy.MachineConfig(apiproxy.Input{
		Image: image, InternalAddress: address, InternalPort: internalPort, ExternalHost: host, ExternalPort: port,
	})
}

// localAPI is the address that pods know the API server by.
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

// publishedAPI is where the API server is reached from outside, as the admin's kubeconfig says.
func (r *Reconciler) publishedAPI(ctx context.Context, s *scope) (string, int32, error) {
	name := s.hc.Status.KubeConfig.Name
	data, err := r.secretData(ctx, s.pool.Namespace, name)
	if err != nil {
		return "", 0, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data["kubeconfig"])
	if err != nil {
		return "", 0, fmt.Errorf("the cluster's kubeconfig in Secret %s/%s cannot be read", s.pool.Namespace, name)
	}
	server, err := url.Parse(config.Host)
	if err != nil || server.Hostname() == "" {
		return "", 0, fmt.Errorf("the cluster's kubeconfig in Secret %s/%s names no server", s.pool.Namespace, name)
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
