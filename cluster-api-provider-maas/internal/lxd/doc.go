// SPDX-License-Identifier: Apache-2.0

// Package lxd selects an LXD host of MAAS for a virtual machine, and has MAAS compose it there.
//
//	hosts ─> select (pure) ─> reserve (ledger, then the MaasMachine) ─> compose ─> allocate and deploy, as any machine
//	                                                                       └─ rejected: another host
//
// A virtual machine is found by its name, which contains the UID of the MaasMachine. Host names are unique in MAAS.
package lxd
