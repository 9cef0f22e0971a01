// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/base64"
	"regexp"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/lifecycle"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/render"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

func machineResource() resource {
	return resource{name: "machine", open: true, ops: ops{
		"GET":                           {read: readMachine},
		"PUT":                           {write: updateMachine},
		"DELETE":                        {write: deleteMachine},
		"GET power_parameters":          {read: readPowerParameters},
		"GET query_power_state":         {outside: queryPower},
		"GET details":                   {read: machineDetails},
		"GET get_token":                 {read: machineToken},
		"GET get_curtin_config":         {read: curtinConfig},
		"POST deploy":                   {write: deployMachine},
		"POST release":                  {write: releaseMachine},
		"POST abort":                    {write: abortMachine},
		"POST power_on":                 {write: powerOn},
		"POST power_off":                {write: powerOff},
		"POST commission":               {write: act(toAdmin, (*lifecycle.Life).Commission)},
		"POST test":                     {write: act(toAdmin, (*lifecycle.Life).Test)},
		"POST override_failed_testing":  {write: act(toAdmin, (*lifecycle.Life).OverrideFailedTesting)},
		"POST mark_broken":              {write: markBroken},
		"POST mark_fixed":               {write: act(toAdmin, (*lifecycle.Life).MarkFixed)},
		"POST rescue_mode":              {write: act(toAdmin, plain((*lifecycle.Life).Rescue))},
		"POST exit_rescue_mode":         {write: act(toAdmin, plain((*lifecycle.Life).ExitRescue))},
		"POST lock":                     {write: lockMachine},
		"POST unlock":                   {write: unlockMachine},
		"POST set_workload_annotations": {write: annotate},
		"POST set_owner_data":           {write: annotate},
		"POST set_storage_layout":       {write: setStorageLayout},

		"POST restore_networking_configuration": {write: restore},
		"POST restore_storage_configuration":    {write: restore},
		"POST restore_default_configuration":    {write: restore},
		"POST clear_default_gateways":           {write: restore},
	}}
}

func readMachine(c *call) (any, error) {
	m, err := c.machine(toView)
	if err != nil {
		return nil, err
	}
	return c.machineJSON(m)
}

// act returns an operation that has no parameter except a comment.
func act(r right, do func(*lifecycle.Life, *inventory.Machine, string, string) error) func(*call) (any, error) {
	return func(c *call) (any, error) {
		m, err := c.edit(r)
		if err != nil {
			return nil, err
		}
		if err := do(c.Life, m, c.user.Name, c.form.Get("comment")); err != nil {
			return nil, err
		}
		return c.print.Machine(m), nil
	}
}

// markBroken marks a machine broken. As in MAAS, only the owner may do that, not even an administrator.
func markBroken(c *call) (any, error) {
	m, err := c.edit(toEdit)
	if err != nil {
		return nil, err
	}
	if m.Owner != c.user.Name {
		return nil, problem.Forbidden()
	}
	return act(toEdit, (*lifecycle.Life).MarkBroken)(c)
}

func plain(do func(*lifecycle.Life, *inventory.Machine, string) error) func(*lifecycle.Life, *inventory.Machine, string, string) error {
	return func(l *lifecycle.Life, m *inventory.Machine, user, _ string) error { return do(l, m, user) }
}

func readPowerParameters(c *call) (any, error) {
	m, err := c.machine(toAdmin)
	if err != nil {
		return nil, err
	}
	return powerParameters(m), nil
}

func queryPower(c *call) (any, error) {
	if err := c.DB.View(func() error {
		_, err := c.machine(toView)
		return err
	}); err != nil {
		return nil, err
	}
	state, err := c.Life.QueryPower(c.request.Context(), c.path[0])
	if err != nil {
		return nil, err
	}
	return render.Object{"state": state}, nil
}

// machineDetails returns an empty pair of documents in BSON.
func machineDetails(c *call) (any, error) {
	if _, err := c.machine(toView); err != nil {
		return nil, err
	}
	document := "\x17\x00\x00\x00\x0alldp\x00\x0alshw\x00\x00"
	document = string(rune(len(document))) + document[1:] //nolint:gosec // 23
	return reply{status: 200, media: "application/bson", body: []byte(document)}, nil
}

func machineToken(c *call) (any, error) {
	m, err := c.machine(toEdit)
	if err != nil {
		return nil, err
	}
	return render.Object{"token_key": m.Token.Key, "token_secret": m.Token.Secret, "consumer_key": m.Token.Consumer}, nil
}

func curtinConfig(c *call) (any, error) {
	m, err := c.machine(toView)
	if err != nil {
		return nil, err
	}
	if !m.Status.In(status.Deploying, status.Deployed, status.FailedDeployment) {
		return nil, problem.Text(400, "Machine %s is not in a deployment state.", m.SystemID)
	}
	config := "debconf_selections:\n  maas: |\n    cloud-init   cloud-init/datasources  multiselect MAAS\n" +
		"install:\n  log_file: /tmp/install.log\n# " + m.OSystem + "/" + m.Series + "\n"
	return text(200, config), nil
}

func deployMachine(c *call) (any, error) {
	m, err := c.edit(toEdit)
	if err != nil {
		return nil, err
	}
	if err := lifecycle.CanDeploy(m); err != nil {
		return nil, err
	}
	d, err := deployment(c, m)
	if err != nil {
		return nil, err
	}
	if err := c.Life.Deploy(m, d); err != nil {
		return nil, err
	}
	if c.form.Bool("bridge_all") {
		bridgeAll(c, m)
	}
	id := m.SystemID
	c.after = func() error {
		if fresh := c.DB.Machines.Edit(id); fresh != nil {
			return c.Life.Start(fresh)
		}
		return nil
	}
	return c.print.Machine(m), nil
}

// deployment parses the parameters of a deployment.
func deployment(c *call, m *inventory.Machine) (lifecycle.Deployment, error) {
	d := lifecycle.Deployment{User: c.user.Name, Comment: c.form.Get("comment"), Agent: c.form.Get("agent_name")}
	switches := []string{"install_rackd", "install_kvm", "register_vmhost", "ephemeral_deploy", "enable_hw_sync", "bridge_all", "bridge_stp"}
	if err := checkSwitches(c, switches...); err != nil {
		return d, err
	}
	if err := vmHostSwitches(c, &d); err != nil {
		return d, err
	}
	image, err := c.resolveSeries(c.form.Get("distro_series"), m)
	if err != nil {
		return d, err
	}
	d.OSystem, d.Series = image.osystem, image.series
	if d.HWEKernel, err = c.resolveKernel(c.form.Get("hwe_kernel"), image, m); err != nil {
		return d, err
	}
	d.UserData = userData(c.form.Get("user_data"))
	d.Ephemeral = c.isOn("ephemeral_deploy")
	if d.Ephemeral {
		err = c.canDeployToMemory(image, m, d.VMHost)
	}
	return d, err
}

// userData returns the user-data. It decodes base64, and keeps any other text unchanged.
func userData(given string) []byte {
	if given == "" {
		return nil
	}
	compact := strings.Join(strings.Fields(given), "")
	if decoded, err := base64.StdEncoding.DecodeString(compact); err == nil {
		return decoded
	}
	return []byte(given)
}

func vmHostSwitches(c *call, d *lifecycle.Deployment) error {
	rackd, host := c.isOn("install_rackd"), c.isOn("install_kvm") || c.isOn("register_vmhost")
	if !c.print.Version.VMHosts() {
		for _, name := range []string{"install_rackd", "install_kvm", "register_vmhost"} {
			if c.form.Has(name) {
				return problem.Text(400, "%s is no longer supported.", name)
			}
		}
	}
	v := c.print.Version
	if rackd && (v.AtLeast(3, 6) || v.AtLeast(3, 4) && !v.AtLeast(3, 5)) {
		return problem.Text(400, "Installing rackd on a deployed machine is not supported.")
	}
	if host && !c.user.Superuser {
		return problem.Forbidden()
	}
	d.VMHost = host
	return nil
}

func releaseMachine(c *call) (any, error) {
	m, err := c.edit(toEdit)
	if err != nil {
		return nil, err
	}
	if err := checkSwitches(c, "erase", "secure_erase", "quick_erase", "force"); err != nil {
		return nil, err
	}
	if _, err := lifecycle.CanRelease(m); err != nil {
		return nil, err
	}
	if err := c.freeOfVMHosts(m, c.isOn("force")); err != nil {
		return nil, err
	}
	wipe := c.isOn("erase")
	if c.print.Version.AtLeast(3, 5) {
		wipe = wipe || c.isOn("secure_erase") || c.isOn("quick_erase")
	}
	if forced, _ := c.DB.Setting("enable_disk_erasing_on_release").(bool); forced {
		wipe = true
	}
	if err := c.Life.Release(m, c.user.Name, c.form.Get("comment"), wipe); err != nil {
		return nil, err
	}
	return c.print.Machine(m), nil
}

// freeOfVMHosts returns an error if VM hosts run on the machine. With force, it removes these VM hosts instead.
func (c *call) freeOfVMHosts(m *inventory.Machine, force bool) error {
	var names []string
	for _, h := range c.DB.HostedBy(m.SystemID) {
		names = append(names, h.Name)
		if force {
			c.removeVMHost(h)
		}
	}
	if len(names) > 0 && !force {
		return problem.Text(400, "The following VM hosts must be removed first: %s", strings.Join(names, ", "))
	}
	return nil
}

func abortMachine(c *call) (any, error) {
	m, err := c.edit(toEdit)
	if err != nil {
		return nil, err
	}
	finish, err := c.Life.Abort(m, c.user.Name, c.form.Get("comment"))
	if err != nil {
		return nil, err
	}
	id := m.SystemID
	c.after = func() error {
		if fresh := c.DB.Machines.Edit(id); fresh != nil {
			return finish(fresh)
		}
		return nil
	}
	return c.print.Machine(m), nil
}

func powerOn(c *call) (any, error) {
	m, err := c.edit(toEdit)
	if err != nil {
		return nil, err
	}
	if err := c.Life.PowerOn(m, c.user.Name, c.form.Get("comment")); err != nil {
		return nil, err
	}
	if given := c.form.Get("user_data"); given != "" {
		m.UserData = userData(given)
	}
	return c.print.Machine(m), nil
}

func powerOff(c *call) (any, error) {
	m, err := c.edit(toEdit)
	if err != nil {
		return nil, err
	}
	changed, err := c.Life.PowerOff(m, c.user.Name, c.form.Get("comment"))
	if err != nil || !changed {
		return nil, err
	}
	return c.print.Machine(m), nil
}

func lockMachine(c *call) (any, error) {
	m, err := c.machine(toView)
	if err != nil {
		return nil, err
	}
	if m.Locked {
		return nil, problem.Conflict("Machine %s is already locked", m.SystemID)
	}
	if !m.Status.In(status.Deployed, status.Deploying) {
		return nil, problem.Conflict("Can't lock, machine isn't deployed")
	}
	m = c.DB.Machines.Edit(m.SystemID)
	m.Locked = true
	return c.print.Machine(m), nil
}

func unlockMachine(c *call) (any, error) {
	m, err := c.machine(toView)
	if err != nil {
		return nil, err
	}
	if !m.Locked {
		return nil, problem.Conflict("Machine %s is not locked", m.SystemID)
	}
	m = c.DB.Machines.Edit(m.SystemID)
	m.Locked = false
	return c.print.Machine(m), nil
}

// annotationKey matches the valid keys of annotations. MAAS fails on all other keys.
var annotationKey = regexp.MustCompile(`^[\w.-]{1,64}$`)

// annotate sets the annotations of a machine. An empty value deletes its key.
func annotate(c *call) (any, error) {
	m, err := c.edit(toEdit)
	if err != nil {
		return nil, err
	}
	if m.Owner == "" {
		return nil, problem.Conflict("Cannot set owner data on a machine that is not allocated.")
	}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	for _, pair := range c.form.Without("op") {
		if !annotationKey.MatchString(pair.Key) {
			return nil, problem.Text(500, "Invalid character in key name")
		}
		if pair.Value == "" {
			delete(m.Annotations, pair.Key)
		} else {
			m.Annotations[pair.Key] = pair.Value
		}
	}
	return c.print.Machine(m), nil
}
