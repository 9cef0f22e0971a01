// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/openshift/hypershift/test/machine/cgroup"
)

// These are the roles of this program, passed as argv[0]. The setup becomes PID 1 by exec.
const (
	roleSetup   = "machine-setup"
	rolePID1    = "machine-pid1"
	roleManager = "machine-manager"
	roleLaunch  = "machine-launch"
)

var roles = map[string]func(map[string]Boot) int{
	roleSetup:   runSetup,
	rolePID1:    runPID1,
	roleManager: runManager,
	roleLaunch:  runLaunch,
}

// File descriptors that the setup inherits.
const (
	setupGoAhead = 3
	setupResult  = 4
)

// insideConfig is the path of the machine's Config, in the machine.
const insideConfig = "/run/machine/config.json"

// runSetup sets up the machine in its own process and becomes its PID 1. It returns only if it fails.
func runSetup(map[string]Boot) int {
	runtime.LockOSThread() // Cgroup namespaces belong to threads, and the thread that calls exec survives.
	unix.CloseOnExec(setupGoAhead)
	unix.CloseOnExec(setupResult)
	result := os.NewFile(setupResult, "result")
	if err := setUp(os.Args[1]); err != nil {
		fmt.Fprintln(result, err)
		return 1
	}
	err := unix.Exec("/proc/self/exe", []string{rolePID1}, os.Environ())
	fmt.Fprintln(result, "becoming PID 1:", err)
	return 1
}

func setUp(dir string) error {
	word := make([]byte, 2)
	if _, err := os.NewFile(setupGoAhead, "go ahead").Read(word); err != nil {
		return errors.New("the process that was starting the machine is gone")
	}
	state, err := readState(dir)
	if err != nil {
		return err
	}
	hierarchies, err := cgroup.Hierarchies()
	if err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("making a cgroup namespace: %w", err)
	}
	config := state.Config
	if err := mountRoot(config, hierarchies); err != nil {
		return err
	}
	if err := writeInsideConfig(config); err != nil {
		return err
	}
	if err := pivot(config.Root()); err != nil {
		return fmt.Errorf("entering the machine's root: %w", err)
	}
	if err := unix.Sethostname([]byte(config.Hostname)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	return nil
}

func writeInsideConfig(config Config) error {
	data, err := json.Marshal(config)
	if err != nil {
		return err
	}
	path := config.Path(insideConfig)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

func readInsideConfig() (Config, error) {
	var config Config
	data, err := os.ReadFile(insideConfig)
	if err != nil {
		return config, err
	}
	return config, json.Unmarshal(data, &config)
}

// pivot makes root the process's / and detaches the host's root.
func pivot(root string) error {
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	// The old root is now mounted on top of the new one.
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}
