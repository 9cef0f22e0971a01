// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/look"
	"github.com/openshift/hypershift/cmd/nodepool"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/health"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseversion"
	"github.com/openshift/hypershift/support/terminal"
)

// plan is what an upgrade replaces and why.
type plan struct {
	what, from, to, image string
	// same is true if the object has the release image already.
	same bool
	// blocked is why the operator would refuse the upgrade; nil if nothing is known.
	blocked error
	// warnings are what the user should know before the upgrade.
	warnings []string
	// lines say what is replaced.
	lines []string
	// rows are a table of NodePools, with its header.
	rows [][]string
}

// newPlan returns a plan with what both commands have. failure is why the release could not be read.
func newPlan(what, from, before, image string, target *releaseinfo.ReleaseImage, failure error) *plan {
	p := &plan{what: what, from: cmp.Or(from, "no version yet"), image: image, same: before == image}
	if target != nil {
		p.to = target.Version()
		return p
	}
	p.to = "an unknown version"
	p.warnings = append(p.warnings, fmt.Sprintf("the release cannot be read from here, so its version is not "+
		"checked: %v; the operator checks it. Set --pull-secret or --ca-file to check it here", failure))
	return p
}

func planCluster(
	hc *hyperv1.HostedCluster, pools []hyperv1.NodePool, image string, target *releaseinfo.ReleaseImage, failure error,
) *plan {
	running := look.CompletedVersion(hc)
	what := "HostedCluster " + client.ObjectKeyFromObject(hc).String()
	p := newPlan(what, running, hc.Spec.Release.Image, image, target, failure)
	if target != nil && running != "" && hc.Annotations[hyperv1.SkipReleaseImageValidation] != "true" {
		p.blocked = cmp.Or(releaseversion.Supported(target, running), releaseversion.Step(target, running))
	}
	upgradeable := string(hyperv1.ClusterVersionUpgradeable)
	c := meta.FindStatusCondition(hc.Status.Conditions, upgradeable)
	if target != nil && c != nil && c.Status == "False" && !releaseversion.SameMinor(running, target.Version()) {
		f := health.Finding{Condition: *c}
		p.warnings = append(p.warnings, "another minor version waits: "+f.String())
	}
	if hc.Spec.ControlPlaneRelease != nil {
		p.warnings = append(p.warnings, fmt.Sprintf("the control plane keeps the release of spec.controlPlaneRelease, %s; "+
			"change or remove that field to upgrade it", hc.Spec.ControlPlaneRelease.Image))
	}
	p.warnIfPaused(look.StateOfCluster(hc))
	p.lines = []string{
		"The pods of the control plane are replaced, etcd first.",
		"The reason: the release image changes from " + hc.Spec.Release.Image + ".",
		"No machine is replaced: each NodePool keeps its release until it is upgraded.",
	}
	if p.same {
		p.lines = []string{"Nothing is replaced: the cluster has this release image already."}
	} else if hc.Spec.ControllerAvailabilityPolicy != hyperv1.HighlyAvailable {
		p.lines = append(p.lines, "The API is away for short times: the cluster is not highly available.")
	}
	p.addPools(pools, target)
	return p
}

// warnIfPaused warns about an object that the operator does not change now.
func (p *plan) warnIfPaused(state look.State) {
	if state == look.Paused {
		p.warnings = append(p.warnings, "it is paused: the upgrade begins when spec.pausedUntil is over")
	}
}

// addPools adds what the upgrade of the control plane means for each pool.
func (p *plan) addPools(pools []hyperv1.NodePool, target *releaseinfo.ReleaseImage) {
	if len(pools) == 0 {
		return
	}
	p.rows = [][]string{{"NODEPOOL", "NODES", "VERSION", "AFTERWARDS"}}
	var old []string
	for i := range pools {
		pool := &pools[i]
		version, after := pool.Status.Version, "not known"
		if target != nil {
			version = oldest(pool, target)
			after = "can be upgraded: hypershift upgrade nodepool " + pool.Name
			if version == target.Version() {
				after = "has this version already"
			}
			if err := releaseversion.Skew(version, target.Version()); err != nil {
				after = fmt.Sprintf("more than %d minor versions behind: upgrade it first", releaseversion.MaxSkew)
				old = append(old, pool.Name)
			}
		}
		p.rows = append(p.rows, []string{pool.Name, look.Nodes(pool), look.Or(version), after})
	}
	if len(old) > 0 && p.blocked == nil {
		p.blocked = fmt.Errorf("the nodes of %s would be more than %d minor versions behind: upgrade these NodePools first",
			strings.Join(old, ", "), releaseversion.MaxSkew)
	}
}

// oldest returns the oldest version of a pool's nodes; empty if there is none.
func oldest(pool *hyperv1.NodePool, target *releaseinfo.ReleaseImage) string {
	versions := []string{pool.Status.Version}
	traits := distributions.Of(target.Distribution())
	if info := pool.Status.NodesInfo; info != nil && traits.NodeVersion != nil {
		for _, v := range info.NodeVersions {
			versions = append(versions, traits.NodeVersion(v))
		}
	}
	return releaseversion.Oldest(versions...)
}

func planNodePool(
	pool *hyperv1.NodePool, hc *hyperv1.HostedCluster, image string, target *releaseinfo.ReleaseImage, failure error,
) *plan {
	what := "NodePool " + client.ObjectKeyFromObject(pool).String()
	p := newPlan(what, pool.Status.Version, pool.Spec.Release.Image, image, target, failure)
	if completed := look.CompletedVersion(hc); target != nil && completed != "" {
		version := target.Version()
		p.blocked = cmp.Or(releaseversion.Newer(version, completed), releaseversion.Skew(version, completed),
			back(pool.Status.Version, version))
	}
	p.warnIfPaused(look.StateOfNodePool(pool))
	if p.same {
		p.lines = append(p.lines, "Nothing is replaced: the NodePool has this release image already.")
	} else {
		p.lines = append(p.lines, rolls(pool), "The reason: the release image changes from "+pool.Spec.Release.Image+".")
	}
	for _, t := range []string{
		hyperv1.NodePoolUpdatingVersionConditionType, hyperv1.NodePoolUpdatingConfigConditionType,
		hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType,
	} {
		if c := meta.FindStatusCondition(nodepool.Conditions(pool), t); c != nil && c.Status == "True" {
			f := health.Finding{Condition: *c}
			p.warnings = append(p.warnings, "an earlier change is on its way: "+f.String())
		}
	}
	return p
}

// back returns an error for a version of an older minor version than the nodes have.
func back(from, to string) error {
	if from == "" || releaseversion.SameMinor(from, to) || releaseversion.Oldest(from, to) == from {
		return nil
	}
	return fmt.Errorf("nodes cannot go back from version %s to %s: choose a release of the same minor version or "+
		"newer", from, to)
}

// rolls says which machines an upgrade replaces or updates.
func rolls(pool *hyperv1.NodePool) string {
	machines := condition.Count(int(pool.Status.Replicas), "machine")
	if pool.Spec.Management.UpgradeType == hyperv1.UpgradeTypeInPlace {
		most := intstr.FromInt32(1)
		if in := pool.Spec.Management.InPlace; in != nil && in.MaxUnavailable != nil {
			most = *in.MaxUnavailable
		}
		return fmt.Sprintf("%s to update in place (InPlace), at most %s at a time: each node is drained, and no machine "+
			"is installed again.",
			machines, most.String())
	}
	replace := pool.Spec.Management.Replace
	if replace != nil && replace.Strategy == hyperv1.UpgradeStrategyOnDelete {
		return fmt.Sprintf("%s to replace when you delete their Machines (OnDelete).", machines)
	}
	surge, unavailable := intstr.FromInt32(1), intstr.FromInt32(0)
	if replace != nil && replace.RollingUpdate != nil {
		if replace.RollingUpdate.MaxSurge != nil {
			surge = *replace.RollingUpdate.MaxSurge
		}
		if replace.RollingUpdate.MaxUnavailable != nil {
			unavailable = *replace.RollingUpdate.MaxUnavailable
		}
	}
	return fmt.Sprintf("%s to replace (Replace): each is drained and released, and another one is installed. At most "+
		"%s more and %s fewer machines than desired at a time.", machines, surge.String(), unavailable.String())
}

// print prints the plan.
func (p *plan) print(out io.Writer) error {
	title := fmt.Sprintf("%s: %s to %s", p.what, p.from, p.to)
	errs := []error{look.PrintLine(out, "", look.Span{Style: terminal.Bold, Text: title})}
	errs = append(errs, look.PrintLine(out, "", look.Span{Text: "Release image " + p.image}))
	if p.blocked != nil {
		errs = append(errs, look.PrintLine(out, "", look.Span{Style: terminal.Bad, Text: "Refused: " + p.blocked.Error()}))
	}
	for _, warning := range p.warnings {
		errs = append(errs, look.PrintLine(out, "", look.Span{Style: terminal.Attention, Text: "Warning: " + warning}))
	}
	for _, line := range p.lines {
		errs = append(errs, look.PrintLine(out, "", look.Span{Text: line}))
	}
	if len(p.rows) > 0 {
		errs = append(errs, look.PrintLine(out, ""), look.NewTable(out).Print(slices.Clone(p.rows)...))
	}
	return errors.Join(append(errs, look.PrintLine(out, "", look.Span{Text: "Nothing was changed."}))...)
}
