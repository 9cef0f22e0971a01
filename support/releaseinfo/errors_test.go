// SPDX-License-Identifier: Apache-2.0

package releaseinfo_test

import (
	"errors"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/releaseinfo"
)

// TestErrorHidesWhatWasCalled checks that conditions do not contain the answer. A tenant that chooses the registry must
// not read answers from the network around the operator.
func TestErrorHidesWhatWasCalled(t *testing.T) {
	call := func(location string) error {
		return &url.Error{Op: "Get", URL: location, Err: &net.OpError{
			Op: "dial", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 244, 0, 5)},
			Addr: &net.TCPAddr{IP: net.IPv4(10, 9, 8, 7)},
			Err:  os.NewSyscallError("connect", syscall.ECONNREFUSED),
		}}
	}
	err := &releaseinfo.Error{Reason: releaseinfo.ReasonUnreachable, Image: "r/release:1",
		Err: errors.Join(call("https://10.9.8.7/v2/"), call("http://10.9.8.7/v2/"))}
	NewWithT(t).Expect(err.Error()).To(And(
		HavePrefix(`cannot read release image "r/release:1": the connection was refused; check that the registry is up`),
		ContainSubstring("--additional-trust-bundle"), Not(ContainSubstring("\n")), Not(ContainSubstring("10.")),
	))
}
