// SPDX-License-Identifier: Apache-2.0

package tenantlimits

import (
	"fmt"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// hostNames returns messages for the host names of a cluster that are outside of the allowed domains. It checks the
// names of Routes, and the ExternalDNS annotations of load balancers.
func (l *Limits) hostNames(hc *hyperv1.HostedCluster) []string {
	var refusals []string
	for _, service := range hc.Spec.Services {
		for _, name := range publishedNames(service.ServicePublishingStrategy) {
			if name != "" && !allowsHostName(l.Domains, name) {
				refusals = append(refusals, fmt.Sprintf(
					"spec.services: host name %s of %s is in none of --allowed-domains of `hypershift install`", name,
					service.Service))
			}
		}
	}
	if name := hc.Spec.KubeAPIServerDNSName; name != "" && !allowsHostName(l.Domains, name) {
		refusals = append(refusals, fmt.Sprintf(
			"spec.kubeAPIServerDNSName: %s is in none of --allowed-domains of `hypershift install`", name))
	}
	return refusals
}

func publishedNames(strategy hyperv1.ServicePublishingStrategy) []string {
	var names []string
	if strategy.Route != nil {
		names = append(names, strategy.Route.Hostname)
	}
	if strategy.LoadBalancer != nil {
		names = append(names, strategy.LoadBalancer.Hostname)
	}
	return names
}

// allowsHostName reports whether name is an allowed domain or below one.
func allowsHostName(domains []string, name string) bool {
	if slices.Contains(domains, "*") {
		return true
	}
	return slices.ContainsFunc(domains, func(domain string) bool {
		return name == trimmed(domain) || strings.HasSuffix(name, "."+trimmed(domain))
	})
}

// trimmed returns a domain without leading and trailing dots, which ExternalDNS's --domain-filter accepts too.
func trimmed(domain string) string { return strings.Trim(domain, ".") }

// celHostName returns a CEL expression that is true if a host name is empty or allowed.
func (l *Limits) celHostName(name string) string {
	if slices.Contains(l.Domains, "*") {
		return "true"
	}
	domains := make([]string, 0, len(l.Domains))
	for _, domain := range l.Domains {
		domains = append(domains, trimmed(domain))
	}
	return fmt.Sprintf("(%s == '' || %s.exists(d, %s == d || %s.endsWith('.' + d)))", name, celList(domains), name, name)
}
