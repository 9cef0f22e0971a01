// SPDX-License-Identifier: Apache-2.0

// Package cluster looks after MaasClusters: the zones that machines may be placed in, the DNS name of the API endpoint where
// nobody else makes one, and MAAS machines that lost their MaasMachine.
package cluster
