// SPDX-License-Identifier: Apache-2.0

package tenantlimits

import (
	"fmt"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// reservedLabels are keys without a domain by which Services and NetworkPolicies select pods.
var reservedLabels = []string{"app", "name", "control-plane", "job-name", "statefulset.kubernetes.io/pod-name"}

// reservedDomains are the domains of labels that decide which connections a pod may open or accept. Subdomains are
// reserved too.
var reservedDomains = []string{"hypershift.openshift.io", "kubevirt.io", "cluster.x-k8s.io"}

// ReservedLabel reports whether tenants must not give pods a label of this key: Services, NetworkPolicies or
// controllers select by it.
func ReservedLabel(key string) bool {
	if slices.Contains(reservedLabels, key) || slices.Contains(reservedDomains, key) {
		return true
	}
	prefix, _, ok := strings.Cut(key, "/")
	return ok && slices.ContainsFunc(reservedDomains, func(domain string) bool {
		return prefix == domain || strings.HasSuffix(prefix, "."+domain)
	})
}

func ofLabels(hc *hyperv1.HostedCluster) []string {
	var refusals []string
	for key := range hc.Spec.Labels {
		if ReservedLabel(key) {
			refusals = append(refusals, fmt.Sprintf(
				"spec.labels: %s is reserved, since Services and NetworkPolicies select by it; choose another label", key))
		}
	}
	return refusals
}

// celUnreserved returns a CEL expression that is true if a key is not reserved.
func celUnreserved(key string) string {
	exact, domains, prefix := celList(reservedLabels), celList(reservedDomains), key+".split('/')[0]"
	return fmt.Sprintf("!(%s in %s) && !(%s in %s) && !(%s.contains('/') && %s.exists(d, %s == d || %s.endsWith('.' + d)))",
		key, exact, key, domains, key, domains, prefix, prefix)
}
