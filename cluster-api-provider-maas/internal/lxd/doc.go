// SPDX-License-Identifier: Apache-2.0

// Package lxd finds a place for a virtual machine among the LXD hosts of a MAAS, and has MAAS compose it there.
//
//	hosts ─> select (pure) ─> reserve (ledger, then the MaasMachine) ─> compose ─> allocate and deploy, as any machine
//	                                                                       └─ refused: another host
//
// A virtual machine is found again by its name, which is made of the MaasMachine's UID: MAAS has each host name once.
package lxd
