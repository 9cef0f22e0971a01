// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpproxy"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// apiServiceNames are the names of the API server's Service. A domain such as .svc is not enough: clusters list it for
// their own Services, whether or not nodes reach the API server directly.
var apiServiceNames = []string{
	"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
}

// httpsProxyOf returns the proxy of a cluster if it has one for HTTPS, or else nil.
func httpsProxyOf(hc *hyperv1.HostedCluster) *configv1.ProxySpec {
	if hc.Spec.Configuration == nil || hc.Spec.Configuration.Proxy == nil || hc.Spec.Configuration.Proxy.HTTPSProxy == "" {
		return nil
	}
	return hc.Spec.Configuration.Proxy
}

// reachesAPIDirectly reports whether nodes reach the API server without a proxy. They do so if noProxy covers the
// published address, the local address, a name of the Service, or an entire network of the cluster.
func (s *reconciliation) reachesAPIDirectly(host string, port int32) bool {
	proxy := httpsProxyOf(s.HC)
	if proxy == nil {
		return true
	}
	rules := exceptions(proxy.NoProxy)
	address, localPort := localAPI(s.HC)
	if rules.covers(host, port) || rules.covers(address, localPort) || rules.names(apiServiceNames) {
		return true
	}
	return slices.ContainsFunc(firstNetworks(s.HC), rules.coversNetwork)
}

// exceptions is the content of noProxy: names, domains, addresses, networks and ports, separated by commas.
type exceptions string

// covers reports whether a client connects to a host without the proxy, by the rules of Go's HTTP client.
func (e exceptions) covers(host string, port int32) bool {
	config := &httpproxy.Config{HTTPSProxy: "http://proxy.invalid", NoProxy: string(e)}
	to := &url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(int(port)))}
	proxy, err := config.ProxyFunc()(to)
	return err == nil && proxy == nil
}

// names reports whether an entry is one of the names.
func (e exceptions) names(names []string) bool {
	for entry := range strings.SplitSeq(string(e), ",") {
		name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(entry)), ":")
		if slices.Contains(names, name) {
			return true
		}
	}
	return false
}

// coversNetwork reports whether one entry contains all addresses of a network.
func (e exceptions) coversNetwork(network netip.Prefix) bool {
	for entry := range strings.SplitSeq(string(e), ",") {
		entry = strings.TrimSpace(entry)
		if wide, err := netip.ParsePrefix(entry); entry == "*" ||
			err == nil && wide.Bits() <= network.Bits() && wide.Contains(network.Addr()) {
			return true
		}
	}
	return false
}

// firstNetworks returns the first Service network and the first pod network of a cluster.
func firstNetworks(hc *hyperv1.HostedCluster) []netip.Prefix {
	var texts []string
	if networks := hc.Spec.Networking.ServiceNetwork; len(networks) > 0 {
		texts = append(texts, networks[0].CIDR.String())
	}
	if networks := hc.Spec.Networking.ClusterNetwork; len(networks) > 0 {
		texts = append(texts, networks[0].CIDR.String())
	}
	var parsed []netip.Prefix
	for _, text := range texts {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			parsed = append(parsed, prefix)
		}
	}
	return parsed
}

// reachedAPIDirectly returns the result of the check in version 0.1.0, which searched noProxy for substrings. Machines
// that 0.1.0 configured keep its result until their configuration changes for another reason, because a different
// result would replace them.
func (s *reconciliation) reachedAPIDirectly() bool {
	proxy := httpsProxyOf(s.HC)
	if proxy == nil {
		return true
	}
	address, _ := localAPI(s.HC)
	texts := []string{address, "kubernetes"}
	if networks := s.HC.Spec.Networking.ServiceNetwork; len(networks) > 0 {
		texts = append(texts, networks[0].CIDR.String())
	}
	if networks := s.HC.Spec.Networking.ClusterNetwork; len(networks) > 0 {
		texts = append(texts, networks[0].CIDR.String())
	}
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(proxy.NoProxy, text) })
}
