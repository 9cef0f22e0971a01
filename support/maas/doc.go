// SPDX-License-Identifier: Apache-2.0

// Package maas is a client of the MAAS region API, version 2.0 (MAAS 3.2 and newer).
//
//	cfg, err := maas.ConfigFromSecret(secret.Data)
//	client, err := maas.NewClient(cfg)
//	machine, err := client.AllocateMachine(ctx, maas.AllocateRequest{CPUCount: 8, Zone: "az1", AgentName: key})
//
// Every call takes a context, has a time-out of its own, and fails with a *Error (MAAS answered) or a *UnreachableError
// (it did not). Calls that may be repeated without harm are repeated a bounded number of times. The API key is
// never part of an error, a log line or a metric.
//
// The types of this package are the JSON of the API, so a server can be written with them too.
package maas
