// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// DrainTag is the tag of a VM host on which this product must not compose new VMs.
const DrainTag = "hypershift-drain"

// ListVMHosts returns the VM hosts. IsGone is true for the error if this version of MAAS no longer has VM hosts.
func (c *Client) ListVMHosts(ctx context.Context) ([]VMHost, error) {
	return fetch[[]VMHost](ctx, c, read("vm-hosts.list", "list VM hosts", "vm-hosts/"))
}

// GetVMHost returns one VM host.
func (c *Client) GetVMHost(ctx context.Context, id int) (VMHost, error) {
	return fetch[VMHost](ctx, c, read("vm-hosts.get", "read VM host "+strconv.Itoa(id), vmHostPath(id)))
}

// CreateVMHost registers a VM host. properties are the parameters of the MAAS API (type, power_address, name, zone,
// pool, password, project, ...). It requires an administrator.
func (c *Client) CreateVMHost(ctx context.Context, properties map[string]string) (VMHost, error) {
	p := params{}
	for key, value := range properties {
		p.add(key, value)
	}
	return fetch[VMHost](ctx, c, call{name: "vm-hosts.create", what: "register VM host " + properties["name"], method: http.MethodPost, path: "vm-hosts/", params: p.values()})
}

// UpdateVMHost changes properties such as tags, zone, pool, cpu_over_commit_ratio, default_storage_pool. It requires an
// administrator.
func (c *Client) UpdateVMHost(ctx context.Context, id int, properties map[string]string) (VMHost, error) {
	p := params{}
	for key, value := range properties {
		p.set(key, value)
	}
	return fetch[VMHost](ctx, c, call{name: "vm-hosts.update", what: "update VM host " + strconv.Itoa(id), method: http.MethodPut, path: vmHostPath(id), params: p.values()})
}

// RefreshVMHost makes MAAS refresh its data about the host and its VMs. It requires an administrator.
func (c *Client) RefreshVMHost(ctx context.Context, id int) (VMHost, error) {
	return fetch[VMHost](ctx, c, vmHostOp("refresh", "refresh", id, nil))
}

// AddVMHostTag adds a tag to a VM host. It has no effect if the host has the tag. It requires an administrator.
func (c *Client) AddVMHostTag(ctx context.Context, id int, tag string) (VMHost, error) {
	return fetch[VMHost](ctx, c, vmHostOp("add_tag", "tag", id, params{}.add("tag", tag)))
}

// RemoveVMHostTag removes a tag from a VM host. It has no effect if the host lacks the tag. It requires an
// administrator.
func (c *Client) RemoveVMHostTag(ctx context.Context, id int, tag string) (VMHost, error) {
	return fetch[VMHost](ctx, c, vmHostOp("remove_tag", "untag", id, params{}.add("tag", tag)))
}

// VMHostParameters are the parameters with which MAAS connects to a VM host. The secret parameters are not decoded.
type VMHostParameters struct {
	PowerAddress string `json:"power_address"`
	// Project is the LXD project in which MAAS composes VMs; empty for a virsh host.
	Project string `json:"project"`
}

// GetVMHostParameters returns the address and the project of a VM host. It requires an administrator.
func (c *Client) GetVMHostParameters(ctx context.Context, id int) (VMHostParameters, error) {
	request := vmHostOp("parameters", "read the parameters of", id, nil)
	request.method = http.MethodGet
	return fetch[VMHostParameters](ctx, c, request)
}

// DeleteVMHost removes a VM host and its machines from MAAS; decompose destroys the VMs too. It requires an
// administrator.
func (c *Client) DeleteVMHost(ctx context.Context, id int, decompose bool) error {
	return c.do(ctx, call{name: "vm-hosts.delete", what: "remove VM host " + strconv.Itoa(id), method: http.MethodDelete, path: vmHostPath(id),
		params: params{}.flag("decompose", decompose).values()}, nil)
}

// composeTimeout is the time limit of a call that composes a VM, for which MAAS allows its rack 120 s.
const composeTimeout = 130 * time.Second

// ComposeRequest configures the VM to compose. Zone, pool and domain are IDs; if they are nil, MAAS chooses.
type ComposeRequest struct {
	Hostname             string
	Cores, MemoryMiB     int
	Storage, Interfaces  string
	Domain, Zone, Pool   *int
	SkipCommissioning    bool
	Architecture, Pinned string
}

// ComposeMachine composes a VM. It returns a machine with only SystemID and ResourceURI. It requires an administrator.
func (c *Client) ComposeMachine(ctx context.Context, vmHostID int, request ComposeRequest) (*Machine, error) {
	p := params{}.add("hostname", request.Hostname).number("cores", request.Cores).number("memory", request.MemoryMiB)
	p.add("storage", request.Storage).add("interfaces", request.Interfaces).add("architecture", request.Architecture)
	for key, id := range map[string]*int{"domain": request.Domain, "zone": request.Zone, "pool": request.Pool} {
		if id != nil {
			p.set(key, strconv.Itoa(*id))
		}
	}
	p.add("pinned_cores", request.Pinned).flag("skip_commissioning", request.SkipCommissioning)
	return c.machine(ctx, call{timeout: composeTimeout, name: "vm-hosts.compose", what: "compose a VM on VM host " + strconv.Itoa(vmHostID), method: http.MethodPost,
		path: vmHostPath(vmHostID), op: "compose", params: p.values()})
}

func vmHostOp(op, verb string, id int, p params) call {
	return call{name: "vm-hosts." + op, what: verb + " VM host " + strconv.Itoa(id), method: http.MethodPost, path: vmHostPath(id), op: op, params: p.values()}
}

func vmHostPath(id int) string { return "vm-hosts/" + strconv.Itoa(id) + "/" }
