// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// lowest is the nice value of processes that only get spare CPU time.
const lowest = 19

// background runs a command in its own session, at the lowest priority. Linux divides CPU time among sessions first
// (autogroups, sched(7)). A nice value alone would count only among the processes of this session, and not against the
// daemons of the embedded environment. An interrupt of this program also ends the command.
func background(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

// lower lowers the priority of a started command that background has prepared. Call the returned function after the
// command has ended. A kernel without autogroups keeps the nice value that the command started with.
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
