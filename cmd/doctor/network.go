// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/nodeaddress"
)

const (
	addressFlag  = "--external-api-server-address"
	addressCheck = "address"
	// firstNodePort is the first port that Services of type NodePort use.
	firstNodePort = 30000
	dialTimeout   = 5 * time.Second
)

// Network is the address under which machines and users reach clusters.
type Network struct {
	// Client reads the management cluster.
	Client client.Client
	// Host is a DNS name or an IP address; empty means the one that `create cluster` would use.
	Host string

	// clusters are the existing ones, set by the check of the kubelets.
	clusters []hyperv1.HostedCluster
}

// Checks returns the checks of the network that do not need a MAAS.
func (n *Network) Checks() []Check {
	address := Check{Part: networkPart, Name: addressCheck, Run: n.address}
	if n.Host == "" {
		address.Needs = needsCluster
	}
	return []Check{
		{Part: networkPart, Name: "kubelets", Needs: needsCluster, Run: n.kubelets},
		address,
		{Part: networkPart, Name: "ports", Needs: networkPart + " " + addressCheck, Run: n.ports},
	}
}

// address checks the published address.
func (n *Network) address(ctx context.Context) Outcome {
	note := ""
	if n.Host == "" {
		virtual, err := nodeaddress.FindVirtual(ctx, n.Client)
		if err == nil && virtual.Host != "" {
			n.Host, note = virtual.Host, ", the virtual IP of the management cluster"
		} else {
			nodes, err := nodeaddress.All(ctx, n.Client)
			if err != nil {
				return unreadable(err, "addresses of Nodes")
			}
			n.Host, note = nodes[0].Host, ", the address of node "+nodes[0].Node
			if len(nodes) > 1 {
				return warn("name an address that outlives a node with "+addressFlag+
					", or set up a virtual IP: hypershift install --api-virtual-ip",
					"clusters are reached at %s%s: while that node is away, so are their APIs", n.Host, note)
			}
		}
	}
	addresses, err := resolve(ctx, n.Host)
	if err != nil {
		return failed("create the DNS name, or name another address with "+addressFlag,
			"the published address %s has no IP address: %v", n.Host, err)
	}
	for _, a := range addresses {
		if a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() {
			return failed("name another address with "+addressFlag,
				"the published address %s is %s, which machines cannot reach", n.Host, a)
		}
	}
	return ok("clusters are reached at %s%s", n.Host, note)
}

func resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if address, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{address}, nil
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// ports checks that the published address answers this computer.
func (n *Network) ports(ctx context.Context) Outcome {
	target := net.JoinHostPort(n.Host, strconv.Itoa(int(n.usedPort())))
	dialer := net.Dialer{Timeout: dialTimeout}
	connection, err := dialer.DialContext(ctx, "tcp", target)
	switch {
	case err == nil:
		_ = connection.Close() // Nothing was sent.
		return ok("%s accepts connections from here", target)
	case errors.Is(err, syscall.ECONNREFUSED):
		return ok("%s answers from here, and no Service uses the port", target)
	}
	return warn("let machines and users reach TCP 30000-32767 of the address; "+
		"this check sees only the way from this computer",
		"%s does not answer from here: %v", target, err)
}

// usedPort returns a port of the published address on which a cluster serves its API, or else the first node port.
func (n *Network) usedPort() int32 {
	for i := range n.clusters {
		served := &n.clusters[i].Status
		if served.ControlPlaneEndpoint.Host == n.Host && meta.IsStatusConditionTrue(served.Conditions,
			string(hyperv1.HostedClusterAvailable)) {
			return served.ControlPlaneEndpoint.Port
		}
	}
	return firstNodePort
}

// kubelets reports whether existing clusters reach the kubelets of their machines. Only pods of the management cluster
// can test that.
func (n *Network) kubelets(ctx context.Context) Outcome {
	const remedy = "let machines reach Service konnectivity-server, or pods of the management cluster TCP 10250 of the machines"
	var clusters hyperv1.HostedClusterList
	if err := n.Client.List(ctx, &clusters); err != nil {
		return unreadable(err, "HostedClusters of all namespaces")
	}
	n.clusters = clusters.Items
	var good int
	var bad []string
	for i := range n.clusters {
		hc := &n.clusters[i]
		c := meta.FindStatusCondition(hc.Status.Conditions, string(hyperv1.DataPlaneConnectionAvailable))
		switch {
		case c == nil || c.Status == metav1.ConditionUnknown || !hc.DeletionTimestamp.IsZero():
		case c.Status == metav1.ConditionTrue:
			good++
		default:
			bad = append(bad, fmt.Sprintf("%s/%s: %s", hc.Namespace, hc.Name, c.Message))
		}
	}
	slices.Sort(bad)
	switch {
	case len(bad) > 0:
		return warn(remedy, "%d clusters do not reach kubelets of their nodes: %s", len(bad),
			strings.Join(bad[:min(len(bad), 3)], "; "))
	case good == 0:
		return skipped(remedy, "no cluster has nodes yet that show whether TCP 10250 of machines is reachable")
	}
	return ok("%d clusters reach the kubelets of their nodes", good)
}
