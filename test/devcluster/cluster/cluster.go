// SPDX-License-Identifier: Apache-2.0

// Package cluster runs the management cluster of the embedded environment. Its first machine has etcd, the control
// plane of Kubernetes and a node; every other machine has a node.
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

// programs is the path of the built programs in the machine.
const programs = "/opt/hypershift"

// RegistryInside and storeInside are the paths of the registry's and the object store's folders in the machine.
const RegistryInside, storeInside = "/var/lib/registry", "/var/lib/s3"

// Start writes the files of a node's machine and starts it, unless it runs. It returns before the node is ready.
// Start the first node first: it signs the certificates of the other nodes, and they are connected to it. The list
// nodes contains all nodes of the cluster.
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
	// The node runs, but its link was removed with the first node.
	if err := network.Ensure(config.Name, config.Network); err != nil {
		return nil, err
	}
	return started, ensureRoutes(n, nodes)
}

// Machine returns the configuration of a node's machine.
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

// plugged returns a node's network. The first node has the bridge and a link to the host; every other node has a link
// to the bridge.
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

// prepareRegistry creates the registry's certificates and adds the data of the built images.
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

// RegistryCertificate is the registry's server certificate.
var RegistryCertificate = pki.Leaf{Name: "registry", User: "registry", Hosts: []string{env.Gateway}}
