// SPDX-License-Identifier: Apache-2.0

// Package e2e walks the journey of a user in the embedded environment and asserts it, with everything real but the metal
// and MAAS itself: machines that fail, processes that are killed, a MAAS that is away.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/journey"
)

// cluster is the hosted cluster that the tests share.
const cluster = "e2e"

// ignitionImage is what the cluster's first pool runs; the others run Ubuntu, as people do who name no image.
const ignitionImage = "custom/kubernetes-node"

// Limits of waits: many times what a quiet computer needs, so that only a hang meets them on one that runs all other tests beside.
const (
	// soon is for what takes seconds, such as a condition that tells of a mistake.
	soon = 5 * time.Minute
	// long is for what takes a minute, such as a machine that is installed or given back.
	long = 10 * time.Minute
)

// suite is what the tests of one walk share.
type suite struct {
	*journey.Walker
	c    client.Client
	maas *maas.Client
}

// start brings up the environment, and takes it down when the test ends. HYPERSHIFT_E2E_KEEP=1 leaves it for a look.
func start(tb testing.TB) *suite {
	tb.Helper()
	if os.Getuid() != 0 {
		tb.Skip("needs root, to make namespaces for the machines")
	}
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		tb.Fatal(err)
	}
	e, err := env.New("", bin)
	if err != nil {
		tb.Fatal(err)
	}
	s := &suite{Walker: journey.NewWalker(e.Bin, e.Dir, os.Stdout)}
	if _, err := os.Stat(e.Kubeconfig()); err == nil && os.Getenv("HYPERSHIFT_E2E_KEEP") == "" {
		tb.Fatalf("an environment is there already in %s: remove it with `make demo-down`", e.Dir)
	}
	tb.Cleanup(func() { s.stop(tb) })
	s.must(tb, s.StartEnvironment(tb.Context()))
	if s.c, err = s.Management(); err != nil {
		tb.Fatal(err)
	}
	if s.maas, err = s.MAAS(); err != nil {
		tb.Fatal(err)
	}
	return s
}

func (s *suite) stop(tb testing.TB) {
	if os.Getenv("HYPERSHIFT_E2E_KEEP") != "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	if err := s.StopEnvironment(ctx); err != nil {
		tb.Errorf("taking the environment down: %v", err)
	}
}

// must fails the test on an error, after telling what stands in the way.
func (s *suite) must(tb testing.TB, err error) {
	tb.Helper()
	if err == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.Diagnose(ctx, cluster)
	tb.Fatal(err)
}

// reach waits for a check, or fails the test.
func (s *suite) reach(tb testing.TB, what string, limit time.Duration, check journey.Check) {
	tb.Helper()
	s.must(tb, s.Reach(tb.Context(), what, limit, check))
}

// fault makes the simulated MAAS misbehave.
func (s *suite) fault(t *testing.T, rule map[string]any) {
	t.Helper()
	body, err := json.Marshal(rule)
	if err != nil {
		t.Fatal(err)
	}
	s.admin(t, http.MethodPost, "/faults", body)
}

// heal takes back all faults.
func (s *suite) heal(t *testing.T) { s.admin(t, http.MethodDelete, "/faults", nil) }

func (s *suite) admin(t *testing.T, method, path string, body []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+env.MAASAdmin+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		text, _ := io.ReadAll(response.Body)
		t.Fatalf("%s %s of the simulator's admin port: %s: %s", method, path, response.Status, text)
	}
}

// scale runs what a user types.
func (s *suite) scale(t *testing.T, pool string, replicas int) {
	t.Helper()
	s.must(t, s.Type(t.Context(), "kubectl", "scale", "nodepool", pool, "-n", journey.Namespace, fmt.Sprintf("--replicas=%d", replicas)))
}

// allocations maps the system ids that MAAS has given away to their machines.
func (s *suite) allocations(t *testing.T) map[string]maas.Machine {
	t.Helper()
	given, err := s.allocated(t.Context())
	s.must(t, err)
	return given
}

func (s *suite) allocated(ctx context.Context) (map[string]maas.Machine, error) {
	return journey.Allocated(ctx, s.maas)
}
