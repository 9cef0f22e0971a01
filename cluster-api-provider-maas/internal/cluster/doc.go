// SPDX-License-Identifier: Apache-2.0

// Package cluster reconciles MaasClusters: the zones for machines, the DNS name of the API endpoint if no other
// component provides one, and MAAS machines without a MaasMachine.
package cluster
