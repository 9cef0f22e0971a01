// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"slices"
	"strings"
)

// stage is one run of go test, or of a command.
type stage struct {
	// dir is the folder to run in; empty for the current one.
	dir string
	// env is added to the environment.
	env []string
	// args are further arguments of go test.
	args []string
	// packages lists what go test tests. It is nil for a stage with a command.
	packages func() ([]string, error)
	// command runs in place of go test. Its output goes to a log file unless events is true.
	command []string
	// events reports that the command prints the events of go test -json.
	events bool
	// nice lowers the priority: the embedded environment beside it has deadlines, and this stage has none.
	nice bool
	// environment reports that the stage brings up the embedded environment.
	environment bool
	// load reports that the processors are kept busy at the same time.
	load bool
}

var stages = map[string]stage{
	"build":  {command: []string{"make", "--no-print-directory", "test-environment", "lint-binary"}},
	"lint":   {command: []string{"make", "--no-print-directory", "lint"}, nice: true},
	"verify": {command: []string{"make", "--no-print-directory", "verify"}, nice: true},
	// This stage compiles the dependencies of the tests while the scenarios wait for machines.
	"compile": {command: []string{"go", "list", "-test", "-export", "-f", "{{with .Error}}{{.}}{{end}}", "./..."},
		nice: true},
	// Each test has its own timeouts. The timeouts here end a run that hangs. With -short, packages skip tests that
	// take minutes; stage long runs all tests.
	"packages":    {args: []string{"-vet=off", "-timeout=40m", "-short"}, packages: packages, nice: true},
	"unit":        {args: []string{"-vet=off", "-timeout=40m", "-short"}, packages: unit, nice: true},
	"integration": {args: []string{"-vet=off", "-timeout=20m"}, packages: only(integration...), nice: true},
	"long":        {args: []string{"-vet=off", "-timeout=60m"}, packages: only(long...)},
	"api":         {dir: "api", args: []string{"-vet=off", "-timeout=10m"}, packages: only("./..."), nice: true},
	"race": {
		env:  []string{"CGO_ENABLED=1", "GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=3m"},
		args: []string{"-race", "-vet=off", "-timeout=60m"}, packages: withoutEnvironment,
	},
	// A test that fails once in twenty runs under load is not acceptable.
	"repeat":     {args: []string{"-vet=off", "-timeout=3h", "-short", "-count=20"}, packages: changed, load: true},
	"management": {args: []string{"-vet=off", "-timeout=20m"}, packages: only(management...)},
	// One embedded environment exists per host: a stage that brings one up runs in the same chain as the others.
	"environment": verbose("./test/devcluster", "-timeout=20m"),
	"ha":          verbose("./test/ha", "-timeout=90m", "-run=TestHighlyAvailable|TestTwoNodes"),
	"ha-short":    verbose("./test/ha", "-timeout=40m", "-short", "-run=TestHighlyAvailable"),
	"rotation":    verbose("./test/ha", "-timeout=3h", "-run=TestRotation"),
	"takeover":    verbose("./test/takeover", "-timeout=15m"),
	"openshift":   verbose("./test/openshift", "-timeout=3h"),
	"upgrade":     verbose("./test/e2e", "-timeout=90m", "-run="+fleetUpgrade),
	"e2e":         verbose("./test/e2e/...", "-timeout=90m", "-skip="+fleetUpgrade),
	"e2e-short":   verbose("./test/e2e/...", "-timeout=60m", "-short", "-skip="+fleetUpgrade),
}

// fleetUpgrade matches the test of an upgrade under many clusters, which needs three nodes and a stage of its own.
const fleetUpgrade = "^TestFleetUpgrade$"

// verbose returns a stage in the embedded environment. It shows the progress of its tests.
func verbose(pkg string, args ...string) stage {
	args = append([]string{"-vet=off", "-count=1", "-p=1", "-v"}, args...)
	return stage{args: args, packages: only(pkg), environment: true}
}

// eventually sets how long Gomega's Eventually waits by default. Gomega's own default of one second is too short for a
// process to start on a busy machine.
const eventually = "GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=5m"

// management lists the packages whose tests depend on the version of the management cluster's kube-apiserver. They
// cover the CRDs and their rules, the webhook, server-side apply, and the installation.
var management = []string{
	"./support/testenv/...", "./support/manifest/...", "./hypershift-operator/webhook/...", "./cmd/install/...", "./cmd/root/...",
	"./test/integration/...", "./test/security/...",
}

// long lists the packages whose tests -short reduces.
var long = []string{
	"./cluster-api-provider-maas/...", "./hypershift-operator/controllers/hostedcluster", "./cmd/root",
	"./hypershift-operator/controllers/nodepool", "./control-plane-operator/controllers/etcd",
	"./control-plane-operator/controllers/hostedcontrolplane/v2",
}

// longest lists packages whose tests take more than a minute. They start first, so that no processor is idle at the end.
var longest = []string{
	"control-plane-operator/controllers/etcd", "hypershift-operator/controllers/hostedcluster", "cmd/root",
	"cluster-api-provider-maas", "control-plane-operator/controllers/hostedcontrolplane/v2", "test/clusterapi",
	"test/integration/nodeinputs", "hypershift-operator/platform/conformance", "test/integration/api", "test/security",
	"hypershift-operator/controllers/nodepool", "cluster-api-provider-maas/internal/machine",
	"control-plane-operator/controllers/hostedcontrolplane",
}

// integration lists packages with tests across packages, with a kube-apiserver.
var integration = []string{"./test/integration/...", "./test/security/...", "./test/clusterapi/..."}

// only lists fixed packages.
func only(patterns ...string) func() ([]string, error) {
	return func() ([]string, error) { return patterns, nil }
}

// unit lists all packages with tests, except those with a separate stage.
func unit() ([]string, error) {
	packages, err := tested()
	return slices.DeleteFunc(packages, hasOwnStage), err
}

// packages lists the packages of stages unit and integration. One run of all of them keeps the processors busy.
func packages() ([]string, error) {
	all, err := withoutEnvironment()
	slices.SortStableFunc(all, func(a, b string) int { return rank(a) - rank(b) })
	return all, err
}

// rank returns the position of a package in longest; those that are not listed come after it.
func rank(pkg string) int {
	if i := slices.Index(longest, strings.TrimPrefix(pkg, module+"/")); i >= 0 {
		return i
	}
	return len(longest)
}

// withoutEnvironment lists all packages with tests that need no embedded environment. Tests that need one run
// binaries without the race detector.
func withoutEnvironment() ([]string, error) {
	packages, err := tested()
	return slices.DeleteFunc(packages, needsEnvironment), err
}

// tested lists all packages with tests.
func tested() ([]string, error) {
	const format = "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"
	out, err := exec.Command("go", "list", "-f", format, "./...").Output()
	return strings.Fields(string(out)), err
}

// hasOwnStage reports whether a stage other than unit tests a package.
func hasOwnStage(pkg string) bool {
	folder, _ := testFolder(pkg)
	return needsEnvironment(pkg) || folder == "integration" || folder == "security" || folder == "clusterapi"
}

// needsEnvironment reports whether tests of a package run in the embedded environment.
func needsEnvironment(pkg string) bool {
	switch folder, rest := testFolder(pkg); folder {
	case "takeover", "e2e", "ha":
		return true
	case "devcluster", "openshift":
		return rest == ""
	}
	return false
}

// testFolder returns the folder below test/ that a package is in, and the path below that folder.
func testFolder(pkg string) (folder, rest string) {
	_, below, _ := strings.Cut(pkg, "/test/")
	folder, rest, _ = strings.Cut(below, "/")
	return folder, rest
}
