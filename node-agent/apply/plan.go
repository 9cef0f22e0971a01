// SPDX-License-Identifier: Apache-2.0

// Package apply applies a node plan to a machine, and sets up the kernel for a node.
package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/support/nodeplan"
)

// Mark is the file with the checksum of the last plan that was applied completely.
const Mark = "/var/lib/hypershift/applied"

// Plan creates users, files and units. It applies each plan once, as Ignition does, so later changes of an
// administrator stay.
func Plan(ctx context.Context, h *host.Host, plan *nodeplan.Plan) error {
	raw, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(raw)
	mark := hex.EncodeToString(sum[:]) + "\n"
	applied, err := h.Read(Mark)
	if err != nil || string(applied) == mark {
		return err
	}
	for _, do := range []func(context.Context, *host.Host, *nodeplan.Plan) error{groups, users, directories, files, links, units} {
		if err := do(ctx, h, plan); err != nil {
			return err
		}
	}
	h.Say("applied the node plan: %d files, %d units, %d users", len(plan.Files), len(plan.Units), len(plan.Users))
	_, err = h.Write(Mark, []byte(mark), 0o600)
	return err
}

func units(ctx context.Context, h *host.Host, plan *nodeplan.Plan) error {
	const dir = nodeplan.UnitDir
	for _, u := range plan.Units {
		if u.Content != "" && !u.Masked {
			if _, err := h.Write(dir+u.Name, []byte(u.Content), 0o644); err != nil {
				return fmt.Errorf("unit %s: %w", u.Name, err)
			}
		}
		for _, d := range u.DropIns {
			if _, err := h.Write(dir+u.Name+".d/"+d.Name, []byte(d.Content), 0o644); err != nil {
				return fmt.Errorf("drop-in %s of unit %s: %w", d.Name, u.Name, err)
			}
		}
	}
	if err := h.Do(ctx, "systemctl", "daemon-reload"); err != nil {
		return err
	}
	for _, u := range plan.Units {
		if err := switchUnit(ctx, h, u); err != nil {
			return err
		}
	}
	return nil
}

// switchUnit applies the state of a unit, as systemd does at the first boot of a machine with Ignition. It does not
// wait for the unit, which may itself wait for node-agent.
func switchUnit(ctx context.Context, h *host.Host, u nodeplan.Unit) error {
	switch {
	case u.Masked:
		return mask(ctx, h, u.Name)
	case u.Enabled == nil:
		return nil
	case !*u.Enabled:
		return h.Do(ctx, "systemctl", "disable", "--now", u.Name)
	}
	if err := h.Do(ctx, "systemctl", "enable", u.Name); err != nil {
		return err
	}
	return h.Do(ctx, "systemctl", "start", "--no-block", u.Name)
}

// mask removes the file of the unit, as Ignition does. systemd masks a unit with a link, which it only creates if
// there is no file.
func mask(ctx context.Context, h *host.Host, unit string) error {
	if target, err := os.Readlink(h.Path(nodeplan.UnitDir + unit)); err != nil || target != os.DevNull {
		if err := h.Remove(nodeplan.UnitDir + unit); err != nil {
			return fmt.Errorf("unit %s: %w", unit, err)
		}
	}
	return h.Do(ctx, "systemctl", "mask", "--now", unit)
}
