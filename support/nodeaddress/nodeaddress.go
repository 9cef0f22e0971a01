// SPDX-License-Identifier: Apache-2.0

// Package nodeaddress finds an address at which a cluster's node ports are reachable.
package nodeaddress

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// types are tried in this order: the most public one first.
var types = []corev1.NodeAddressType{corev1.NodeExternalDNS, corev1.NodeExternalIP, corev1.NodeInternalIP}

var errNone = errors.New("the management cluster has no Ready node with an address")

// Address is the address of a node.
type Address struct {
	// Node is the node's name.
	Node string
	// Host is a DNS name or an IP address.
	Host string
}

// Find returns the management cluster's virtual IP. Without one, it returns the address of the first Ready node, by
// name, that has an address: a DNS name or an IP address.
func Find(ctx context.Context, c client.Reader) (string, error) {
	virtual, err := FindVirtual(ctx, c)
	if err != nil || virtual.Host != "" {
		return virtual.Host, err
	}
	all, err := All(ctx, c)
	if err != nil {
		return "", err
	}
	return all[0].Host, nil
}

// All returns the addresses of the Ready nodes that have one, sorted by node name. It returns an error if there are
// none.
func All(ctx context.Context, c client.Reader) ([]Address, error) {
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("list the management cluster's nodes to find an address: %w", err)
	}
	slices.SortFunc(nodes.Items, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	var all []Address
	for _, node := range nodes.Items {
		if host := of(node); host != "" {
			all = append(all, Address{Node: node.Name, Host: host})
		}
	}
	if len(all) == 0 {
		return nil, errNone
	}
	return all, nil
}

func of(node corev1.Node) string {
	if !isReady(node) {
		return ""
	}
	for _, wanted := range types {
		for _, address := range node.Status.Addresses {
			if address.Type == wanted && address.Address != "" {
				return address.Address
			}
		}
	}
	return ""
}

func isReady(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
