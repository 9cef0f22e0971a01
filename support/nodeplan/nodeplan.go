// SPDX-License-Identifier: Apache-2.0

// Package nodeplan is what a machine is made a node by: the ignition-server renders it, node-agent applies it. On a machine with
// cloud-init it says the same as the Ignition config of the other machines, in a form that needs no Ignition; there it is a file of that
// config, and holds what is left to do when Ignition is through.
package nodeplan

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Version is that of the form. A node-agent refuses plans of another: it comes from the server that rendered the plan, so that
// the two fit together.
const Version = 1

// Where a machine has its plan and the program that applies it.
const (
	Path    = "/var/lib/hypershift/plan.json"
	Program = "/opt/hypershift/bin/node-agent"
)

// What a machine needs to ask the ignition-server again: its address, and the CA that it has its certificate from.
const (
	ServerEndpoint = "/etc/hypershift/ignition-server/endpoint"
	ServerCA       = "/etc/hypershift/ignition-server/ca.crt"
)

// BootstrapKubeconfig is what a machine joins with. A Node's plan has none.
const BootstrapKubeconfig = "/etc/kubernetes/bootstrap-kubeconfig"

// ProxyEnvironment is the environment of the node's units on a machine that has a proxy.
const ProxyEnvironment = "/etc/kubernetes/proxy.env"

// FollowUnit is the unit that brings a Node to the configuration that its annotation names.
const FollowUnit = "hypershift-node-config.service"

// Plan is all that a machine is to have before its kubelet starts.
type Plan struct {
	Version int `json:"version"`
	// ConfigHash names the configuration of the pool that this is the plan of; empty when the server is older than that.
	ConfigHash string `json:"configHash,omitempty"`

	Groups      []Group     `json:"groups,omitempty"`
	Users       []User      `json:"users,omitempty"`
	Directories []Directory `json:"directories,omitempty"`
	Files       []File      `json:"files,omitempty"`
	Links       []Link      `json:"links,omitempty"`
	Units       []Unit      `json:"units,omitempty"`
	// KernelArguments are those that the kernel must have been started with.
	KernelArguments []string `json:"kernelArguments,omitempty"`

	// Node holds the programs of a node, and Pod is the sandbox of each pod.
	Node Image `json:"node"`
	Pod  Image `json:"pod"`
	// PullSecret is a .dockerconfigjson; empty for anonymous pulls.
	PullSecret []byte `json:"pullSecret,omitempty"`
	Proxy      Proxy  `json:"proxy,omitzero"`
	// Owned are the files of the configuration that Ignition wrote, for a plan that holds the rest only: a later configuration that no
	// longer has them takes them away.
	Owned []string `json:"owned,omitempty"`
}

// Paths are the files and links that a plan has on a machine, units among them.
func (p *Plan) Paths() []string {
	paths := slices.Clone(p.Owned)
	for _, f := range p.Files {
		paths = append(paths, f.Path)
	}
	for _, l := range p.Links {
		paths = append(paths, l.Path)
	}
	for _, u := range p.Units {
		paths = append(paths, u.Paths()...)
	}
	return paths
}

// UnitDir is where units are.
const UnitDir = "/etc/systemd/system/"

// Paths are the files of a unit.
func (u Unit) Paths() []string {
	var paths []string
	if u.Content != "" || u.Masked {
		paths = append(paths, UnitDir+u.Name)
	}
	for _, d := range u.DropIns {
		paths = append(paths, UnitDir+u.Name+".d/"+d.Name)
	}
	return paths
}

// Image is one that the machine pulls before it has a container runtime.
type Image struct {
	// Name is what it is known by.
	Name string `json:"name"`
	// Sources are where it is pulled from, the first that has it.
	Sources []Source `json:"sources"`
}

// Source is one place to pull an image from.
type Source struct {
	// Image is its pull spec there.
	Image string `json:"image"`
	// Insecure accepts any certificate, and plain HTTP.
	Insecure bool `json:"insecure,omitempty"`
	// CAs are files of certificates that are trusted beside the system's.
	CAs []string `json:"cas,omitempty"`
}

// Proxy is what stands between the machine and registries; zero for nothing.
type Proxy struct {
	HTTP    string `json:"http,omitempty"`
	HTTPS   string `json:"https,omitempty"`
	NoProxy string `json:"noProxy,omitempty"`
}

// Owner is a user and a group, each by name or number; empty for root.
type Owner struct {
	User  string `json:"user,omitempty"`
	Group string `json:"group,omitempty"`
}

// Directory is a folder.
type Directory struct {
	Path  string `json:"path"`
	Mode  uint32 `json:"mode"`
	Owner Owner  `json:"owner,omitzero"`
}

// File is a regular file.
type File struct {
	Path  string `json:"path"`
	Mode  uint32 `json:"mode"`
	Owner Owner  `json:"owner,omitzero"`
	// Content replaces what is there; nil keeps it, and makes an empty file where there is none.
	Content []byte `json:"content,omitzero"`
	// Append is added at the end, once.
	Append [][]byte `json:"append,omitempty"`
	// Keep refuses to replace a file that is there with another content.
	Keep bool `json:"keep,omitempty"`
}

// Link is a second name of a file.
type Link struct {
	Path   string `json:"path"`
	Target string `json:"target"`
	Hard   bool   `json:"hard,omitempty"`
	Owner  Owner  `json:"owner,omitzero"`
}

// Group is a group of users.
type Group struct {
	Name   string `json:"name"`
	GID    *int   `json:"gid,omitempty"`
	System bool   `json:"system,omitempty"`
	Absent bool   `json:"absent,omitempty"`
}

// User is a login.
type User struct {
	Name         string   `json:"name"`
	UID          *int     `json:"uid,omitempty"`
	Comment      string   `json:"comment,omitempty"`
	Home         string   `json:"home,omitempty"`
	NoHome       bool     `json:"noHome,omitempty"`
	Shell        string   `json:"shell,omitempty"`
	PrimaryGroup string   `json:"primaryGroup,omitempty"`
	NoUserGroup  bool     `json:"noUserGroup,omitempty"`
	Groups       []string `json:"groups,omitempty"`
	System       bool     `json:"system,omitempty"`
	Absent       bool     `json:"absent,omitempty"`
	PasswordHash string   `json:"passwordHash,omitempty"`
	SSHKeys      []string `json:"sshKeys,omitempty"`
}

// Unit is a unit of systemd.
type Unit struct {
	Name string `json:"name"`
	// Content is the unit file; empty for a unit that the image has.
	Content string   `json:"content,omitempty"`
	DropIns []DropIn `json:"dropIns,omitempty"`
	// Enabled has the unit started now and at each boot, or no more; nil leaves it as it is.
	Enabled *bool `json:"enabled,omitempty"`
	Masked  bool  `json:"masked,omitempty"`
}

// DropIn is a file over a unit's.
type DropIn struct {
	Name    string `json:"name"`
	Content string `json:"content"`
}

// Parse reads a plan. Its errors hold nothing of it: it has secrets.
func Parse(raw []byte) (*Plan, error) {
	p := &Plan{}
	if err := json.Unmarshal(raw, p); err != nil || p.Version == 0 {
		return nil, fmt.Errorf("%d bytes that are no node plan: is spec.platform.maas.userDataFormat of the NodePool CloudConfig?", len(raw))
	}
	if p.Version != Version {
		return nil, fmt.Errorf("the node plan has version %d, and this node-agent knows %d", p.Version, Version)
	}
	return p, nil
}
