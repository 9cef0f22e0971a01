// SPDX-License-Identifier: Apache-2.0

package lxdhost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/maas"
)

// drain holds the state of one `drain lxd-host`.
type drain struct {
	connection
	host    string
	release bool
	undo    bool
}

// NewDrainCommand returns the command `drain lxd-host NAME`.
func NewDrainCommand() *cobra.Command {
	d := &drain{connection: newConnection()}
	cmd := &cobra.Command{
		Use:   "lxd-host NAME",
		Short: "Drain an LXD host: replace its VMs one by one on other hosts",
		Long: "Tag the VM host so that no new VM is composed there, and delete the Machines of its VMs one after the other. Cluster API drains each " +
			"node, with regard to PodDisruptionBudgets, and its owner creates a Machine elsewhere, which the command waits for. " +
			"Run the command again to continue after an interruption.",
		Example: "  hypershift drain lxd-host calm-ant --credentials-secret maas\n" +
			"  # Permit new VMs on the host again\n" +
			"  hypershift drain lxd-host calm-ant --credentials-secret maas --undo",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d.host = args[0]
			return d.run(cmd)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&d.release, "release", false, "remove the empty VM host from MAAS and release its machine")
	flags.BoolVar(&d.undo, "undo", false, "permit new VMs on the host again, and do nothing else")
	d.addFlags(flags, "one VM is replaced, or the machine released")
	return cmd
}

func (d *drain) run(cmd *cobra.Command) error {
	if d.undo && d.release {
		return exit.UsageError(errors.New("set one of --undo and --release"))
	}
	m, err := d.open(cmd)
	if err != nil {
		return err
	}
	return d.drain(cmd.Context(), m, d.kube.Client, progress.New(cmd.ErrOrStderr(), clock.RealClock{}))
}

// drain can be interrupted at any point and repeated: MAAS and the management cluster show which steps are done. It
// connects to the management cluster only if the host has VMs.
func (d *drain) drain(ctx context.Context, m *maas.Client, connect func() (client.Client, error), report *progress.Reporter) error {
	host, err := findHost(ctx, m, func(h *maas.VMHost) bool { return h.Name == d.host })
	if err != nil {
		return err
	}
	if host == nil {
		return d.withoutHost(ctx, m, report)
	}
	if d.undo {
		if _, err := m.RemoveVMHostTag(ctx, host.ID, maas.DrainTag); err != nil {
			return err
		}
		report.Printf("VM host %s takes new VMs again", host.Name)
		return nil
	}
	if !slices.Contains(host.Tags, maas.DrainTag) {
		if _, err := m.AddVMHostTag(ctx, host.ID, maas.DrainTag); err != nil {
			return err
		}
	}
	report.Printf("VM host %s takes no new VM (tag %s)", host.Name, maas.DrainTag)
	if err := d.empty(ctx, m, host, connect, report); err != nil {
		return err
	}
	report.Printf("VM host %s has no VM", host.Name)
	if !d.release {
		return nil
	}
	return d.giveBack(ctx, m, host, report)
}

// rounds is how often the VMs of a host are listed again: a provider that read the host's tags just before they changed
// may place one more VM there.
const rounds = 3

// empty replaces the VMs of the host until none is left.
func (d *drain) empty(ctx context.Context, m *maas.Client, host *maas.VMHost, connect func() (client.Client, error), report *progress.Reporter) error {
	for range rounds {
		vms, err := m.ListMachines(ctx, maas.MachineFilter{VMHosts: []string{host.Name}})
		if err != nil || len(vms) == 0 {
			return err
		}
		k, err := connect()
		if err != nil {
			return err
		}
		if err := d.replaceAll(ctx, k, m, vms, report); err != nil {
			return err
		}
	}
	return fmt.Errorf("VM host %s got new VMs %d times although it has tag %s; make the client that composes them honor the tag, or run the command again",
		host.Name, rounds, maas.DrainTag)
}

// replaceAll replaces VMs one by one. It reports VMs that no Machine represents, and does not change them.
func (d *drain) replaceAll(ctx context.Context, k client.Client, m *maas.Client, vms []maas.Machine, report *progress.Reporter) error {
	var foreign []string
	for i := range vms {
		replaced, err := d.replace(ctx, k, m, &vms[i], report)
		if err != nil {
			return err
		}
		if !replaced {
			foreign = append(foreign, naming(&vms[i]))
		}
	}
	if len(foreign) > 0 {
		return fmt.Errorf("%d VMs on %s belong to no Machine of this management cluster: %s; delete them in MAAS, or drain from the management cluster that has their Machines",
			len(foreign), d.host, strings.Join(foreign, ", "))
	}
	return nil
}

// giveBack releases the host's machine and with it the VM host: MAAS does both in one transaction.
func (d *drain) giveBack(ctx context.Context, m *maas.Client, host *maas.VMHost, report *progress.Reporter) error {
	if host.Host == nil || host.Host.SystemID == "" {
		return fmt.Errorf("MAAS does not know the machine of VM host %s, because MAAS did not deploy it; remove the VM host in MAAS by hand", host.Name)
	}
	left, err := m.ListMachines(ctx, maas.MachineFilter{VMHosts: []string{host.Name}})
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("VM host %s has a new VM, %s: another client composed it; run the command again", host.Name, naming(&left[0]))
	}
	if _, err := m.ReleaseMachine(ctx, host.Host.SystemID, maas.ReleaseRequest{Force: true, Comment: "LXD host of HyperShift, drained"}); err != nil {
		return err
	}
	return d.awaitReady(ctx, m, host.Host.SystemID, report)
}

// withoutHost completes a release that was interrupted after MAAS had removed the VM host.
func (d *drain) withoutHost(ctx context.Context, m *maas.Client, report *progress.Reporter) error {
	machines, err := m.ListMachines(ctx, maas.MachineFilter{Hostnames: []string{d.host}})
	if err != nil {
		return err
	}
	if !d.release || len(machines) != 1 {
		return fmt.Errorf("MAAS has no VM host %q; \"maas vm-hosts read\" and MAAS's page KVM list them", d.host)
	}
	return d.awaitReady(ctx, m, machines[0].SystemID, report)
}

func (d *drain) awaitReady(ctx context.Context, m *maas.Client, systemID string, report *progress.Reporter) error {
	var failed error
	err := report.Wait(ctx, "release of machine "+systemID, d.timeout, d.interval, func(ctx context.Context) (progress.State, error) {
		now, err := m.GetMachine(ctx, systemID)
		if err != nil {
			return progress.State{}, err
		}
		switch now.Status {
		case maas.StatusReady, maas.StatusNew:
			return progress.State{Done: true, Message: fmt.Sprintf("machine %s is released", naming(now))}, nil
		case maas.StatusReleasing, maas.StatusDiskErasing:
			return progress.State{Message: fmt.Sprintf("machine %s is %s", naming(now), now.Status)}, nil
		}
		failed = fmt.Errorf("machine %s is %s (%s) and not released: see why in MAAS", naming(now), now.Status, now.StatusMessage)
		return progress.State{Done: true, Message: "machine " + naming(now) + " was not released"}, nil
	})
	return errors.Join(err, failed)
}
