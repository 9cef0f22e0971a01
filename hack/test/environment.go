// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// dirVariable names the folder of the embedded environment.
const dirVariable = "HYPERSHIFT_DEV_DIR"

// lockFolder holds the locks of running tests. It is emptied at each boot of the machine.
const lockFolder = "/run"

// keeps reports whether the user keeps the environment after the tests: it is then in the demo's folder.
func keeps() bool { return os.Getenv("HYPERSHIFT_E2E_KEEP") != "" }

// testDir returns the folder of the environment that the stages bring up. It is not the demo's folder, so everything in
// it is left over from tests.
func testDir() string {
	return cmp.Or(os.Getenv("HYPERSHIFT_TEST_DIR"), "/var/lib/hypershift-maas-test")
}

// takeEnvironment ensures that no other run uses the environment in the folder, and removes what a killed run left
// there. Call the returned function after the stage has ended. It does nothing for a user without root permissions, who
// cannot have an environment.
func takeEnvironment(dir string) (release func(), err error) {
	if os.Getuid() != 0 {
		return func() {}, nil
	}
	lock, err := os.OpenFile(filepath.Join(lockFolder, filepath.Base(dir)+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the tests' environment: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		err = errors.Join(fmt.Errorf("another run of the tests uses the environment in %s (%w): wait until it ends", dir, err),
			lock.Close())
		return nil, err
	}
	out, err := exec.Command(filepath.Join("bin", "devcluster"), "down", "--dir", dir).CombinedOutput()
	if err != nil {
		err = errors.Join(fmt.Errorf("removing what an earlier run of the tests left: %w\n%s", err, out), lock.Close())
		return nil, err
	}
	return func() { _ = lock.Close() }, nil
}
