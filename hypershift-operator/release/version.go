// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/skew"
)

// minorsOf5 is the offset that continues the minor versions of OpenShift 4 with those of OpenShift 5.
const minorsOf5 = 23

// MaxSkew is how many minor versions nodes may lag behind their control plane.
const MaxSkew = 3

// Supported returns an error for users if a control plane may not run a version, or may not change to it from the
// running one. running is empty for a new cluster.
func Supported(payload *releaseinfo.ReleaseImage, running string) error {
	wanted, err := semver.Parse(payload.Version())
	if err != nil {
		return fmt.Errorf("the release has version %q, which is not a semantic version: use another release image", payload.Version())
	}
	if err := skew.CheckPayload(payload.LowestOperator()); err != nil {
		return err
	}
	traits := distributions.Of(payload.Distribution())
	if withoutPrerelease(wanted).LT(traits.Oldest) {
		return fmt.Errorf("version %s is older than %s, the oldest that is supported for %s: choose a newer release image",
			wanted, traits.Oldest, payload.Distribution())
	}
	if running == "" {
		return known(wanted, payload.Distribution(), 0)
	}
	from, err := semver.Parse(running)
	if err != nil {
		return nil //nolint:nilerr // What runs came from somewhere else; the payload's own operator decides.
	}
	if !traits.Versions(from) {
		return fmt.Errorf("version %s is of %s, and the cluster runs %s of another distribution: the distribution cannot be changed, create a new cluster",
			wanted, payload.Distribution(), from)
	}
	if line(wanted) < line(from) {
		return fmt.Errorf("going back from version %s to %s is not possible: choose a release of %d.%d or newer",
			from, wanted, from.Major, from.Minor)
	}
	return known(wanted, payload.Distribution(), line(from))
}

// known returns an error for users if a minor version is newer than those that this operator knows and newer than the
// running one.
func known(wanted semver.Version, distribution releaseinfo.Distribution, running int) error {
	newest := distributions.Of(distribution).Newest()
	if line(wanted) <= max(line(newest), running) {
		return nil
	}
	return fmt.Errorf("version %s is newer than %d.%d, the newest that this operator knows of %s: install a newer operator, choose an older release image, "+
		"or try it with the annotation %s=true", wanted, newest.Major, newest.Minor, distribution, hyperv1.SkipReleaseImageValidation)
}

// Step returns an error for users if an upgrade of a control plane would skip minor versions. Neither the data in etcd
// nor clients support that. The operators of an OpenShift payload check this themselves. running is empty for a new
// cluster.
func Step(payload *releaseinfo.ReleaseImage, running string) error {
	wanted, from, ok := parseBoth(payload.Version(), running)
	if !ok || distributions.Of(payload.Distribution()).OwnOperators || line(wanted)-line(from) <= 1 {
		return nil
	}
	return fmt.Errorf("a control plane is upgraded by one minor version at a time, and %s to %s spans %d: choose a release of %d.%d first",
		from, wanted, line(wanted)-line(from), from.Major, from.Minor+1)
}

// NextMinor returns the first version of the next minor version; empty if version is invalid.
func NextMinor(version string) string {
	v, err := semver.Parse(version)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d.%d.0", v.Major, v.Minor+1)
}

// Oldest returns the oldest of versions, with or without a leading "v"; empty if there is none. It ignores invalid
// versions.
func Oldest(versions ...string) string {
	var all []semver.Version
	for _, version := range versions {
		if v, err := semver.Parse(strings.TrimPrefix(version, "v")); err == nil {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return slices.MinFunc(all, semver.Version.Compare).String()
}

// SameMinor reports whether two versions differ only in their patch level.
func SameMinor(a, b string) bool {
	va, errA := semver.Parse(a)
	vb, errB := semver.Parse(b)
	return errA == nil && errB == nil && va.Major == vb.Major && va.Minor == vb.Minor
}

// Newer returns an error for users if nodes of version pool are newer than a control plane of version cluster. Skew
// checks for nodes that are too old.
func Newer(pool, cluster string) error {
	p, c, ok := parseBoth(pool, cluster)
	if !ok || !continued(p).GT(continued(c)) {
		return nil
	}
	return fmt.Errorf("the release of the pool has version %s, newer than the cluster's %s: upgrade the cluster first, or choose an older release",
		pool, cluster)
}

// Skew returns an error for users if nodes are too many minor versions behind their control plane.
func Skew(pool, cluster string) error {
	p, c, ok := parseBoth(pool, cluster)
	if !ok || line(c)-line(p) <= MaxSkew {
		return nil
	}
	return fmt.Errorf("the pool's version %s is more than %d minor versions behind the cluster's %s: upgrade the pool", pool, MaxSkew, cluster)
}

func parseBoth(a, b string) (va, vb semver.Version, ok bool) {
	va, errA := semver.Parse(a)
	vb, errB := semver.Parse(b)
	return va, vb, errA == nil && errB == nil
}

// continued converts OpenShift 5.x to the version of OpenShift 4 that it continues: 5.0.1 and 4.23.1 are the same.
func continued(v semver.Version) semver.Version {
	if v.Major >= 5 {
		v.Major, v.Minor = 4, v.Minor+minorsOf5
	}
	return v
}

// line returns a consecutive number of the minor version, across the step from OpenShift 4 to 5.
func line(v semver.Version) int {
	minor := int(min(v.Minor, math.MaxInt32))
	if v.Major >= 5 {
		return minor + minorsOf5
	}
	return minor
}

func withoutPrerelease(v semver.Version) semver.Version {
	v.Pre, v.Build = nil, nil
	return v
}

// AtLeast reports whether a version is at least floor, including pre-releases of floor.
func AtLeast(version, floor string) bool {
	v, f, ok := parseBoth(version, floor)
	return ok && withoutPrerelease(v).GTE(f)
}
