// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/hypershift/node-agent/apply"
	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/node-agent/release"
	"github.com/openshift/hypershift/node-agent/update"
	"github.com/openshift/hypershift/support/nodeplan"
)

// retry is the delay before a failed step is retried.
const retry = 10 * time.Second

func command() *cobra.Command {
	h := &host.Host{Run: host.Exec, Log: os.Stdout}
	cmd := &cobra.Command{
		Use:           "node-agent",
		Short:         "Make this machine a node of its cluster",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "run", Short: "Apply the node plan, and start the kubelet of the release; done at each boot, until it succeeds", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return until(cmd.Context(), h, retry, run) },
		},
		followCommand(h),
		takeoverCommand(h),
		&cobra.Command{
			Use: "sandbox", Short: "Bring the release's pod image into the container runtime", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return sandbox(cmd.Context(), h) },
		},
		&cobra.Command{
			Use: "kubelet", Short: "Run the release's kubelet with these flags, under the machine's name", DisableFlagParsing: true,
			RunE: func(_ *cobra.Command, args []string) error { return kubelet(h, args) },
		},
	)
	return cmd
}

// until repeats a function until it succeeds.
func until(ctx context.Context, h *host.Host, wait time.Duration, do func(context.Context, *host.Host) error) error {
	for {
		err := do(ctx, h)
		if err == nil {
			return nil
		}
		h.Say("not done yet, trying again in %s: %v", wait, err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// step is one step of making a machine a node.
type step struct {
	name string
	do   func(context.Context, *host.Host, *nodeplan.Plan) error
}

// steps apply the plan to a machine. Each step is idempotent, so a machine that loses power between two steps can
// continue.
var steps = []step{
	{"applying the node plan", apply.Plan},
	{"setting the kernel arguments", apply.KernelArguments},
	{"turning swap off", apply.SwapOff},
	{"setting up the kernel", apply.KernelSettings},
	{"installing the release's programs", release.Install},
	{"configuring the container runtime", release.Configure},
}

// run makes the machine a node, from any state. It applies the plan, or continues an interrupted update.
func run(ctx context.Context, h *host.Host) error {
	state, err := update.Load(h)
	if err != nil {
		return err
	}
	if state.Underway() {
		if err := updating(h, nil).Resume(ctx); err != nil {
			return err
		}
		return release.Follow(ctx, h, nil)
	}
	return bring(ctx, h, step{"removing the files of other releases", release.RemoveOthers}, step{"starting the node", release.Start},
		step{"starting the service that follows the pool's configuration", release.Follow})
}

// bring applies the plan with all steps, followed by the additional ones.
func bring(ctx context.Context, h *host.Host, more ...step) error {
	plan, err := plan(ctx, h)
	if err != nil {
		return err
	}
	for _, step := range slices.Concat(steps, more) {
		if err := step.do(ctx, h, plan); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	h.Say("this machine runs the kubelet of %s", plan.Node.Name)
	return nil
}

// updating returns the Machine on which an update operates.
func updating(h *host.Host, healthy func(context.Context) error) *update.Machine {
	return &update.Machine{Host: h, Healthy: healthy, Bring: func(ctx context.Context) error {
		return bring(ctx, h, step{"restarting the node", release.Restart})
	}}
}

func sandbox(ctx context.Context, h *host.Host) error {
	plan, err := plan(ctx, h)
	if err != nil {
		return err
	}
	if err := release.Sandbox(ctx, h, plan); err != nil {
		return fmt.Errorf("bringing the pod image into the container runtime: %w", err)
	}
	return nil
}

// kubelet replaces this process with the kubelet. It sets the node name: a Node cannot be renamed, and the kernel's
// host name may still come from the installer.
func kubelet(h *host.Host, args []string) error {
	program := release.Program(h, "kubelet")
	argv := append([]string{program, "--hostname-override=" + nodeName(h)}, args...)
	if err := syscall.Exec(program, argv, os.Environ()); err != nil { //nolint:gosec // It is the release's own, checked when it was installed.
		return fmt.Errorf("starting %s: %w", program, err)
	}
	return nil
}

// nodeName returns the name in /etc/hostname, else the host name in the kernel, in lower case.
func nodeName(h *host.Host) string {
	name, err := h.Read("/etc/hostname")
	if text := strings.TrimSpace(string(name)); err == nil && text != "" {
		return strings.ToLower(text)
	}
	fromKernel, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return strings.ToLower(fromKernel)
}
