// SPDX-License-Identifier: Apache-2.0

// Package skew lists which versions of HyperShift's parts work with each other. The installation and the tests use the
// table, and the documentation shows it.
package skew

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

const (
	// Version is the version that this source becomes when it is released.
	Version = "0.2.0"
	// First is the first released version. It does not record its version in a management cluster, so an installation
	// without a recorded version has this version.
	First = "0.1.0"
	// Annotation is the annotation of the operator's Deployment and of HyperShift's CRDs with the version that installed
	// them.
	Annotation = hyperv1.InstalledVersionAnnotation
)

// Part is a part of HyperShift whose version can differ from the operator's.
type Part string

// The parts of a Kubernetes cluster. An OpenShift payload brings its own control-plane-operator, config operator and
// ignition-server.
const (
	ControlPlaneOperator Part = "control-plane-operator"
	ConfigOperator       Part = "hosted-cluster-config-operator"
	IgnitionServer       Part = "ignition-server"
	NodeAgent            Part = "node-agent"
	Payload              Part = "release payload"
	CLI                  Part = "command line"
)

// Any is a number of minor versions without a limit.
const Any = -1

// Rule says which versions of a part work with the hypershift-operator.
type Rule struct {
	Part Part
	// Behind and Ahead are the numbers of minor versions that the part may be older and newer than the operator.
	Behind, Ahead int
	// When describes when the versions differ.
	When string
	// Remedy describes what to do if the versions do not work with each other.
	Remedy string
}

// Rules returns the table.
func Rules() []Rule {
	const image = "upgrade the operator by one minor version at a time, and let each control plane finish its rollout"
	return []Rule{
		{ControlPlaneOperator, 1, 1, "while control planes take the operator's image", image},
		{ConfigOperator, 1, 1, "while control planes take the operator's image", image},
		{IgnitionServer, 1, 1, "while control planes take the operator's image", image},
		{NodeAgent, Any, 1, "for the life of a node: an upgrade does not replace it",
			"wait until the control plane has the newer version"},
		{Payload, Any, Any, "for the life of a cluster; a payload can name a lowest version of the operator",
			"upgrade the operator first, or use a payload of an older version"},
		{CLI, 1, 1, "whenever it is used", "use the command line of the operator's version"},
	}
}

// Check returns an error if a version of a part does not work with a version of the operator.
func Check(part Part, version, operator string) error {
	v, err := parse(version)
	if err != nil {
		return fmt.Errorf("comparing the %s with the operator: %w", part, err)
	}
	o, err := parse(operator)
	if err != nil {
		return fmt.Errorf("comparing the operator with the %s: %w", part, err)
	}
	for _, rule := range Rules() {
		if rule.Part == part && !rule.allows(v, o) {
			return fmt.Errorf("version %s of the %s does not work with version %s of the operator; %s", v, part, o, rule.Remedy)
		}
	}
	return nil
}

func (r Rule) allows(version, operator semver.Version) bool {
	if version.Major != operator.Major {
		return r.Behind == Any && version.Major < operator.Major || r.Ahead == Any && version.Major > operator.Major
	}
	behind := int(operator.Minor) - int(version.Minor) //nolint:gosec // Versions of releases are small.
	return (r.Behind == Any || behind <= r.Behind) && (r.Ahead == Any || -behind <= r.Ahead)
}

// CheckPayload returns an error if a payload needs a newer operator than this version. lowest is the lowest version of
// the operator that the payload names; it is empty for a payload that all versions can run.
func CheckPayload(lowest string) error {
	if lowest == "" {
		return nil
	}
	needed, err := parse(lowest)
	if err != nil {
		return fmt.Errorf("the release names the lowest version of the operator: %w", err)
	}
	if needed.GT(semver.MustParse(Version)) {
		return fmt.Errorf("the release needs version %s of the operator, and this is %s; upgrade the operator first, or "+
			"choose another release image", needed, Version)
	}
	return nil
}

// CheckInstall returns an error if this version must not be installed over another one. installed is the value of
// Annotation; empty means First.
func CheckInstall(installed string) error {
	if installed == "" {
		installed = First
	}
	from, err := parse(installed)
	if err != nil {
		return fmt.Errorf("reading the installed version: %w", err)
	}
	to := semver.MustParse(Version)
	switch {
	case from.Major == to.Major && from.Minor == to.Minor, from.Major == to.Major && from.Minor+1 == to.Minor:
		return nil
	case from.GT(to):
		return fmt.Errorf("version %s is installed, and this is %s: going back by a minor version is not possible; use "+
			"version %d.%d, or restore backups of the hosted clusters that version %d.%d wrote", from, to, from.Major, from.Minor,
			to.Major, to.Minor)
	}
	return fmt.Errorf("version %s is installed, and this is %s: an upgrade must not skip a minor version; install the "+
		"newest version %d.%d first", from, to, from.Major, from.Minor+1)
}

// Limit returns the number of minor versions as text.
func Limit(minors int) string {
	switch minors {
	case Any:
		return "any"
	case 1:
		return "1 minor"
	}
	return fmt.Sprintf("%d minors", minors)
}

func parse(version string) (semver.Version, error) {
	v, err := semver.Parse(strings.TrimPrefix(version, "v"))
	if err != nil {
		return v, fmt.Errorf("%q is not a version such as %s", version, Version)
	}
	return v, nil
}
