// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"regexp"
	"strings"
)

var (
	// ephemeral matches the local end of a connection in an error of Go's net package. Its port differs each time.
	ephemeral = regexp.MustCompile(`\b(tcp|udp)([46]?) [^ ]+:\d+->`)
	// requestID matches the identifier that a server gave a request, as clients of clouds print it.
	requestID = regexp.MustCompile(`(?i),? ?\brequest[ -]?id:? ?"?[0-9a-f][0-9a-f-]{7,}"?`)
)

// Stable removes from a message what differs each time the same error occurs. A controller that watches the object
// would otherwise run again because of its own write.
func Stable(message string) string {
	if strings.Contains(message, "->") {
		message = ephemeral.ReplaceAllString(message, "$1$2 ")
	}
	return requestID.ReplaceAllString(message, "")
}
