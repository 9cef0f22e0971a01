// SPDX-License-Identifier: Apache-2.0

// Package maas is a client of the MAAS region API, version 2.0 (MAAS 3.2 and newer).
//
//	cfg, err := maas.ConfigFromSecret(secret.Data)
//	client, err := maas.NewClient(cfg)
//	machine, err := client.AllocateMachine(ctx, maas.AllocateRequest{CPUCount: 8, Zone: "az1", AgentName: key})
//
// Every call takes a context and has its own timeout. It fails with an *Error (MAAS refused), an *EndpointError (the
// answer is not from a MAAS API) or an *UnreachableError (no usable answer). The client retries calls that are safe to
// repeat, up to a limit. Errors, log lines and metrics never contain the API key.
//
// The types of this package have the JSON format of the API, so that they are suitable for a server too.
package maas
