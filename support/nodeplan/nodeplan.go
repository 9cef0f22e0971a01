// SPDX-License-Identifier: Apache-2.0

// Package nodeplan defines the plan that turns a machine into a node: the ignition-server renders it, node-agent
// applies it. On a machine with cloud-init, the plan replaces the Ignition config and needs no Ignition. On other
// machines the plan is a file of the Ignition config and contains the steps that follow Ignition.
package nodeplan

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Version is the version of the plan's format. A node-agent rejects plans of other versions. Machines download
// node-agent from the server that rendered the plan, so that the two match.
const Version = 1

// Paths of the plan and of the program that applies it.
const (
	Path    = "/var/lib/hypershift/plan.json"
	Program = "/opt/hypershift/bin/node-agent"
)

// Files that a machine needs to call the ignition-server again: the server's address, and the CA of its certificate.
const (
	ServerEndpoint = "/etc/hypershift/ignition-server/endpoint"
	ServerCA       = "/etc/hypershift/ignition-server/ca.crt"
)

// BootstrapKubeconfig is the kubeconfig with which a machine joins the cluster. The plan of an existing Node has none.
const BootstrapKubeconfig = "/etc/kubernetes/bootstrap-kubeconfig"

// ProxyEnvironment is the environment of the node's units on a machine that has a proxy.
const ProxyEnvironment = "/etc/kubernetes/proxy.env"

// FollowUnit is the unit that applies the configuration named in the Node's annotation.
const FollowUnit = "hypershift-node-config.service"

// Plan describes the desired state of a machine before its kubelet starts.
type Plan struct {
	Version int `json:"version"`
	// ConfigHash identifies the configuration of the pool that this plan implements; empty if the server predates the
	// field.
	ConfigHash string `json:"configHash,omitempty"`

	Groups      []Group     `json:"groups,omitempty"`
	Users       []User      `json:"users,omitempty"`
	Directories []Directory `json:"directories,omitempty"`
	Files       []File      `json:"files,omitempty"`
	Links       []Link      `json:"links,omitempty"`
	Units       []Unit      `json:"units,omitempty"`
	// KernelArguments are the required kernel arguments.
	KernelArguments []string `json:"kernelArguments,omitempty"`

	// Node is the image with the node's programs, and Pod is the sandbox image of each pod.
	Node Image `json:"node"`
	Pod  Image `json:"pod"`
	// PullSecret is a .dockerconfigjson; empty for anonymous pulls.
	PullSecret []byte `json:"pullSecret,omitempty"`
	Proxy      Proxy  `json:"proxy,omitzero"`
	// Owned are the files that Ignition wrote, in a plan that contains only the remaining steps. node-agent removes those
	// that a later configuration no longer has.
	Owned []string `json:"owned,omitempty"`
}

// Paths returns the files and links of a plan, including its units.
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

// UnitDir is the folder of systemd units.
const UnitDir = "/etc/systemd/system/"

// Paths returns the files of a unit.
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

// Image is an image that the machine pulls before it has a container runtime.
type Image struct {
	// Name identifies the image.
	Name string `json:"name"`
	// Sources are the locations of the image. The machine pulls it from the first one that has it.
	Sources []Source `json:"sources"`
}

// Source is a location from which an image can be pulled.
type Source struct {
	// Image is its pull spec at this location.
	Image string `json:"image"`
	// Insecure accepts any certificate, and plain HTTP.
	Insecure bool `json:"insecure,omitempty"`
	// CAs are certificate files that are trusted in addition to the system's.
	CAs []string `json:"cas,omitempty"`
}

// Proxy is the proxy between the machine and registries; zero for none.
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
	// Content replaces the existing content. nil keeps it, and creates an empty file if there is none.
	Content []byte `json:"content,omitzero"`
	// Append is added at the end of the file, once.
	Append [][]byte `json:"append,omitempty"`
	// Keep forbids replacing an existing file that has other content.
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
	// Content is the unit file; empty for a unit that is part of the image.
	Content string   `json:"content,omitempty"`
	DropIns []DropIn `json:"dropIns,omitempty"`
	// Enabled starts the unit now and at each boot if true. If false, the unit is stopped and disabled; nil leaves it
	// unchanged.
	Enabled *bool `json:"enabled,omitempty"`
	Masked  bool  `json:"masked,omitempty"`
}

// DropIn is a drop-in file of a unit.
type DropIn struct {
	Name    string `json:"name"`
	Content string `json:"content"`
}

// Parse reads a plan. Its errors contain nothing of the plan, which holds secrets.
func Parse(raw []byte) (*Plan, error) {
	p := &Plan{}
	if err := json.Unmarshal(raw, p); err != nil || p.Version == 0 {
		return nil, fmt.Errorf("%d bytes are not a node plan; check that spec.platform.maas.userDataFormat of the NodePool is CloudConfig", len(raw))
	}
	if p.Version != Version {
		return nil, fmt.Errorf("the node plan has version %d, and this node-agent knows %d", p.Version, Version)
	}
	return p, nil
}
