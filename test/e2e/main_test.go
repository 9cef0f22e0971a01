// SPDX-License-Identifier: Apache-2.0

// Package e2e tests user scenarios in the embedded environment, where everything is real except the hardware and MAAS
// itself. The scenarios include failing machines, killed processes and an unavailable MAAS.
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
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/journey"
	"github.com/openshift/hypershift/test/maas-simulator/faults"
)

// ignitionImage is the image of pools whose machines Ignition configures; the other pools run the default, Ubuntu.
const ignitionImage = "custom/kubernetes-node"

// workers is the MAAS resource pool of the scenarios' machines. Special machines are in other pools.
const workers = "workers"

// Timeouts of waits. They are many times what an idle computer needs. Only a hang exceeds them, even on a computer
// that runs all other tests in parallel.
const (
	// soon is for steps that take seconds, such as a condition that reports a mistake.
	soon = 5 * time.Minute
	// long is for steps that take a minute, such as deploying or releasing a machine.
	long = 10 * time.Minute
)

// suite is the environment and the state of one scenario.
type suite struct {
	*journey.Walker
	c    client.Client
	maas *maas.Client

	// cluster is the scenario's hosted cluster; user is its MAAS user, with the API key in keyFile.
	cluster, user, keyFile string
	// running is locked for reading while the scenario runs, and for writing while no other scenario may run.
	running     *sync.RWMutex
	waitedAlone time.Duration
}

// start brings up the environment with extra flags, and takes it down when the test ends. HYPERSHIFT_E2E_KEEP=1 keeps it
// for inspection.
func start(tb testing.TB, extra ...string) *suite {
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
	log.SetLogger(logr.Discard()) // The clients return their errors.
	s := &suite{Walker: journey.NewWalker(e.Bin, e.Dir, os.Stdout)}
	if _, err := os.Stat(e.Kubeconfig()); err == nil && os.Getenv("HYPERSHIFT_E2E_KEEP") == "" {
		tb.Fatalf("an environment is there already in %s: remove it with `make demo-down`", e.Dir)
	}
	tb.Cleanup(func() { s.stop(tb) })
	s.must(tb, s.StartEnvironment(tb.Context(), extra...))
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

// must fails the test on an error, after it has printed the likely cause.
func (s *suite) must(tb testing.TB, err error) {
	tb.Helper()
	if err == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if s.cluster != "" {
		s.Diagnose(ctx, s.cluster)
	}
	tb.Fatal(err)
}

// reach waits for a check, or fails the test.
func (s *suite) reach(tb testing.TB, what string, limit time.Duration, check journey.Check) {
	tb.Helper()
	s.must(tb, s.Reach(tb.Context(), what, limit, check))
}

// fault makes the simulated MAAS fail for the scenario's user and machines. The returned function and the end of the
// test remove the fault.
func (s *suite) fault(t *testing.T, rule faults.Rule) (id int, heal func()) {
	t.Helper()
	rule.User = s.user
	body, err := json.Marshal(rule)
	s.must(t, err)
	var added faults.Rule
	s.must(t, json.Unmarshal(s.admin(t.Context(), t, http.MethodPost, "/faults", body), &added))
	heal = sync.OnceFunc(func() {
		s.admin(context.WithoutCancel(t.Context()), t, http.MethodDelete, fmt.Sprintf("/faults/%d", added.ID), nil)
	})
	t.Cleanup(heal)
	return added.ID, heal
}

// admin sends a request to the simulator's admin port and returns the response, or fails the test.
func (s *suite) admin(ctx context.Context, t *testing.T, method, path string, body []byte) []byte {
	t.Helper()
	answer, err := callSimulator(ctx, method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// callSimulator sends a request to the simulator's admin port and returns the response.
func callSimulator(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+env.MAASAdmin+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s of the simulator's admin port: %s: %s", method, path, response.Status, text)
	}
	return text, nil
}

// scale scales a pool with the command of a user.
func (s *suite) scale(t *testing.T, pool string, replicas int) {
	t.Helper()
	s.must(t, s.Type(t.Context(), "kubectl", "scale", "nodepool", pool, "-n", journey.Namespace, fmt.Sprintf("--replicas=%d", replicas)))
}

// allocations maps system IDs to the machines that are allocated to the scenario's user.
func (s *suite) allocations(t *testing.T) map[string]maas.Machine {
	t.Helper()
	given, err := s.allocated(t.Context())
	s.must(t, err)
	return given
}

func (s *suite) allocated(ctx context.Context) (map[string]maas.Machine, error) {
	return journey.Allocated(ctx, s.maas, s.user)
}
