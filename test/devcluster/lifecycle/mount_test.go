// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

func bindMount(t *testing.T, source, target string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(os.MkdirAll(target, 0o755)).To(Succeed())
	g.Expect(unix.Mount(source, target, "", unix.MS_BIND, "")).To(Succeed())
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) }) // Normally the test has already done this.
}
