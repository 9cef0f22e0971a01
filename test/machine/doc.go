// SPDX-License-Identifier: Apache-2.0

// Package machine runs a Linux machine made of namespaces. It has its own root file system, mounts, processes, host
// name, network and cgroups, on the host's kernel and with the host's /usr read-only. Its mounts, bridges, iptables
// rules and processes are not visible in the host's own namespaces, and all of them end with the machine.
//
// PID 1 of a machine is the caller's program, which must call Init first in main. PID 1 runs the Boot that Config
// names, then the enabled systemd units of the machine's /etc/systemd/system (see package units for the supported
// features). It reaps processes, and shuts down in order at SIGTERM.
//
// A machine outlives the process that started it; Lookup finds it again.
package machine
