package release

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/openshift/hypershift/support/releaseinfo"
)

// Oldest versions that a control plane may run. Newer ones than those known are tried.
var oldest = map[releaseinfo.Distribution]semver.Version{
	releaseinfo.OpenShift:  semver.MustParse("4.14.0"),
	releaseinfo.Kubernetes: semver.MustParse("1.31.0"),
}

// SupportedVersions tells people, in one phrase for each distribution, what a control plane may run.
func SupportedVersions() []string {
	var versions []string
	for distribution, floor := range oldest {
		versions = append(versions, fmt.Sprintf("%s %d.%d or newer", strings.ToLower(string(distribution)), floor.Major, floor.Minor))
	}
	slices.Sort(versions)
	return versions
}

// minorsOf5 is what has to be added to the minor of OpenShift 5 to continue that of 4.
const minorsOf5 = 23

// maxSkew is how many minor versions nodes may lag behind their control plane.
const maxSkew = 3

// Supported tells in an error for users why a control plane may not run a version, or may not go there from the one it
// runs; running is empty for a new cluster.
func Supported(payload *releaseinfo.ReleaseImage, running string) error {
	wanted, err := semver.Parse(payload.Version())
	if err != nil {
		return fmt.Errorf("the release has version %q, which is no semantic version: use another release image", payload.Version())
	}
	if floor := oldest[payload.Distribution()]; withoutPrerelease(wanted).LT(floor) {
		return fmt.Errorf("version %s is older than %s, the oldest that is supported for %s: choose a newer release image",
			wanted, floor, payload.Distribution())
	}
	if running == "" {
		return nil
	}
	from, err := semver.Parse(running)
	if err != nil {
		return nil // What runs came from somewhere else; the payload's own operator judges it.
	}
	if line(wanted) < line(from) {
		return fmt.Errorf("going back from version %s to %s is not possible: choose a release of %d.%d or newer",
			from, wanted, from.Major, from.Minor)
	}
	return nil
}

// SameMinor tells whether two versions differ in their patch level only.
func SameMinor(a, b string) bool {
	va, errA := semver.Parse(a)
	vb, errB := semver.Parse(b)
	return errA == nil && errB == nil && va.Major == vb.Major && va.Minor == vb.Minor
}

// Newer tells in an error for users why nodes of version pool may not run below a control plane of version cluster:
// because they are newer. Nodes that are too old are judged by Skew.
func Newer(pool, cluster string) error {
	p, c, ok := parseBoth(pool, cluster)
	if !ok || !p.GT(c) {
		return nil
	}
	return fmt.Errorf("the release of the pool has version %s, newer than the cluster's %s: upgrade the cluster first, or choose an older release",
		pool, cluster)
}

// Skew tells in an error for users that nodes are too far behind their control plane.
func Skew(pool, cluster string) error {
	p, c, ok := parseBoth(pool, cluster)
	if !ok || line(c)-line(p) <= maxSkew {
		return nil
	}
	return fmt.Errorf("the pool's version %s is more than %d minor versions behind the cluster's %s: upgrade the pool", pool, maxSkew, cluster)
}

func parseBoth(a, b string) (va, vb semver.Version, ok bool) {
	va, errA := semver.Parse(a)
	vb, errB := semver.Parse(b)
	return va, vb, errA == nil && errB == nil
}

// line numbers the minor versions of one distribution in a row, over the step from 4 to 5.
func line(v semver.Version) int {
	if v.Major >= 5 {
		return int(v.Minor) + minorsOf5
	}
	return int(v.Minor)
}

func withoutPrerelease(v semver.Version) semver.Version {
	v.Pre, v.Build = nil, nil
	return v
}

// AtLeast tells whether a version is the given one or newer, its pre-releases included.
func AtLeast(version, floor string) bool {
	v, f, ok := parseBoth(version, floor)
	return ok && withoutPrerelease(v).GTE(f)
}
