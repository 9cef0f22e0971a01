// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/openshift/hypershift/node-agent/host"
)

// lowest lists the lowest values of kernel settings on a node. They are not in the plan, whose hash would change with
// them and roll every pool. Switches, such as forwarding, are in the plan.
var lowest = []struct {
	key   string
	value int64
}{
	{"fs.file-max", 1 << 20},
	{"fs.inotify.max_user_instances", 8192},
	{"fs.inotify.max_user_watches", 524288},
	{"fs.nr_open", 1 << 20},
	{"net.netfilter.nf_conntrack_max", 131072},
	{"vm.max_map_count", 262144},
}

// raiseLimits raises kernel settings that are below the lowest value for a node. It leaves larger values, which a user
// may have set. It only logs errors: some kernels refuse a change, and a kernel without a setting needs none.
func raiseLimits(ctx context.Context, h *host.Host) {
	for _, limit := range lowest {
		value, known := kernelSetting(h, limit.key)
		if !known || value >= limit.value {
			continue
		}
		if err := h.Do(ctx, "sysctl", "-q", "-w", fmt.Sprintf("%s=%d", limit.key, limit.value)); err != nil {
			h.Say("kernel setting %s is %d, and pods may need %d: %v; raise it in the machine's image",
				limit.key, value, limit.value, err)
			continue
		}
		h.Say("raised kernel setting %s from %d to %d", limit.key, value, limit.value)
	}
}

// kernelSetting returns a number among the kernel's settings, and whether the kernel has it.
func kernelSetting(h *host.Host, key string) (value int64, known bool) {
	raw, err := h.Read("/proc/sys/" + strings.ReplaceAll(key, ".", "/"))
	if err != nil || raw == nil {
		return 0, false
	}
	value, err = strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	return value, err == nil
}
