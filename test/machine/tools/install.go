// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"github.com/openshift/hypershift/test/machine/control"
	"github.com/openshift/hypershift/test/machine/units"
)

// each calls do for every unit's file, and makes PID 1 reload the files.
func (c *systemctlCall) each(do func(name string) error) int {
	for _, name := range c.units {
		if err := do(name); err != nil {
			return c.fail("systemctl: %v", err)
		}
	}
	if _, err := control.Ask(c.Socket, control.Request{Verb: control.Reload}); err != nil {
		return c.fail("systemctl: %v", err)
	}
	return 0
}

func (c *systemctlCall) enable() int {
	code := c.each(func(name string) error {
		installable, err := units.Enable(name, c.UnitDirs[0], c.UnitDirs)
		if err == nil && !installable {
			c.print("%s has no [Install] section: nothing starts it at boot", name)
		}
		return err
	})
	if code != 0 || !c.now {
		return code
	}
	return c.ask(control.Start)
}

func (c *systemctlCall) disable() int {
	code := c.each(func(name string) error { return units.Disable(name, c.UnitDirs[0]) })
	if code != 0 || !c.now {
		return code
	}
	return c.ask(control.Stop)
}

func (c *systemctlCall) mask() int {
	code := c.each(func(name string) error { return units.Mask(name, c.UnitDirs[0]) })
	if code != 0 || !c.now {
		return code
	}
	return c.ask(control.Stop)
}

func (c *systemctlCall) unmask() int {
	return c.each(func(name string) error { return units.Unmask(name, c.UnitDirs[0]) })
}

// isEnabled prints the state of each unit's file; the exit status is zero if one is enabled.
func (c *systemctlCall) isEnabled() int {
	code := 1
	for _, name := range c.units {
		state, err := units.FileState(name, c.UnitDirs[0], c.UnitDirs)
		if err != nil {
			c.fail("Failed to get unit file state for %s: %v", name, err)
			continue
		}
		c.print("%s", state)
		if state == "enabled" || state == "static" {
			code = 0
		}
	}
	return code
}
