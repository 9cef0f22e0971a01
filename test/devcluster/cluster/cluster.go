// SPDX-License-Identifier: Apache-2.0

// Package cluster is the management cluster of the embedded environment: one machine that is etcd, the control plane of
// Kubernetes and its only node.
package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/images"
	"github.com/openshift/hypershift/test/devcluster/pki"
	"github.com/openshift/hypershift/test/machine"
	"github.com/openshift/hypershift/test/machine/network"
)

// programs is where the machine sees the built programs.
const programs = "/opt/hypershift"

// RegistryInside is where the machine sees the registry's folder.
const RegistryInside = "/var/lib/registry"

// Start makes the machine's files and starts it, unless it runs. It returns before the cluster is ready.
func Start(ctx context.Context, e env.Env) (*machine.Machine, error) {
	specs, err := images.Pullspecs(e.Images(), env.Registry)
	if err != nil {
		return nil, err
	}
	config := Machine(e)
	if err := renderRoot(config.Root(), newValues(specs)); err != nil {
		return nil, fmt.Errorf("writing the files of the management machine: %w", err)
	}
	if err := writeCertificates(e, config.Root()); err != nil {
		return nil, fmt.Errorf("writing the certificates of the management machine: %w", err)
	}
	if err := prepareRegistry(e); err != nil {
		return nil, err
	}
	started, err := machine.Start(ctx, config)
	if err != nil {
		return nil, err
	}
	return started, ensureServiceRoute()
}

// Machine is what the management machine is made of.
func Machine(e env.Env) machine.Config {
	return machine.Config{
		Name:     env.Namespace,
		Dir:      e.Management(),
		Hostname: node,
		Network: network.Config{
			Bridges: []network.Bridge{{Name: env.Bridge, Address: env.Gateway + "/24"}},
			Links: []network.Link{{
				Inside:  network.End{Name: env.HostLinkPeer, Bridge: env.Bridge},
				Outside: network.End{Name: env.HostLink, Address: env.Host + "/24"},
			}},
		},
		Binds: []machine.Bind{
			{Source: e.Bin, Target: programs},
			{Source: filepath.Join(e.Bin, "os"), Target: "/opt/os"},
			{Source: filepath.Join(e.Bin, "cni"), Target: "/opt/cni/bin"},
			{Source: e.RegistryDir(), Target: RegistryInside, Writable: true},
		},
	}
}

// prepareRegistry makes the registry's certificates and gives it the data of the built images.
func prepareRegistry(e env.Env) error {
	if err := os.MkdirAll(e.RegistryDir(), 0o755); err != nil {
		return err
	}
	authority, err := pki.Ensure(e.RegistryDir(), "ca")
	if err != nil {
		return err
	}
	if _, err := authority.Issue(RegistryCertificate); err != nil {
		return err
	}
	return images.Seed(e.Images(), filepath.Join(e.RegistryDir(), "blobs"))
}

// RegistryCertificate is what the registry shows.
var RegistryCertificate = pki.Leaf{Name: "registry", User: "registry", Hosts: []string{env.Gateway}}
