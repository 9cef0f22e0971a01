// SPDX-License-Identifier: Apache-2.0

package kube

import "strings"

// HostedNamespace returns the namespace of a hosted cluster's control plane and Machines. The operator uses the same
// name.
func HostedNamespace(namespace, cluster string) string {
	return namespace + "-" + strings.ReplaceAll(cluster, ".", "-")
}
