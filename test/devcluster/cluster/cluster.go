// SPDX-License-Identifier: Apache-2.0

// Package cluster is the management cluster of the embedded environment: one machine that is etcd, the control plane of
// Kubernetes and a node, and as many other nodes as are asked for.
package cluster

import (
	"context"
	"errors"
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

// RegistryInside is where the machine sees the registry's folder, and storeInside the object store's.
const RegistryInside, storeInside = "/var/lib/registry", "/var/lib/s3"

// Start makes the files of a node's machine and starts it, unless it runs. It returns before the node is ready. The first node comes first:
// it signs what the others need, and they are plugged into it. There are as many nodes as nodes has.
func Start(ctx context.Context, e env.Env, n env.Node, nodes []env.Node) (*machine.Machine, error) {
	specs, err := images.Pullspecs(e.Images(), env.Registry)
	if err != nil {
		return nil, err
	}
	config := Machine(e, n)
	if err := renderRoot(config.Root(), newValues(n, specs)); err != nil {
		return nil, fmt.Errorf("writing the files of machine %s: %w", n.Name, err)
	}
	if n.First() {
		if err := writeCertificates(e, config.Root()); err != nil {
			return nil, fmt.Errorf("writing the certificates of the control plane: %w", err)
		}
		if err := errors.Join(prepareRegistry(e), prepareStore(e)); err != nil {
			return nil, err
		}
	}
	if err := writeNodeCertificates(Machine(e, nodes[0]).Root(), n, config.Root()); err != nil {
		return nil, fmt.Errorf("writing the certificates of machine %s: %w", n.Name, err)
	}
	started, err := machine.Start(ctx, config)
	if err != nil {
		return nil, err
	}
	// The other end of its cable goes with the first node, and the node goes on.
	if err := network.Ensure(config.Name, config.Network); err != nil {
		return nil, err
	}
	return started, ensureRoutes(n, nodes)
}

// Machine is what the machine of a node is made of.
func Machine(e env.Env, n env.Node) machine.Config {
	config := machine.Config{
		Name:     n.Namespace,
		Dir:      e.Node(n),
		Hostname: n.Name,
		Network:  plugged(n),
		Binds: []machine.Bind{
			{Source: e.Bin, Target: programs},
			{Source: filepath.Join(e.Bin, "os"), Target: "/opt/os"},
			{Source: filepath.Join(e.Bin, "cni"), Target: "/opt/cni/bin"},
		},
	}
	if n.First() {
		config.Binds = append(config.Binds, machine.Bind{Source: e.RegistryDir(), Target: RegistryInside, Writable: true},
			machine.Bind{Source: e.StoreDir(), Target: storeInside, Writable: true})
		return config
	}
	config.Binds = append(config.Binds, machine.Bind{Source: e.RegistryCA(), Target: RegistryInside + "/ca.crt"})
	return config
}

// plugged is a node's network: the first one has the bridge, with the host at it, and the others a cable to it.
func plugged(n env.Node) network.Config {
	if !n.First() {
		return network.Config{Links: []network.Link{{
			Inside:  network.End{Name: nodeLink, Address: n.Address + "/24", Gateway: env.Gateway},
			Outside: network.End{Namespace: env.Namespace, Name: n.Namespace, Bridge: env.Bridge},
		}}}
	}
	return network.Config{
		Bridges: []network.Bridge{{Name: env.Bridge, Address: env.Gateway + "/24"}},
		Links: []network.Link{{
			Inside:  network.End{Name: env.HostLinkPeer, Bridge: env.Bridge},
			Outside: network.End{Name: env.HostLink, Address: env.Host + "/24"},
		}},
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
