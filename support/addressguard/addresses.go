// SPDX-License-Identifier: Apache-2.0

package addressguard

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
)

// EnvFile is the environment variable with the path of the mounted addresses of the management cluster; see File.
const EnvFile = "MANAGEMENT_NETWORK_FILE"

// Addresses holds the addresses of a management cluster that its API reports. The lists are sorted.
type Addresses struct {
	// API holds the addresses of the API server, both of its Service and of its endpoints.
	API []netip.AddrPort `json:"api,omitempty"`
	// APIPorts holds the ports of the API server's endpoints, which may be open on other nodes too.
	APIPorts []uint16 `json:"apiPorts,omitempty"`
	// Nodes holds the internal and external addresses of the nodes.
	Nodes []netip.Addr `json:"nodes,omitempty"`
	// Pods holds the pod ranges of the nodes; a network plugin may use others.
	Pods []netip.Prefix `json:"pods,omitempty"`
	// Services holds the ranges of Services. Clusters before Kubernetes 1.33 do not report them.
	Services []netip.Prefix `json:"services,omitempty"`
	// WholeNodes extends Contains to every port of the nodes, not just those of Kubernetes. Read does not set it.
	WholeNodes bool `json:"wholeNodes,omitempty"`
}

// nodePorts lists the ports of Kubernetes components on a node: etcd, kubelet, kube-proxy, controller-manager,
// scheduler.
var nodePorts = []uint16{2379, 2380, 2381, 10249, 10250, 10255, 10256, 10257, 10259}

// Contains reports whether an address belongs to the management cluster. Of a node's ports, only those of Kubernetes
// belong to it unless WholeNodes is set: a MAAS or another cluster may share the host.
func (a *Addresses) Contains(at netip.AddrPort) bool {
	host := at.Addr().Unmap()
	for _, prefix := range slices.Concat(a.Pods, a.Services) {
		if prefix.Contains(host) {
			return true
		}
	}
	isAPI := func(api netip.AddrPort) bool { return api.Port() == at.Port() && api.Addr().Unmap() == host }
	if slices.ContainsFunc(a.API, isAPI) {
		return true
	}
	if !slices.ContainsFunc(a.Nodes, func(node netip.Addr) bool { return node.Unmap() == host }) {
		return false
	}
	return a.WholeNodes || slices.Contains(nodePorts, at.Port()) || slices.Contains(a.APIPorts, at.Port())
}

// WithoutWorkloads returns the addresses without those of pods and Services. A registry, an etcd or a load balancer of
// a tenant may have these.
func (a *Addresses) WithoutWorkloads() *Addresses {
	left := *a
	left.Pods, left.Services = nil, nil
	return &left
}

// ParseAddresses decodes addresses from JSON.
func ParseAddresses(text []byte) (*Addresses, error) {
	a := &Addresses{}
	if err := json.Unmarshal(text, a); err != nil {
		return nil, fmt.Errorf("decoding the addresses of the management cluster: %w", err)
	}
	return a, nil
}

// File is the path of a file with Addresses. It is read for each connection, because the kubelet updates it.
type File string

// Contains implements Own. It returns true for all addresses if the file cannot be read.
func (f File) Contains(at netip.AddrPort) bool {
	text, err := os.ReadFile(string(f))
	if err != nil {
		return true
	}
	known, err := ParseAddresses(text)
	return err != nil || known.Contains(at)
}
