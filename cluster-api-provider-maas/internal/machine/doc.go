// SPDX-License-Identifier: Apache-2.0

// Package machine makes MaasMachines real: it acquires a machine of MAAS, deploys it with the bootstrap data of Cluster API,
// publishes what it got, and gives it back.
//
//	prerequisites ─> credentials ─> observe ─> acquire ─> mark ─> advance ─> node ─> status
//
// A reconcile may die between any two lines. What MAAS did then is found again by the allocation key (see
// maas.AllocationKey), which MAAS stores in the transaction that allocates.
package machine
