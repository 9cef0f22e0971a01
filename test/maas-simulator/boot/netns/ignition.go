// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/openshift/hypershift/test/machine/gpt"
)

const (
	userDataPath = "/run/ignition/user-data"
	// cachePath is the file in which Ignition keeps the merged config between its stages.
	cachePath = "/run/ignition/config.json"
)

// ignite configures the machine. Ignition fetches the config and everything that it refers to. Then the partitions are
// changed, and Ignition writes files, users and units.
func ignite(ctx context.Context, userData []byte, env []string) error {
	if err := os.MkdirAll(filepath.Dir(userDataPath), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(userDataPath, userData, 0o600); err != nil {
		return err
	}
	if err := os.Remove(cachePath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := stage(ctx, "fetch", env); err != nil {
		return err
	}
	config, err := os.ReadFile(cachePath)
	if err != nil {
		return err
	}
	if err := changeDisks(config); err != nil {
		return err
	}
	return stage(ctx, "files", env)
}

// stage runs a stage of Ignition and writes its output to the console.
func stage(ctx context.Context, name string, env []string) error {
	cmd := exec.CommandContext(ctx, ignitionTarget, "--platform=file", "--stage="+name, "--root=/", "--log-to-stdout",
		"--config-cache="+cachePath, "--neednet=/run/ignition/neednet", "--state-file=/run/ignition/state")
	cmd.Env = append(env, "IGNITION_CONFIG_FILE="+userDataPath)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running stage %s of Ignition: %w", name, err)
	}
	return nil
}

// diskConfig is the part of an Ignition config that changeDisks reads.
type diskConfig struct {
	Storage struct {
		Disks []struct {
			Device     string `json:"device"`
			Partitions []struct {
				Number             int   `json:"number"`
				ShouldExist        *bool `json:"shouldExist"`
				WipePartitionEntry *bool `json:"wipePartitionEntry"`
			} `json:"partitions"`
		} `json:"disks"`
		Filesystems []json.RawMessage `json:"filesystems"`
		Raid        []json.RawMessage `json:"raid"`
		LUKS        []json.RawMessage `json:"luks"`
	} `json:"storage"`
}

// changeDisks does what node configurations need of Ignition's stage "disks": it removes partitions. The stage itself
// needs systemd and udev, which these machines do not have.
func changeDisks(data []byte) error {
	var config diskConfig
	if err := json.Unmarshal(data, &config); err != nil {
		return fmt.Errorf("reading the merged Ignition config: %w", err)
	}
	if n := len(config.Storage.Filesystems) + len(config.Storage.Raid) + len(config.Storage.LUKS); n > 0 {
		say("the config asks for %d file systems, arrays or encrypted disks: this image makes none", n)
	}
	for _, disk := range config.Storage.Disks {
		for _, partition := range disk.Partitions {
			if partition.ShouldExist == nil || *partition.ShouldExist {
				say("%s: the config asks for partition %d: this image makes none", disk.Device, partition.Number)
				continue
			}
			mayWipe := partition.WipePartitionEntry != nil && *partition.WipePartitionEntry
			if err := removePartition(disk.Device, partition.Number, mayWipe); err != nil {
				return err
			}
		}
	}
	return nil
}

// removePartition removes a partition. It does nothing if there is none with the number. Like Ignition, it returns an
// error if the partition may not be wiped.
func removePartition(device string, number int, mayWipe bool) error {
	file, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("removing partition %d: %w", number, err)
	}
	defer file.Close()
	table, err := gpt.Read(file)
	if err != nil {
		return fmt.Errorf("removing partition %d of %s: %w", number, device, err)
	}
	exists := slices.ContainsFunc(table, func(p gpt.Partition) bool { return p.Number == number })
	if !exists {
		return nil
	}
	if !mayWipe {
		return fmt.Errorf("partition %d of %s exists but must not, and wipePartitionEntry is not set", number, device)
	}
	if err := gpt.Delete(file, number); err != nil {
		return fmt.Errorf("removing partition %d of %s: %w", number, device, err)
	}
	say("%s: partition %d is removed", device, number)
	return file.Close()
}
