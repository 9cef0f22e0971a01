// SPDX-License-Identifier: Apache-2.0

// Package seeds contains the built-in inventories of the simulator.
package seeds

import _ "embed"

// Demo is the site of the embedded environment: machines of different size in
// two zones, on the network 172.30.240.0/24.
//
//go:embed demo.json
var Demo []byte
