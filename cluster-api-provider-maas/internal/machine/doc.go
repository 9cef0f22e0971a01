// SPDX-License-Identifier: Apache-2.0

// Package machine reconciles MaasMachines. It allocates a machine in MAAS, deploys it with the bootstrap data of
// Cluster API, publishes its status, and releases it.
//
//	prerequisites ─> credentials ─> observe ─> acquire ─> mark ─> advance ─> node ─> status
//
// A reconcile can be interrupted at any point. The next reconcile finds an allocated machine by its allocation key (see
// maas.AllocationKey). MAAS stores the key in the transaction that allocates the machine.
package machine
