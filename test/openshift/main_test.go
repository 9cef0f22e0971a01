// SPDX-License-Identifier: Apache-2.0

// Package openshift tests hosted clusters of OpenShift releases in the embedded environment. The operators of the
// release's control plane are built from a clone of openshift/hypershift, which the user names. Kubernetes and etcd are
// the environment's, and all other programs of the release are fakes.
package openshift

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/openshift/hypershift/support/maas"
	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/journey"
)

// Variables of the environment that configure the test.
const (
	// upstreamVariable names a clone of openshift/hypershift.
	upstreamVariable = "UPSTREAM"
	// refVariable names a branch, tag or commit of the clone; empty for the clone's HEAD.
	refVariable = "REF"
)

const (
	// cluster is the hosted cluster, and also its first NodePool, which replaces nodes.
	cluster = "openshift"
	// inPlace is the NodePool that is updated in place.
	inPlace = "inplace"
	// hosted is the namespace of the control plane.
	hosted = journey.Namespace + "-" + cluster
)

// Timeouts of waits: many times what an idle computer needs.
const (
	// soon is for steps that take seconds.
	soon = 5 * time.Minute
	// long is for the start of a control plane or of machines.
	long = 20 * time.Minute
)

// part is one step of the scenario.
type part struct {
	name string
	run  func(*suite, *testing.T)
}

// parts returns the parts of the scenario in order. They run after the operators are built and the environment is up.
func parts() []part {
	return []part{
		{"pushes a payload", (*suite).pushPayload},
		{"reports the HostedCluster as available", (*suite).create},
		{"rolls out every component of the control plane", (*suite).components},
		{"joins a node that booted with the release's configuration", (*suite).join},
		{"replaces the node of a changed configuration", (*suite).replaceConfig},
		{"updates a node in place", (*suite).updateInPlace},
		{"upgrades the control plane by a patch", (*suite).upgrade},
		{"upgrades the nodes by a patch", (*suite).upgradeNodes},
		{"approves the certificates of kubelets", unavailable("the machine-approver is not in openshift/hypershift")},
		{"rotates tokens of the ignition-server", unavailable("the release rotates them after five and a half hours")},
		{"upgrades by a minor", unavailable("one run builds one line of openshift/hypershift")},
		{"reports no denied request of the operators", (*suite).rights},
		{"destroys the HostedCluster and releases its machines", (*suite).destroy},
	}
}

// unavailable returns a part that cannot run here.
func unavailable(reason string) func(*suite, *testing.T) {
	return func(_ *suite, t *testing.T) { //nolint:thelper // A part gets the suite first, as a method does.
		t.Helper()
		t.Skip(reason)
	}
}

// suite holds what the parts share.
type suite struct {
	*journey.Walker
	e    env.Env
	c    client.Client
	maas *maas.Client

	sources *sources
	payload *payload
	// versions are the first version of the cluster and the next patch; releases are their pull specifications.
	versions, releases [2]string
}

// TestOpenShift checks a hosted cluster of an OpenShift release: creation, nodes, updates and destruction.
func TestOpenShift(t *testing.T) {
	clone := os.Getenv(upstreamVariable)
	if clone == "" {
		t.Skipf("%s is not set; make test-openshift %s=DIR [%s=release-4.20] names a clone of openshift/hypershift",
			upstreamVariable, upstreamVariable, refVariable)
	}
	s := start(t)
	s.run(t, part{"builds the operators of the release from the clone", (*suite).build})
	s.environment(t)
	s.kubelets(t)
	for _, part := range parts() {
		s.run(t, part)
	}
	s.Say("OpenShift %s, commit %s of %s: all parts passed", s.sources.line, s.sources.commit, s.sources.date)
}

// run runs a part as a subtest, and stops the test if it fails.
func (s *suite) run(t *testing.T, p part) {
	t.Helper()
	if !t.Run(p.name, func(t *testing.T) { p.run(s, t) }) {
		t.Fatalf("stopping here: the following parts depend on %q", p.name)
	}
}

// start prepares the test. The environment comes up when the operators are built.
func start(t *testing.T) *suite {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to make namespaces for the machines")
	}
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	e, err := env.New("", bin)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(e.Kubeconfig()); err == nil && !kept() {
		t.Fatalf("an environment is there already in %s; remove it with make demo-down", e.Dir)
	}
	log.SetLogger(logr.Discard()) // The clients return their errors.
	return &suite{Walker: journey.NewWalker(e.Bin, e.Dir, os.Stdout), e: e}
}

// kept reports whether the user keeps the environment after the test, for inspection.
func kept() bool { return os.Getenv("HYPERSHIFT_E2E_KEEP") != "" }

// environment brings up the management cluster, the registry and MAAS. It removes them when the test ends.
func (s *suite) environment(t *testing.T) {
	t.Helper()
	if !kept() {
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), soon)
			defer cancel()
			if err := s.StopEnvironment(ctx); err != nil {
				t.Errorf("taking the environment down: %v", err)
			}
		})
	}
	err := s.StartEnvironment(t.Context())
	s.must(t, err)
	s.c, err = s.Management()
	s.must(t, err)
	s.maas, err = s.MAAS()
	s.must(t, err)
}

// must fails the test on an error, after it has printed the likely cause.
func (s *suite) must(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if s.c != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s.Diagnose(ctx, cluster)
	}
	t.Fatal(err)
}

// reach waits until the check succeeds, and fails the test after the limit.
func (s *suite) reach(t *testing.T, what string, limit time.Duration, check journey.Check) {
	t.Helper()
	s.must(t, s.Reach(t.Context(), what, limit, check))
}

// patch changes the specification of a HostedCluster or a NodePool.
func (s *suite) patch(t *testing.T, kind, name, format string, args ...any) {
	t.Helper()
	s.must(t, s.Type(t.Context(), "kubectl", "patch", kind, name, "-n", journey.Namespace, "--type=merge",
		"-p", fmt.Sprintf(format, args...)))
}
