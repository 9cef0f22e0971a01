// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// lowest is the priority of what may only use processor time that is left over.
const lowest = 19

// background gives a command a session of its own, at the lowest priority. Linux shares processor time among sessions
// first (autogroups, sched(7)): a nice value alone would count among the processes of this session only, and not
// against the daemons of the embedded environment. An interrupt of this program ends the command too.
func background(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

// lower lowers the priority of a command that background prepared and that was started. It returns what to call when
// the command has ended. A kernel without autogroups keeps the nice value that the command began with.
func lower(process *os.Process) (ended func()) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", process.Pid), fmt.Append(nil, lowest), 0)
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		if _, ok := <-interrupts; ok {
			_ = syscall.Kill(-process.Pid, syscall.SIGTERM)
			os.Exit(1)
		}
	}()
	return func() {
		signal.Stop(interrupts)
		close(interrupts)
	}
}
