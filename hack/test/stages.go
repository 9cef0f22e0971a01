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
	// Each test has its own timeouts. The timeouts here end a run that hangs. With -short, tests that kill a program at
	// each of its writes skip most of the writes: stage crash runs all.
	"unit": {args: []string{"-vet=off", "-timeout=40m", "-short"}, packages: unit, nice: true},
	// While the scenarios run, a process may wait long for CPU time.
	"plain": {
		env:  []string{"GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=5m"},
		args: []string{"-vet=off", "-timeout=40m", "-short"}, packages: plain, nice: true,
	},
	"crash": {args: []string{"-vet=off", "-timeout=60m"}, packages: only(crash...)},
	"api":   {dir: "api", args: []string{"-vet=off", "-timeout=10m"}, packages: only("./..."), nice: true},
	"race": {
		env:  []string{"CGO_ENABLED=1", "GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=3m"},
		args: []string{"-race", "-vet=off", "-timeout=60m"}, packages: withoutEnvironment,
	},
	// A test that fails once in twenty runs under load is not acceptable.
	"repeat":      {args: []string{"-vet=off", "-timeout=3h", "-short", "-count=20"}, packages: changed, load: true},
	"integration": {args: []string{"-vet=off", "-timeout=20m"}, packages: only(integration...), nice: true},
	"management":  {args: []string{"-vet=off", "-timeout=20m"}, packages: only(management...)},
	// One embedded environment exists per host: a stage that brings one up runs in the same chain as the others.
	"environment": verbose("./test/devcluster", "-timeout=20m"),
	"ha":          verbose("./test/ha", "-timeout=90m", "-run=TestHighlyAvailable|TestTwoNodes"),
	"ha-short":    verbose("./test/ha", "-timeout=40m", "-short", "-run=TestHighlyAvailable"),
	"rotation":    verbose("./test/ha", "-timeout=3h", "-run=TestRotation"),
	"takeover":    verbose("./test/takeover", "-timeout=15m"),
	"openshift":   verbose("./test/openshift", "-timeout=3h"),
	"upgrade":     verbose("./test/e2e", "-timeout=60m", "-run="+fleetUpgrade),
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
const eventually = "GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=1m"

// management depends on the version of the management cluster's kube-apiserver: the CRDs and their rules, the webhook,
// server-side apply, and the installation.
var management = []string{
	"./support/testenv/...", "./support/manifest/...", "./hypershift-operator/webhook/...", "./cmd/install/...", "./cmd/root/...",
	"./test/integration/...", "./test/security/...",
}

// crash lists the packages whose tests -short reduces.
var crash = []string{"./cluster-api-provider-maas", "./hypershift-operator/controllers/hostedcluster", "./cmd/root"}

// integration lists packages with tests across packages, with a kube-apiserver.
var integration = []string{"./test/integration/...", "./test/security/...", "./test/clusterapi/..."}

// only lists fixed packages.
func only(patterns ...string) func() ([]string, error) {
	return func() ([]string, error) { return patterns, nil }
}

// unit lists the packages whose tests start a kube-apiserver, except those with a separate stage.
func unit() ([]string, error) {
	packages, servers, err := split()
	return slices.DeleteFunc(packages, func(pkg string) bool { return !servers[pkg] }), err
}

// plain lists the packages whose tests start no kube-apiserver, except those with a separate stage.
func plain() ([]string, error) {
	packages, servers, err := split()
	return slices.DeleteFunc(packages, func(pkg string) bool { return servers[pkg] }), err
}

// split lists all packages with tests, except those with a separate stage, and which of them start a kube-apiserver.
func split() (packages []string, servers map[string]bool, err error) {
	if packages, err = tested(); err != nil {
		return nil, nil, err
	}
	// With -test, go list also lists the program of each package's tests, which is called PACKAGE.test.
	format := `{{if eq .Name "main"}}{{$path := .ImportPath}}{{range .Deps}}` +
		`{{if eq . "` + module + `/support/testenv"}}{{println $path}}{{end}}{{end}}{{end}}`
	out, err := exec.Command("go", "list", "-test", "-f", format, "./...").Output()
	if err != nil {
		return nil, nil, err
	}
	servers = map[string]bool{}
	for program := range strings.FieldsSeq(string(out)) {
		servers[strings.TrimSuffix(program, ".test")] = true
	}
	return slices.DeleteFunc(packages, hasOwnStage), servers, nil
}

// withoutEnvironment lists all packages with tests that need no embedded environment. Those that do run binaries
// without the race detector.
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
