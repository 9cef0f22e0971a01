// SPDX-License-Identifier: Apache-2.0

// Package netns is a boot backend whose machines are Linux namespaces. Each machine has its own root file system,
// network, processes and disk image. Machines with an image that MAAS ships (ubuntu, debian) run the packages of the
// distribution, including cloud-init. Other machines run an operating system with containerd and Ignition. To MAAS,
// they behave like a machine with cloud-init.
package netns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/openshift/hypershift/test/maas-simulator/boot"
	"github.com/openshift/hypershift/test/machine"
	"github.com/openshift/hypershift/test/machine/network"
	"github.com/openshift/hypershift/test/machine/tools"
)

// Boots maps the boot types to the functions that the machines run at boot. A program that uses the backend passes it
// to machine.Init.
var Boots = map[string]machine.Boot{ignitionBoot: bootIgnition, cloudBoot: bootCloud}

const (
	ignitionBoot = "maas-node"
	cloudBoot    = "maas-cloud"
)

// Backend runs machines on this host. It needs root.
type Backend struct {
	// Dir contains a folder for each machine, named after its system ID.
	Dir string
	// OS is the folder that the machines see as /opt/os. It contains containerd, runc and other programs that the host may
	// lack.
	OS string
	// Ignition is the path of the Ignition program.
	Ignition string
	// CloudOS is the folder with the operating system for the images that MAAS ships.
	CloudOS string
	// Bridge is the bridge that the machines are attached to, in the network namespace BridgeNamespace. An empty namespace
	// is the namespace of the caller.
	Bridge, BridgeNamespace string
	// Prefix is the prefix of the names of the machines' network namespaces; empty means "hs-".
	Prefix string
	// CgroupParent is the parent of the machines' cgroups; empty means machine.DefaultCgroupParent.
	CgroupParent string
}

var _ boot.Backend = (*Backend)(nil)

const (
	osTarget       = "/opt/os"
	ignitionTarget = "/run/machine/ignition"
	firstBootDone  = "/var/lib/machine/first-boot-done"
)

// name returns the name of the machine's network namespace, of its cgroup and of its port on the bridge.
func (b *Backend) name(systemID string) string {
	if b.Prefix == "" {
		return "hs-" + systemID
	}
	return b.Prefix + systemID
}

func (b *Backend) dir(systemID string) string { return filepath.Join(b.Dir, systemID) }

// lookup returns the machine, or nil if it never started.
func (b *Backend) lookup(systemID string) (*machine.Machine, error) {
	m, err := machine.Lookup(b.dir(systemID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return m, err
}

// Install stops the machine, deletes its disks and writes the image to new ones.
func (b *Backend) Install(ctx context.Context, spec boot.Spec) error {
	if err := b.Erase(ctx, spec.SystemID); err != nil {
		return err
	}
	if err := b.install(ctx, spec); err != nil {
		return fmt.Errorf("installing %s/%s on machine %s: %w", spec.OSystem, spec.Series, spec.SystemID, err)
	}
	return nil
}

func (b *Backend) install(ctx context.Context, spec boot.Spec) error {
	dir := b.dir(spec.SystemID)
	if err := writeDisks(dir, spec); err != nil {
		return err
	}
	if isCloud(spec) {
		return b.installCloud(ctx, spec)
	}
	return unpackImage(filepath.Join(dir, "root"))
}

// PowerOn starts the machine. It does nothing if the machine is on. An ephemeral machine starts from a new
// installation.
func (b *Backend) PowerOn(ctx context.Context, spec boot.Spec) error {
	state, err := b.Power(ctx, spec.SystemID)
	if err != nil || state == boot.On {
		return err
	}
	if spec.Blank {
		if err := b.wipe(ctx, spec.SystemID); err != nil {
			return err
		}
	}
	if blank, err := b.searches(spec.SystemID, boot.On); blank || err != nil {
		return err
	}
	if spec.Ephemeral {
		if err := b.Install(ctx, spec); err != nil {
			return err
		}
	}
	config, err := b.config(spec)
	if err != nil {
		return fmt.Errorf("powering on machine %s: %w", spec.SystemID, err)
	}
	if _, err := machine.Start(ctx, config); err != nil {
		return fmt.Errorf("powering on machine %s: %w", spec.SystemID, err)
	}
	return nil
}

// PowerOff stops the machine.
func (b *Backend) PowerOff(ctx context.Context, systemID string) error {
	if blank, err := b.searches(systemID, boot.Off); blank || err != nil {
		return err
	}
	m, err := b.lookup(systemID)
	if err != nil || m == nil {
		return err
	}
	if err := m.Stop(ctx); err != nil {
		return fmt.Errorf("powering off machine %s: %w", systemID, err)
	}
	return nil
}

// Power reports whether the machine runs.
func (b *Backend) Power(_ context.Context, systemID string) (boot.State, error) {
	if state, err := os.ReadFile(b.blank(systemID)); err == nil {
		return boot.State(state), nil
	}
	m, err := b.lookup(systemID)
	if err != nil {
		return boot.Off, err
	}
	if m != nil && m.Running() {
		return boot.On, nil
	}
	return boot.Off, nil
}

// Erase stops the machine and deletes all of its data.
func (b *Backend) Erase(ctx context.Context, systemID string) error {
	m, err := b.lookup(systemID)
	if err != nil {
		return err
	}
	if m != nil {
		return m.Remove(ctx)
	}
	if err := os.RemoveAll(b.dir(systemID)); err != nil {
		return fmt.Errorf("erasing machine %s: %w", systemID, err)
	}
	return nil
}

func (b *Backend) config(spec boot.Spec) (machine.Config, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return machine.Config{}, err
	}
	dir := b.dir(spec.SystemID)
	config := machine.Config{
		Name: b.name(spec.SystemID), Dir: dir, Hostname: spec.Hostname, CgroupParent: b.CgroupParent,
		Network: network.Config{Links: []network.Link{b.link(spec)}},
		Boot:    ignitionBoot, BootData: data,
	}
	if isCloud(spec) {
		config.System, config.Boot = b.CloudOS, cloudBoot
		// cloud-init configures the network.
		config.Network.Links[0].Inside.Address, config.Network.Links[0].Inside.Gateway = "", ""
	} else {
		// The tools replace systemctl and other programs of the host that need systemd.
		config.Env = []string{"PATH=" + tools.Dir + ":" + machine.DefaultPath}
		config.Binds = []machine.Bind{{Source: b.OS, Target: osTarget}, {Source: b.Ignition, Target: ignitionTarget}}
	}
	for _, disk := range spec.Disks {
		config.Disks = append(config.Disks, machine.Disk{Name: disk.Name, Image: diskPath(dir, disk.Name)})
	}
	return config, nil
}

func (b *Backend) link(spec boot.Spec) network.Link {
	inside := network.End{Name: "eth0", MAC: spec.MAC}
	if len(spec.Addresses) > 0 {
		inside.Address = spec.Addresses[0].String()
	}
	if spec.Gateway != (netip.Addr{}) {
		inside.Gateway = spec.Gateway.String()
	}
	return network.Link{
		Inside:  inside,
		Outside: network.End{Namespace: b.BridgeNamespace, Name: b.name(spec.SystemID), Bridge: b.Bridge},
	}
}
