package nodepool

import (
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// noProxy is what is reached directly: what the user says, and all that is inside the cluster.
func noProxy(hc *hyperv1.HostedCluster, spec configv1.ProxySpec) string {
	if spec.HTTPProxy == "" && spec.HTTPSProxy == "" {
		return ""
	}
	direct := map[string]bool{"127.0.0.1": true, "localhost": true, ".svc": true, ".cluster.local": true, ".hypershift.local": true}
	for _, n := range hc.Spec.Networking.MachineNetwork {
		direct[n.CIDR.String()] = true
	}
	for _, n := range hc.Spec.Networking.ClusterNetwork {
		direct[n.CIDR.String()] = true
	}
	for _, n := range hc.Spec.Networking.ServiceNetwork {
		direct[n.CIDR.String()] = true
	}
	for entry := range strings.SplitSeq(spec.NoProxy, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "*" {
			return "*"
		}
		if entry != "" {
			direct[entry] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(direct)), ",")
}
