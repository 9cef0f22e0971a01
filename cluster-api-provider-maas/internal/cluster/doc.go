// SPDX-License-Identifier: Apache-2.0

// Package cluster reconciles MaasClusters. It provides the zones for machines, and the DNS name of the API endpoint
// if no other component provides one. It also releases MAAS machines without a MaasMachine.
package cluster
