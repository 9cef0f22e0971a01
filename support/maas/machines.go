// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
)

// MachineFilter selects machines. A machine must match each field that is set. For fields with several values, it must
// match any of them, except that it must have all of Tags and none of NotTags.
type MachineFilter struct {
	SystemIDs, Hostnames, MACAddresses, Domains, AgentNames []string
	Statuses                                                []Status
	Zones, NotZones, Pools, NotPools, Tags, NotTags         []string
	Architectures, Owners, PowerStates, VMHosts             []string
	CPUCount, MemoryMiB                                     int
}

func (f MachineFilter) params() url.Values {
	p := params{}
	p.add("id", f.SystemIDs...).add("hostname", f.Hostnames...).add("mac_address", f.MACAddresses...)
	p.add("domain", f.Domains...).add("agent_name", f.AgentNames...)
	for _, status := range f.Statuses {
		p.add("status", status.Word())
	}
	p.add("zone", f.Zones...).add("not_in_zone", f.NotZones...).add("pool", f.Pools...).add("not_in_pool", f.NotPools...)
	p.add("tags", f.Tags...).add("not_tags", f.NotTags...).add("arch", f.Architectures...)
	p.add("owner", f.Owners...).add("power_state", f.PowerStates...).add("pod", f.VMHosts...)
	return p.number("cpu_count", f.CPUCount).number("mem", f.MemoryMiB).values()
}

// ListMachines returns the machines that the user may see and that match the filter.
func (c *Client) ListMachines(ctx context.Context, filter MachineFilter) ([]Machine, error) {
	var machines []Machine
	request := call{name: "machines.list", what: "list machines", method: http.MethodGet, path: "machines/", params: filter.params()}
	if len(filter.SystemIDs) > 0 || len(filter.AgentNames) > 0 {
		err := c.do(ctx, request, &machines)
		return machines, err
	}
	request.timeout = c.patience.limit(c.cfg.ReadTimeout)
	start := c.cfg.Clock.Now()
	err := c.do(ctx, request, &machines)
	c.patience.learn(ctx, err, c.cfg.Clock.Since(start) < c.cfg.ReadTimeout)
	return machines, err
}

// GetMachine returns one machine.
func (c *Client) GetMachine(ctx context.Context, systemID string) (*Machine, error) {
	return c.machine(ctx, call{name: "machines.get", what: "read machine " + systemID, systemID: systemID, method: http.MethodGet, path: machinePath(systemID)})
}

// AllocateRequest selects the machine to allocate. Zero fields do not restrict the selection.
type AllocateRequest struct {
	// Name is the host name. SystemID is the ID of the only acceptable machine; with a SystemID, MAAS never composes a VM.
	Name, SystemID string
	Architecture   string
	// CPUCount and MemoryMiB are minimums.
	CPUCount, MemoryMiB int
	// Tags are the tags that the machine must have, and NotTags those that it must not have.
	Tags, NotTags []string
	// Zone and Pool are names.
	Zone, Pool         string
	NotZones, NotPools []string
	// Storage is "[label:]GB[(tag,...)],...", where the first disk is the root disk. GB is 10^9 bytes.
	Storage string
	// Interfaces is "label:key=value,...;label2:...".
	Interfaces  string
	Subnets     []string
	NotPodTypes []string
	// AgentName is stored with the allocation, in the same transaction. ListMachines can filter by it.
	AgentName string
	Comment   string
	// DryRun selects a machine without allocating it.
	DryRun bool
}

func (r AllocateRequest) params() url.Values {
	p := params{}
	p.add("name", r.Name).add("system_id", r.SystemID).add("arch", r.Architecture)
	p.number("cpu_count", r.CPUCount).number("mem", r.MemoryMiB)
	p.add("tags", r.Tags...).add("not_tags", r.NotTags...)
	p.add("zone", r.Zone).add("pool", r.Pool).add("not_in_zone", r.NotZones...).add("not_in_pool", r.NotPools...)
	p.add("storage", r.Storage).add("interfaces", r.Interfaces).add("subnets", r.Subnets...).add("not_pod_type", r.NotPodTypes...)
	return p.add("agent_name", r.AgentName).add("comment", r.Comment).flag("dry_run", r.DryRun).values()
}

// AllocateMachine allocates the cheapest Ready machine that matches. IsConflict is true for the error if none matches.
// The caller must check the machine: if nothing matches, a MAAS with VM hosts may compose a machine that ignores name
// and pool.
func (c *Client) AllocateMachine(ctx context.Context, request AllocateRequest) (*Machine, error) {
	return c.machine(ctx, call{name: "machines.allocate", what: "allocate a machine", method: http.MethodPost, path: "machines/", op: "allocate", params: request.params()})
}

// DeployRequest configures a deployment.
type DeployRequest struct {
	// DistroSeries is "<os>/<series>" or "custom/<image>". MAAS reads only this field, and no osystem.
	DistroSeries string
	// UserData is passed to the machine unchanged. Nil sends none.
	UserData []byte
	Comment  string
	// Ephemeral deploys the image into memory.
	Ephemeral bool
	HWEKernel string
	// RegisterVMHost registers the machine as an LXD VM host in MAAS. It requires an administrator.
	RegisterVMHost bool
}

// DeployMachine starts the deployment of an Allocated (or Ready) machine.
func (c *Client) DeployMachine(ctx context.Context, systemID string, request DeployRequest) (*Machine, error) {
	p := params{}
	p.add("distro_series", request.DistroSeries).add("comment", request.Comment).add("hwe_kernel", request.HWEKernel)
	if request.UserData != nil {
		p.set("user_data", base64.StdEncoding.EncodeToString(request.UserData))
	}
	p.flag("ephemeral_deploy", request.Ephemeral).flag("register_vmhost", request.RegisterVMHost)
	return c.machine(ctx, machineOp("deploy", systemID, p))
}

// ReleaseRequest configures the release of a machine.
type ReleaseRequest struct {
	Comment string
	// Erase erases the disks. SecureErase and QuickErase choose the method, if the disk supports it.
	Erase, SecureErase, QuickErase bool
	// Force also removes the VM hosts on the machine and their VMs.
	Force bool
}

// ReleaseMachine starts the release of a machine. It has no effect on a machine that is Ready or Releasing.
func (c *Client) ReleaseMachine(ctx context.Context, systemID string, request ReleaseRequest) (*Machine, error) {
	p := params{}
	p.add("comment", request.Comment).flag("erase", request.Erase || request.SecureErase || request.QuickErase)
	p.flag("secure_erase", request.SecureErase).flag("quick_erase", request.QuickErase).flag("force", request.Force)
	return c.machine(ctx, machineOp("release", systemID, p))
}

// AbortMachine stops the running operation: a deployment (back to Allocated), commissioning, testing or erasing.
func (c *Client) AbortMachine(ctx context.Context, systemID, comment string) (*Machine, error) {
	return c.machine(ctx, machineOp("abort", systemID, params{}.add("comment", comment)))
}

// PowerOnMachine powers on an owned machine. The answer may be empty.
func (c *Client) PowerOnMachine(ctx context.Context, systemID, comment string) (*Machine, error) {
	return c.maybeMachine(ctx, machineOp("power_on", systemID, params{}.add("comment", comment)))
}

// PowerOffMachine powers off a machine; hard does so without its operating system. The answer is empty if the machine
// is already off.
func (c *Client) PowerOffMachine(ctx context.Context, systemID string, hard bool, comment string) (*Machine, error) {
	mode := "soft"
	if hard {
		mode = "hard"
	}
	return c.maybeMachine(ctx, machineOp("power_off", systemID, params{}.add("stop_mode", mode).add("comment", comment)))
}

// QueryPowerState queries the machine's power driver, which can take a minute.
func (c *Client) QueryPowerState(ctx context.Context, systemID string) (PowerState, error) {
	var answer struct {
		State PowerState `json:"state"`
	}
	request := machineOp("query_power_state", systemID, nil)
	request.method = http.MethodGet
	err := c.do(ctx, request, &answer)
	return answer.State, err
}

// MarkMachineBroken marks an owned machine as Broken; the comment becomes its error description.
func (c *Client) MarkMachineBroken(ctx context.Context, systemID, comment string) (*Machine, error) {
	return c.machine(ctx, machineOp("mark_broken", systemID, params{}.add("comment", comment)))
}

// MarkMachineFixed makes a Broken machine Ready. It requires an administrator.
func (c *Client) MarkMachineFixed(ctx context.Context, systemID, comment string) (*Machine, error) {
	return c.machine(ctx, machineOp("mark_fixed", systemID, params{}.add("comment", comment)))
}

// SetWorkloadAnnotations sets annotations of an allocation; an empty value removes its key. A release clears them.
func (c *Client) SetWorkloadAnnotations(ctx context.Context, systemID string, annotations map[string]string) (*Machine, error) {
	p := params{}
	for key, value := range annotations {
		p.set(key, value)
	}
	return c.machine(ctx, machineOp("set_workload_annotations", systemID, p))
}

// UpdateMachine changes properties such as hostname, pool, zone or swap_size. It requires an administrator.
func (c *Client) UpdateMachine(ctx context.Context, systemID string, properties map[string]string) (*Machine, error) {
	p := params{}
	for key, value := range properties {
		p.set(key, value)
	}
	return c.machine(ctx, call{name: "machines.update", what: "update machine " + systemID, systemID: systemID, method: http.MethodPut,
		path: machinePath(systemID), params: p.values()})
}

// DeleteMachine deletes a machine from MAAS. It requires an administrator.
func (c *Client) DeleteMachine(ctx context.Context, systemID string) error {
	return c.do(ctx, call{name: "machines.delete", what: "delete machine " + systemID, systemID: systemID, method: http.MethodDelete, path: machinePath(systemID)}, nil)
}

// GetPowerParameters returns the parameters of a machine's power driver, including secrets. It requires an
// administrator.
func (c *Client) GetPowerParameters(ctx context.Context, systemID string) (PowerParameters, error) {
	var answer PowerParameters
	request := machineOp("power_parameters", systemID, nil)
	request.method = http.MethodGet
	err := c.do(ctx, request, &answer)
	return answer, err
}

func machinePath(systemID string) string { return "machines/" + url.PathEscape(systemID) + "/" }

func machineOp(op, systemID string, p params) call {
	return call{name: "machines." + op, what: opText(op) + systemID, systemID: systemID, method: http.MethodPost, path: machinePath(systemID),
		op: op, params: p.values()}
}

var opTexts = map[string]string{
	"query_power_state":        "query the power of machine ",
	"power_on":                 "power on machine ",
	"power_off":                "power off machine ",
	"set_workload_annotations": "annotate machine ",
	"mark_broken":              "mark as broken machine ",
	"mark_fixed":               "mark as fixed machine ",
	"power_parameters":         "read the power parameters of machine ",
}

func opText(op string) string {
	if text, ok := opTexts[op]; ok {
		return text
	}
	return op + " machine "
}

// machine sends a call whose answer is a machine. It returns an error for an answer without a system ID: the caller
// would take it for a machine that is New and has no owner.
func (c *Client) machine(ctx context.Context, request call) (*Machine, error) {
	machine, err := c.maybeMachine(ctx, request)
	if err == nil && machine.SystemID == "" {
		err = &EndpointError{Operation: request.what, Endpoint: c.base.Host, Done: true, Err: errors.New("it names no machine")}
	}
	if err != nil {
		return nil, err
	}
	return machine, nil
}

// maybeMachine sends a call whose answer is a machine, or null if there was nothing to do.
func (c *Client) maybeMachine(ctx context.Context, request call) (*Machine, error) {
	machine := &Machine{}
	if err := c.do(ctx, request, machine); err != nil {
		return nil, err
	}
	return machine, nil
}
