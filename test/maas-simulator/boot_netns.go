// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/maas-simulator/boot/netns"
	"github.com/openshift/hypershift/test/machine"
)

// becomeMachine does not return if this program was started as PID 1 of a machine. It must come first in main.
func becomeMachine() {
	machine.Init(netns.Boots)
}

// netnsOptions are the flags of the boot backend "netns".
type netnsOptions struct {
	dir, os, ignition, cloudOS, bridge string
}

func (o *netnsOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.dir, "boot-dir", "", "folder that holds the machines, for --boot=netns")
	flags.StringVar(&o.os, "boot-os", "", "folder of programs that the machines see as /opt/os, for --boot=netns (default: os, next to this program)")
	flags.StringVar(&o.ignition, "boot-ignition", "", "Ignition's program, for --boot=netns (default: ignition, next to this program)")
	flags.StringVar(&o.cloudOS, "boot-cloud-os", "", "folder of the operating system of images ubuntu/* and debian/*, for --boot=netns (default: cloud-os, next to this program)")
	flags.StringVar(&o.bridge, "boot-bridge", "hsbr0", "bridge of this network namespace that the machines are plugged into, for --boot=netns")
}

// backend verifies the requirements of machines before the first one starts, and returns the backend.
func (o netnsOptions) backend() (boot.Backend, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("--boot=netns needs root: run as root or choose --boot=none")
	}
	if o.dir == "" {
		return nil, errors.New("--boot=netns needs --boot-dir, a folder for its machines")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	backend := &netns.Backend{Bridge: o.bridge}
	for _, path := range []struct {
		target                         *string
		given, standard, flag, program string
	}{
		{&backend.OS, o.os, "os", "--boot-os", "usr/bin/containerd"},
		{&backend.Ignition, o.ignition, "ignition", "--boot-ignition", ""},
	} {
		if path.given == "" {
			path.given = filepath.Join(filepath.Dir(self), path.standard)
		}
		if *path.target, err = filepath.Abs(path.given); err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(*path.target, path.program)); err != nil {
			return nil, fmt.Errorf("--boot=netns: %w; build it with make os-binaries ignition-binary, or say where it is with %s", err, path.flag)
		}
	}
	// The default need not exist: it is needed only to deploy an image that MAAS ships.
	if o.cloudOS == "" {
		o.cloudOS = filepath.Join(filepath.Dir(self), "cloud-os")
	}
	if backend.CloudOS, err = filepath.Abs(o.cloudOS); err != nil {
		return nil, err
	}
	backend.Dir, err = filepath.Abs(o.dir)
	return backend, err
}
