// SPDX-License-Identifier: Apache-2.0

package releaseinfo_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/releaseinfo"
)

func TestErrorIsOneLineOfTheFirstCause(t *testing.T) {
	err := &releaseinfo.Error{Reason: releaseinfo.ReasonUnreachable, Image: "r/release:1", Err: errors.New(
		"Get \"https://r/v2/\": tls: failed to verify certificate; GET http://r/v2/: unexpected status code 400 Bad Request: Client sent an HTTP request\n")}
	NewWithT(t).Expect(err.Error()).To(And(
		HavePrefix(`cannot read release image "r/release:1": Get "https://r/v2/": tls: failed to verify certificate; check that the registry is up`),
		ContainSubstring("--additional-trust-bundle"), Not(ContainSubstring("\n")), Not(ContainSubstring("http://")),
	))
}
