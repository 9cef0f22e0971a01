// SPDX-License-Identifier: Apache-2.0

// Package host changes the network of a node: its CNI plugins and configuration, its routes, and its packet filter
// rules.
package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"k8s.io/klog/v2"
)

// CNI holds the inputs of a node's CNI configuration.
type CNI struct {
	// PodNetworks are the networks from which the node's pods get addresses, one for each address family.
	PodNetworks []netip.Prefix
	// MTU is the MTU of the pods' interfaces in bytes; zero uses the kernel's default.
	MTU int
}

// ConfigFile is a CNI network configuration list.
type ConfigFile struct {
	// Path is the path of the file.
	Path string
}

// Ensure writes the configuration, unless the file already contains it.
func (f ConfigFile) Ensure(cni CNI) error {
	content, err := cni.conflist()
	if err != nil {
		return fmt.Errorf("encoding the CNI configuration: %w", err)
	}
	existing, err := os.ReadFile(f.Path)
	if err == nil && bytes.Equal(existing, content) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the CNI configuration: %w", err)
	}
	klog.InfoS("writing the CNI configuration", "path", f.Path, "podNetworks", cni.PodNetworks, "mtu", cni.MTU)
	if err := replaceFile(f.Path, content, 0o644); err != nil {
		return fmt.Errorf("writing the CNI configuration: %w", err)
	}
	return nil
}

type object = map[string]any

func (c CNI) conflist() ([]byte, error) {
	var ranges [][]object
	var routes []object
	for _, network := range c.PodNetworks {
		ranges = append(ranges, []object{{"subnet": network.String()}})
		everywhere := "0.0.0.0/0"
		if network.Addr().Is6() {
			everywhere = "::/0"
		}
		routes = append(routes, object{"dst": everywhere})
	}
	ptp := object{
		"type":   "ptp",
		"ipMasq": false, // The agent's own rules cover the complete cluster.
		"ipam":   object{"type": "host-local", "ranges": ranges, "routes": routes},
	}
	if c.MTU > 0 {
		ptp["mtu"] = c.MTU
	}
	portmap := object{"type": "portmap", "capabilities": object{"portMappings": true}}
	content, err := json.MarshalIndent(object{
		"cniVersion": "1.0.0", "name": "hypershift", "plugins": []object{ptp, portmap},
	}, "", "  ")
	return append(content, '\n'), err
}

// InstallPlugins copies the CNI plugins to a folder of the host. It skips plugins that already have the same content.
// It replaces the file of another plugin instead of overwriting it, because the plugin may be running.
func InstallPlugins(from, to string) error {
	plugins, err := os.ReadDir(from)
	if err != nil {
		return fmt.Errorf("reading the CNI plugins of the image: %w", err)
	}
	for _, plugin := range plugins {
		if err := installPlugin(filepath.Join(from, plugin.Name()), filepath.Join(to, plugin.Name())); err != nil {
			return fmt.Errorf("installing CNI plugin %s: %w", plugin.Name(), err)
		}
	}
	return nil
}

//nolint:gosec // The container runtime runs plugins, as whichever user it has.
func installPlugin(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	existing, err := os.ReadFile(to)
	if err == nil && bytes.Equal(existing, content) {
		return os.Chmod(to, 0o755)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return replaceFile(to, content, 0o755)
}

// replaceFile writes a file in one step: a reader sees either the old or the new content. The temporary name begins
// with a dot, so that CNI runtimes ignore it.
//
//nolint:gosec // The paths come from the agent's flags, and the folders are read by the container runtime.
func replaceFile(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(temporary, content, mode); err != nil {
		return err
	}
	if err := os.Chmod(temporary, mode); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
