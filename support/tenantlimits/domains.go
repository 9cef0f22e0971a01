// SPDX-License-Identifier: Apache-2.0

package tenantlimits

import (
	"fmt"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// hostNames says which host names a cluster publishes outside of the allowed domains: those of Routes, and those that
// load balancers are annotated with for ExternalDNS.
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

// allowsHostName allows names below a domain, and the domain itself.
func allowsHostName(domains []string, name string) bool {
	if slices.Contains(domains, "*") {
		return true
	}
	return slices.ContainsFunc(domains, func(domain string) bool {
		return name == trimmed(domain) || strings.HasSuffix(name, "."+trimmed(domain))
	})
}

// trimmed accepts a domain with dots around it, as ExternalDNS's --domain-filter does.
func trimmed(domain string) string { return strings.Trim(domain, ".") }

// celHostName says that a host name is allowed, or empty.
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
