// SPDX-License-Identifier: Apache-2.0

package kube

import "strings"

// HostedNamespace is the namespace of a hosted cluster's control plane and Machines, as the operator names it.
func HostedNamespace(namespace, cluster string) string {
	return namespace + "-" + strings.ReplaceAll(cluster, ".", "-")
}
