// SPDX-License-Identifier: Apache-2.0

package lxdhost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/maas"
)

// create holds the state of one `create lxd-host`.
type create struct {
	connection
	machine string
	pool    string
	zone    string
	tags    []string
	cpu     int
	memory  int
	image   string

	hostTags         []string
	cpuOverCommit    float64
	memoryOverCommit float64
}

// NewCreateCommand returns the command `create lxd-host`.
func NewCreateCommand() *cobra.Command {
	c := &create{connection: newConnection()}
	cmd := &cobra.Command{
		Use:   "lxd-host",
		Short: "Make a MAAS machine into an LXD host, on which MAAS composes virtual machines",
		Long: "Take a Ready machine from MAAS, deploy it with LXD, and wait until MAAS lists it as a VM host with its capacity. " +
			"Run the command again to continue after an interruption.",
		Example: "  hypershift create lxd-host --machine calm-ant --credentials-secret maas\n" +
			"  # Take the smallest machine of a resource pool that is large enough\n" +
			"  hypershift create lxd-host --pool blue --cpu 32 --memory 131072 --credentials-secret maas",
		Args: cobra.NoArgs,
		RunE: c.run,
	}
	flags := cmd.Flags()
	flags.StringVar(&c.machine, "machine", "", "system id or name of the machine")
	flags.StringVar(&c.pool, "pool", "", "MAAS resource pool of which a machine is taken instead: the smallest that fits the flags below")
	flags.StringVar(&c.zone, "zone", "", "MAAS zone of the machine that --pool takes")
	flags.StringSliceVar(&c.tags, "tags", nil, "MAAS tags that the machine of --pool must have")
	flags.IntVar(&c.cpu, "cpu", 0, "least cores of the machine of --pool")
	flags.IntVar(&c.memory, "memory", 0, "least memory of the machine of --pool, in MiB")
	flags.StringVar(&c.image, "image", "", "Ubuntu image to deploy, e.g. ubuntu/noble (default: that of MAAS's settings)")
	flags.StringSliceVar(&c.hostTags, "host-tags", nil, "tags that the VM host gets, and so the VMs on it")
	flags.Float64Var(&c.cpuOverCommit, "cpu-over-commit", 1, "CPU overcommit ratio, 0.1 to 10")
	flags.Float64Var(&c.memoryOverCommit, "memory-over-commit", 1, "memory overcommit ratio, 0.1 to 10")
	c.addFlags(flags, "MAAS lists the host")
	return cmd
}

func (c *create) check() error {
	chooses := c.zone != "" || len(c.tags) > 0 || c.cpu != 0 || c.memory != 0
	switch {
	case (c.machine == "") == (c.pool == ""):
		return errors.New("set one of --machine and --pool")
	case c.machine != "" && chooses:
		return errors.New("--zone, --tags, --cpu and --memory choose a machine of --pool: leave them out with --machine")
	case c.cpu < 0 || c.memory < 0:
		return errors.New("--cpu and --memory must not be negative")
	case !(c.cpuOverCommit >= 0.1 && c.cpuOverCommit <= 10): // The negation also rejects NaN.
		return errors.New("--cpu-over-commit must be between 0.1 and 10")
	case !(c.memoryOverCommit >= 0.1 && c.memoryOverCommit <= 10):
		return errors.New("--memory-over-commit must be between 0.1 and 10")
	}
	return nil
}

func (c *create) run(cmd *cobra.Command, _ []string) error {
	if err := c.check(); err != nil {
		return exit.UsageError(err)
	}
	m, err := c.open(cmd)
	if err != nil {
		return err
	}
	return c.make(cmd.Context(), m, progress.New(cmd.ErrOrStderr(), clock.RealClock{}))
}

// make can be interrupted at any point and repeated: each step reads the state from MAAS and does what is missing.
func (c *create) make(ctx context.Context, m *maas.Client, report *progress.Reporter) error {
	if _, err := findHost(ctx, m, func(*maas.VMHost) bool { return false }); err != nil {
		return err // Detect a MAAS without VM hosts before a machine is allocated.
	}
	machine, err := c.find(ctx, m, report)
	if err != nil {
		return err
	}
	if err := c.deploy(ctx, m, machine, report); err != nil {
		return err
	}
	host, err := c.await(ctx, m, machine, report)
	if err != nil {
		return err
	}
	if err := c.tune(ctx, m, host); err != nil {
		return err
	}
	if _, err := m.SetWorkloadAnnotations(ctx, machine.SystemID, map[string]string{takenAnnotation: takenDone}); err != nil {
		return err
	}
	report.Printf("LXD host %s is there: %s", host.Name, sizes(host))
	return nil
}

// deploy starts the deployment, unless it is already started.
func (c *create) deploy(ctx context.Context, m *maas.Client, machine *maas.Machine, report *progress.Reporter) error {
	if machine.Status != maas.StatusAllocated {
		return nil
	}
	_, err := m.DeployMachine(ctx, machine.SystemID, maas.DeployRequest{DistroSeries: c.image, RegisterVMHost: true, Comment: "LXD host for HyperShift"})
	if err != nil {
		return fmt.Errorf("%w; the machine stays allocated; run the command again, or release it in MAAS", err)
	}
	report.Printf("machine %s is being deployed with LXD", naming(machine))
	return nil
}

// await waits until MAAS lists the host with capacity, and returns it.
func (c *create) await(ctx context.Context, m *maas.Client, machine *maas.Machine, report *progress.Reporter) (*maas.VMHost, error) {
	var host *maas.VMHost
	var failed error
	err := report.Wait(ctx, "LXD host on machine "+naming(machine), c.timeout, c.interval, func(ctx context.Context) (progress.State, error) {
		now, err := m.GetMachine(ctx, machine.SystemID)
		if err != nil {
			return progress.State{}, err
		}
		switch now.Status {
		case maas.StatusDeploying:
			return progress.State{Message: fmt.Sprintf("machine %s is Deploying: %s", naming(now), now.StatusMessage)}, nil
		case maas.StatusDeployed:
		default:
			failed = fmt.Errorf("machine %s is %s (%s): see the cause in MAAS, release the machine there, and run the command again", naming(now), now.Status, now.StatusMessage)
			return progress.State{Done: true, Message: "the deployment of machine " + naming(now) + " did not succeed"}, nil
		}
		if host, err = hostOn(ctx, m, machine.SystemID); err != nil {
			return progress.State{}, err
		}
		if host == nil || host.Total.Cores == 0 || host.Total.Memory == 0 || host.Total.LocalStorage == 0 {
			return progress.State{Message: fmt.Sprintf("machine %s is Deployed; MAAS does not list it with its capacity yet", naming(now))}, nil
		}
		return progress.State{Done: true, Message: fmt.Sprintf("MAAS lists VM host %s on machine %s", host.Name, naming(now))}, nil
	})
	return host, errors.Join(err, failed)
}

// tune sets the over-commit ratios and tags of the host, if they differ.
func (c *create) tune(ctx context.Context, m *maas.Client, host *maas.VMHost) error {
	if host.CPUOverCommitRatio != c.cpuOverCommit || host.MemoryOverCommitRatio != c.memoryOverCommit {
		ratio := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
		if _, err := m.UpdateVMHost(ctx, host.ID, map[string]string{
			"cpu_over_commit_ratio": ratio(c.cpuOverCommit), "memory_over_commit_ratio": ratio(c.memoryOverCommit),
		}); err != nil {
			return err
		}
	}
	for _, tag := range c.hostTags {
		if slices.Contains(host.Tags, tag) {
			continue
		}
		if _, err := m.AddVMHostTag(ctx, host.ID, tag); err != nil {
			return err
		}
	}
	return nil
}

func naming(m *maas.Machine) string { return m.Hostname + " (" + m.SystemID + ")" }
