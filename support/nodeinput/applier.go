// SPDX-License-Identifier: Apache-2.0

package nodeinput

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	ignition "github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/utils/ptr"
)

// Applier is the program that applies documents to a machine.
type Applier int

const (
	// ByIgnition is the image's own Ignition, before the operating system starts.
	ByIgnition Applier = iota
	// ByNodeAgent is node-agent, on a running operating system. It changes no disks and fetches nothing, but it can
	// restart the machine with other kernel arguments.
	ByNodeAgent
)

// kernelArgument matches an argument that the boot loader's configuration can hold without quoting.
var kernelArgument = regexp.MustCompile(`^[A-Za-z0-9_.,:=/@%+-]+$`)

func readKernelArguments(c *Config, _ string, raw json.RawMessage) error {
	if c.appliedBy != ByNodeAgent {
		return errors.New("sets spec.kernelArguments, which nodes of the Kubernetes distribution cannot honour with Ignition; remove the field, " +
			"or use an image that runs cloud-init")
	}
	var entries []string
	if err := json.Unmarshal(raw, &entries); err != nil {
		return errors.New("spec.kernelArguments is not a list of strings")
	}
	for _, entry := range entries {
		for argument := range strings.FieldsSeq(entry) {
			if err := checkKernelArgument(argument); err != nil {
				return fmt.Errorf("spec.kernelArguments: %w", err)
			}
			c.KernelArguments = append(c.KernelArguments, argument)
		}
	}
	return nil
}

func checkKernelArgument(argument string) error {
	if !kernelArgument.MatchString(argument) {
		return fmt.Errorf("the argument %q cannot be given to the boot loader: use letters, digits and _.,:=/@%%+- only", argument)
	}
	return nil
}

// applicable rejects settings that only Ignition can apply, before the operating system starts.
func applicable(cfg ignition.Config) error {
	const otherwise = "use an image that runs Ignition, or remove it"
	storage := cfg.Storage
	switch {
	case len(storage.Disks)+len(storage.Raid)+len(storage.Filesystems)+len(storage.Luks) > 0:
		return errors.New("spec.config changes disks (storage.disks, raid, filesystems or luks), which nodes with userDataFormat CloudConfig cannot: lay them out in MAAS, " + otherwise)
	case len(cfg.Ignition.Config.Merge) > 0 || cfg.Ignition.Config.Replace.Source != nil:
		return errors.New("spec.config fetches another config (ignition.config), which nodes with userDataFormat CloudConfig cannot: " + otherwise)
	case len(cfg.KernelArguments.ShouldNotExist) > 0:
		return errors.New("spec.config removes kernel arguments, which nodes with userDataFormat CloudConfig cannot: " + otherwise)
	}
	for _, argument := range cfg.KernelArguments.ShouldExist {
		if err := checkKernelArgument(string(argument)); err != nil {
			return fmt.Errorf("spec.config.kernelArguments: %w", err)
		}
	}
	for _, file := range storage.Files {
		for _, resource := range slices.Concat([]ignition.Resource{file.Contents}, file.Append) {
			if source := ptr.Deref(resource.Source, ""); source != "" && !strings.HasPrefix(source, "data:") {
				return fmt.Errorf("spec.config fetches the contents of file %s, which nodes with userDataFormat CloudConfig cannot: put them into the config as a data URL", file.Path)
			}
		}
	}
	return nil
}
