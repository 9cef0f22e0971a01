// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"cmp"
	"fmt"
	"strings"

	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
	"k8s.io/utils/ptr"

	"github.com/openshift/hypershift/hypershift-operator/platform"
)

const (
	wipeUnit         = "hypershift-disk-wipe.service"
	defaultDevice    = "/dev/sda"
	defaultPartition = 5
)

// CustomizeIgnition adds a unit that removes the helper partition, which an image contains only for its installation by
// MAAS. The unit is part of the first-boot configuration and creates a marker file, so it runs once per installation.
// It deletes only that entry of the partition table.
func (*Platform) CustomizeIgnition(pool platform.Pool, config *ignition.Config) {
	block := settings(pool)
	enabled := byDistribution[pool.Distribution()].wipe && !ptr.Deref(block.Ephemeral, false)
	device, partition := defaultDevice, int32(defaultPartition)
	if wipe := block.DiskWipe; wipe != nil {
		enabled = ptr.Deref(wipe.Enabled, enabled)
		device = cmp.Or(wipe.Device, device)
		if wipe.Partition != 0 {
			partition = wipe.Partition
		}
	}
	if !enabled {
		return
	}
	config.Systemd.Units = append(config.Systemd.Units, ignition.Unit{
		Name: wipeUnit, Enabled: ptr.To(true), Contents: ptr.To(wipeContents(device, partition)),
	})
}

func wipeContents(device string, partition int32) string {
	const done = "/var/lib/hypershift/disk-wipe.done"
	return strings.Join([]string{
		"[Unit]",
		"Description=Remove the partition that only the installation needed",
		"ConditionPathExists=!" + done,
		"ConditionPathExists=" + device,
		"Before=kubelet.service",
		"",
		"[Service]",
		"Type=oneshot",
		"RemainAfterExit=yes",
		// A missing partition was already removed.
		fmt.Sprintf("ExecStart=/bin/sh -c 'if sgdisk --info=%d %s | grep -q \"Partition unique GUID\"; then sgdisk --delete=%d %s; fi'",
			partition, device, partition, device),
		"ExecStartPost=/bin/mkdir -p /var/lib/hypershift",
		"ExecStartPost=/bin/touch " + done,
		"",
		"[Install]",
		"WantedBy=multi-user.target",
		"",
	}, "\n")
}
