// SPDX-License-Identifier: Apache-2.0

// Command maas-check tests what the product needs from a MAAS, against a real one. It first only reads, and prints what
// it would allocate. It allocates that only with confirmation, and releases all of it.
//
// Usage: MAAS_ENDPOINT=... MAAS_API_KEY_FILE=... [CONFIRM=yes] maas-check
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/maas"
)

func main() {
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Getenv, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "maas-check:", err)
		os.Exit(1)
	}
}

// settings holds the configuration from the environment.
type settings struct {
	maas.Config
	// Pool and Zone restrict the allocation; empty means any.
	Pool, Zone string
	// Image is the image to deploy; empty means MAAS's default.
	Image string
	// Confirmed permits the announced allocation.
	Confirmed bool
}

func read(getenv func(string) string) (settings, error) {
	s := settings{Pool: getenv("MAAS_POOL"), Zone: getenv("MAAS_ZONE"), Image: getenv("MAAS_IMAGE"), Confirmed: getenv("CONFIRM") == "yes"}
	s.Endpoint, s.UserAgent = getenv(hyperv1.MAASEndpointKey), "hypershift-maas-check"
	if s.Endpoint == "" || getenv("MAAS_API_KEY_FILE") == "" {
		return s, errors.New("set MAAS_ENDPOINT, the URL of MAAS up to and including /MAAS, and MAAS_API_KEY_FILE, a file with an API key")
	}
	key, err := os.ReadFile(getenv("MAAS_API_KEY_FILE"))
	if err != nil {
		return s, fmt.Errorf("MAAS_API_KEY_FILE: %w", err)
	}
	s.APIKey = string(key)
	if file := getenv("MAAS_CA_BUNDLE_FILE"); file != "" {
		if s.CABundle, err = os.ReadFile(file); err != nil {
			return s, fmt.Errorf("MAAS_CA_BUNDLE_FILE: %w", err)
		}
	}
	return s, nil
}

// check is one run of the checks.
type check struct {
	settings
	maas     *maas.Client
	report   *progress.Reporter
	interval time.Duration
	admin    bool
}

func run(ctx context.Context, getenv func(string) string, out io.Writer) error {
	s, err := read(getenv)
	if err != nil {
		return err
	}
	client, err := maas.NewClient(s.Config)
	if err != nil {
		return err
	}
	c := &check{settings: s, maas: client, report: progress.New(out, clock.RealClock{}), interval: 10 * time.Second}
	return c.walk(ctx)
}

// walk reads, prints the plan, allocates, and releases.
func (c *check) walk(ctx context.Context) error {
	if err := c.look(ctx); err != nil {
		return err
	}
	if err := c.giveBackLeftovers(ctx); err != nil {
		return err
	}
	plan, err := c.plan(ctx)
	if err != nil {
		return err
	}
	for _, words := range plan.says() {
		c.report.Printf("would take: %s", words)
	}
	if !c.Confirmed {
		c.report.Printf("nothing was allocated; with CONFIRM=yes it is allocated, used for some minutes, and released")
		return nil
	}
	return c.take(ctx, plan)
}
