// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/openshift/hypershift/test/devcluster/cluster"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/machine"
)

// nodes returns the desired nodes of the management cluster: as many as requested, and at least the existing ones.
func (e *Environment) nodes() ([]env.Node, error) {
	if e.Nodes < 0 || e.Nodes > env.MaxNodes {
		return nil, fmt.Errorf("--nodes %d: the management cluster has 1 to %d nodes", e.Nodes, env.MaxNodes)
	}
	there, err := e.nodesThere()
	if err != nil {
		return nil, err
	}
	// A cluster with one node has no zones, and a Node's zone is set at its creation.
	if there == 1 && e.Nodes > 1 {
		return nil, fmt.Errorf("--nodes %d: the environment in %s has one node: take it down first", e.Nodes, e.Dir)
	}
	return env.Nodes(max(1, there, e.Nodes)), nil
}

// nodesThere counts the nodes whose machines were created.
func (e *Environment) nodesThere() (int, error) {
	there := 0
	for _, n := range env.Nodes(env.MaxNodes) {
		_, err := machine.Lookup(e.Node(n))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		there = n.Number
	}
	return there, nil
}

// node returns the node with this name, which must exist, and all nodes.
func (e *Environment) node(name string) (env.Node, []env.Node, error) {
	there, err := e.nodesThere()
	if err != nil {
		return env.Node{}, nil, err
	}
	nodes, names := env.Nodes(max(1, there)), []string{}
	for _, n := range nodes {
		if n.Name == name {
			return n, nodes, nil
		}
		names = append(names, n.Name)
	}
	return env.Node{}, nil, fmt.Errorf("there is no node %q: the nodes are %s", name, strings.Join(names, ", "))
}

// StopNode stops a node immediately, as if its power were cut. Its disk stays.
func (e *Environment) StopNode(ctx context.Context, name string) error {
	n, _, err := e.node(name)
	if err != nil {
		return err
	}
	if n.First() {
		return fmt.Errorf("node %s is the control plane of the management cluster: stop another one", name)
	}
	found, err := machine.Lookup(e.Node(n))
	if err != nil {
		return err
	}
	return found.Kill(ctx)
}

// StartNode starts a stopped node with its disk.
func (e *Environment) StartNode(ctx context.Context, name string) error {
	n, nodes, err := e.node(name)
	if err != nil {
		return err
	}
	_, err = cluster.Start(ctx, e.Env, n, nodes)
	return err
}

// WipeNode deletes the content of the volumes of a stopped node, as if a disk had been replaced.
func (e *Environment) WipeNode(name string) error {
	n, _, err := e.node(name)
	if err != nil {
		return err
	}
	if found, err := machine.Lookup(e.Node(n)); err == nil && found.Running() {
		return fmt.Errorf("node %s runs: stop it first", name)
	}
	volumes, err := filepath.Glob(filepath.Join(cluster.Machine(e.Env, n).Root(), "var/lib/volumes", "*", "*"))
	if err != nil {
		return err
	}
	for _, inside := range volumes {
		if err := os.RemoveAll(inside); err != nil {
			return fmt.Errorf("wiping the volumes of node %s: %w", name, err)
		}
	}
	return nil
}

// CutNode disconnects a node from the network, or reconnects it.
func (e *Environment) CutNode(name string, off bool) error {
	n, _, err := e.node(name)
	if err != nil {
		return err
	}
	return cluster.Cut(n, off)
}

func (e *Environment) nodeLog(n env.Node, unit string) string {
	return filepath.Join(e.Node(n), "root/var/log/units", unit+".service.log")
}

func machines(nodes []env.Node) string {
	if len(nodes) == 1 {
		return "management machine"
	}
	return fmt.Sprintf("%d management machines", len(nodes))
}
