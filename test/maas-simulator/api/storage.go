// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strconv"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

var storageLayouts = []string{"flat", "lvm", "bcache", "vmfs6", "vmfs7", "blank", "custom"}

func setStorageLayout(c *call) (any, error) {
	m, err := c.edit(toAdmin)
	if err != nil {
		return nil, err
	}
	if !m.Status.In(status.Ready, status.Allocated) {
		return nil, problem.Conflict("Cannot change the storage layout on a machine that is not Ready or Allocated.")
	}
	layout := c.form.Get("storage_layout")
	if layout == "" {
		return nil, problem.Field("storage_layout", "This field is required.")
	}
	for _, known := range storageLayouts {
		if layout == known {
			return c.print.Machine(m), nil
		}
	}
	quoted := make([]string, len(storageLayouts))
	for i, known := range storageLayouts {
		quoted[i] = strconv.Quote(known)
	}
	return nil, problem.Field("storage_layout", "'%s' is not a valid storage layout.  It should be one of: %s.", layout, strings.Join(quoted, ", "))
}

// restore performs the checks of MAAS. It does not change the storage layout.
func restore(c *call) (any, error) {
	m, err := c.edit(toAdmin)
	if err != nil {
		return nil, err
	}
	if !m.Status.In(status.Ready, status.FailedTesting, status.Allocated) {
		return nil, problem.Conflict("Machine must be in a ready state to restore %s.", strings.TrimSuffix(strings.TrimPrefix(c.op, "restore_"), "_configuration"))
	}
	return c.print.Machine(m), nil
}
