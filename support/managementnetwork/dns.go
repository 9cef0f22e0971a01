// SPDX-License-Identifier: Apache-2.0

package managementnetwork

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ResolvConf is the file in which the kubelet names the DNS servers of a pod.
const ResolvConf = "/etc/resolv.conf"

// DNS holds the DNS servers that pods of a management cluster query.
type DNS struct {
	// Servers are the addresses of DNS servers, sorted.
	Servers []netip.Prefix
	// Namespaces are the namespaces of the Services that have such an address, sorted.
	Namespaces []string
}

// ReadDNS takes the servers from the content of a pod's resolv.conf, and reads their Services from the API. further
// are ranges of servers that the file does not name.
func ReadDNS(ctx context.Context, live client.Reader, resolvConf string, further []netip.Prefix) (DNS, error) {
	found := DNS{Servers: slices.Clone(further)}
	for _, server := range nameServers(resolvConf) {
		services := &corev1.ServiceList{}
		err := live.List(ctx, services, client.MatchingFields{"spec.clusterIP": server.String()})
		if err != nil {
			return DNS{}, fmt.Errorf("listing the Services with the DNS server's address %s: %w", server, err)
		}
		for i := range services.Items {
			found.Namespaces = append(found.Namespaces, services.Items[i].Namespace)
		}
		found.Servers = append(found.Servers, netip.PrefixFrom(server, server.BitLen()))
	}
	found.Servers = sorted(found.Servers, netip.Prefix.Compare)
	found.Namespaces = sorted(found.Namespaces, strings.Compare)
	return found, nil
}

// nameServers returns the addresses in a resolv.conf. It ignores loopback addresses, which no policy can allow.
func nameServers(resolvConf string) []netip.Addr {
	var all []netip.Addr
	for line := range strings.Lines(resolvConf) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		if server, err := netip.ParseAddr(fields[1]); err == nil && !server.IsLoopback() {
			all = append(all, server.WithZone("").Unmap())
		}
	}
	return all
}
