// SPDX-License-Identifier: Apache-2.0

// Package lifecycle brings the embedded environment up and takes it down.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openshift/hypershift/test/devcluster/cluster"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/images"
	"github.com/openshift/hypershift/test/devcluster/preflight"
	"github.com/openshift/hypershift/test/machine"
)

// Timeouts of the parts, long enough for a cold and busy machine.
const (
	apiDeadline      = 5 * time.Minute
	registryDeadline = 5 * time.Minute
	nodeDeadline     = 5 * time.Minute
	dnsDeadline      = 5 * time.Minute
	maasDeadline     = 2 * time.Minute
	storeDeadline    = 2 * time.Minute
)

// Environment manages one embedded environment and reports its progress to Out.
type Environment struct {
	env.Env
	// Out gets one line for each step.
	Out io.Writer
	// MAASArguments are added to the command line of the MAAS simulator. Nil keeps the arguments of the running simulator.
	MAASArguments []string
	// WithoutMAAS omits the MAAS simulator.
	WithoutMAAS bool
	// Nodes is the number of nodes of the management cluster. Zero keeps the existing ones, or means one.
	Nodes int
}

// Up starts what is not running and returns when everything serves.
func (e *Environment) Up(ctx context.Context) error {
	if err := e.Startable(ctx); err != nil {
		return err
	}
	if err := e.claim(); err != nil {
		return err
	}
	unlock, err := e.lock()
	if err != nil {
		return err
	}
	defer unlock()
	adopted := e.running()
	err = e.up(ctx, adopted)
	if adopted && errors.Is(err, errStopped) {
		fmt.Fprintln(e.Out, "  the management machine was about to stop; starting it again")
		err = e.up(ctx, e.running())
	}
	return err
}

// errStopped reports that the management machine stopped while the other parts were starting.
var errStopped = errors.New("the management machine has stopped")

func (e *Environment) up(ctx context.Context, running bool) error {
	if !running {
		// A supervisor of an earlier run is in a network namespace that no longer exists.
		if err := e.simulator().Stop(ctx); err != nil {
			return err
		}
	}
	started := time.Now()
	nodes, err := e.nodes()
	if err != nil {
		return err
	}
	management, err := cluster.Start(ctx, e.Env, nodes[0], nodes)
	if err != nil {
		return err
	}
	for _, n := range nodes[1:] {
		if _, err := cluster.Start(ctx, e.Env, n, nodes); err != nil {
			return err
		}
	}
	e.done(machines(nodes), started)
	ctx, cancel := e.whileRunning(ctx, management)
	defer cancel(nil)
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return e.upRegistry(ctx) })
	parts.Go(func() error { return e.upCluster(ctx) })
	parts.Go(func() error { return e.upSimulator(ctx) })
	parts.Go(func() error { return e.upStore(ctx) })
	return parts.Wait()
}

// whileRunning returns a context that ends when the machine does, with the reason as its cause: without the machine
// nothing else can start.
func (e *Environment) whileRunning(ctx context.Context, management *machine.Machine) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		if err := management.Wait(ctx); err == nil {
			cancel(e.blameLog(errStopped, management.Config().Console()))
		}
	}()
	return ctx, cancel
}

// Preflight reports what prevents this machine from running the environment, one problem per line; nothing if it
// already runs. It does not check the build, since users run it before the build.
func (e *Environment) Preflight(ctx context.Context) error {
	return e.preflight(ctx, preflight.Machine)
}

// Startable reports the problems that Preflight reports, and problems of the build.
func (e *Environment) Startable(ctx context.Context) error { return e.preflight(ctx, preflight.Run) }

func (e *Environment) preflight(ctx context.Context, checks func(context.Context, env.Env) []error) error {
	if err := e.checkOwner(); err != nil || e.running() {
		return err
	}
	return errors.Join(checks(ctx, e.Env)...)
}

func (e *Environment) running() bool {
	management, err := machine.Lookup(e.Management())
	return err == nil && management.Running()
}

func (e *Environment) upRegistry(ctx context.Context) error {
	started := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, registryDeadline, errors.New("the registry did not serve in time"))
	defer cancel()
	ca, err := os.ReadFile(e.RegistryCA())
	if err != nil {
		return err
	}
	err = cluster.Until(ctx, func(ctx context.Context) error {
		return images.Push(ctx, e.Images(), env.Registry, ca)
	})
	if err != nil {
		return e.blame(err, "environment")
	}
	e.done("registry and images", started)
	started = time.Now()
	if err := e.buildPayloads(ctx); err != nil {
		return err
	}
	e.done("release payload", started)
	return nil
}

func (e *Environment) upCluster(ctx context.Context) error {
	started := time.Now()
	err := within(ctx, apiDeadline, func(ctx context.Context) error { return cluster.WaitAPI(ctx, e.Env) })
	if err != nil {
		return e.blame(fmt.Errorf("the management kube-apiserver is not ready: %w", err), "kube-apiserver", "etcd")
	}
	e.done("management API", started)
	c, err := cluster.Connect(e.Env)
	if err != nil {
		return err
	}
	err = within(ctx, apiDeadline, func(ctx context.Context) error {
		return cluster.Until(ctx, func(ctx context.Context) error { return cluster.Apply(ctx, e.Env, c) })
	})
	if err != nil {
		return e.blame(err, "kube-apiserver")
	}
	nodes, err := e.nodes()
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if err := within(ctx, nodeDeadline, func(ctx context.Context) error { return cluster.WaitNode(ctx, c, n.Name) }); err != nil {
			return e.blameLog(e.blameLog(err, e.nodeLog(n, "kubelet")), e.nodeLog(n, "containerd"))
		}
	}
	e.done("management node", started)
	if err := within(ctx, dnsDeadline, cluster.WaitDNS); err != nil {
		return e.blame(err, "kubelet", "kube-controller-manager", "kube-proxy")
	}
	e.done("cluster DNS", started)
	return nil
}

// within limits the time of a step; the error reports the timeout and what was missing.
func within(ctx context.Context, limit time.Duration, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("gave up after %s", limit))
	defer cancel()
	return step(ctx)
}

func (e *Environment) done(what string, started time.Time) {
	fmt.Fprintf(e.Out, "  %-22s %5.1fs\n", what, time.Since(started).Seconds())
}
