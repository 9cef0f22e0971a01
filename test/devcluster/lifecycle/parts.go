// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/hypershift/test/devcluster/cluster"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/supervise"
)

// simulator returns the MAAS simulator as a supervised process.
func (e *Environment) simulator() supervise.Process {
	command := []string{e.Program("maas-simulator"), "serve",
		"--listen", env.MAASListen, "--admin-listen", env.MAASAdmin, "--state-dir", e.MAAS(),
		"--users", "admin,alice,bob", "--boot", "netns", "--boot-dir", e.Machines(),
		// Simulated machines do nothing in commissioning; the delay only makes the wait for it visible.
		"--commission-duration", "3s"}
	return supervise.Process{
		Name: "maas-simulator", Dir: e.MAAS(), Namespace: env.Namespace, Command: append(command, e.MAASArguments...),
	}
}

func (e *Environment) upSimulator(ctx context.Context) error {
	if e.WithoutMAAS {
		return nil
	}
	started := time.Now()
	if err := e.simulator().Start(); err != nil {
		return err
	}
	err := within(ctx, maasDeadline, func(ctx context.Context) error {
		return cluster.Until(ctx, func(ctx context.Context) error { return dial(ctx, env.MAASListen) })
	})
	if err != nil {
		return e.blameLog(fmt.Errorf("the MAAS simulator does not serve: %w", err), e.simulator().Log())
	}
	e.done("MAAS simulator", started)
	return nil
}

// upStore waits for the object store, which the management machine starts.
func (e *Environment) upStore(ctx context.Context) error {
	started := time.Now()
	err := within(ctx, storeDeadline, func(ctx context.Context) error {
		return cluster.Until(ctx, func(ctx context.Context) error { return dial(ctx, env.S3) })
	})
	if err != nil {
		return e.blame(fmt.Errorf("the object store does not serve: %w", err), "s3")
	}
	e.done("object store", started)
	return nil
}

func dial(ctx context.Context, address string) error {
	connection, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return connection.Close()
}

// lock prevents two commands from changing the same environment at the same time.
func (e *Environment) lock() (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(e.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another devcluster command is working on %s: wait until it is done", e.Dir)
		}
		return nil, fmt.Errorf("locking %s: %w", e.Dir, err)
	}
	return func() { file.Close() }, nil
}
