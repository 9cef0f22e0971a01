// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"time"

	"github.com/blang/semver/v4"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/skew"
)

const (
	registryPart = "registry"
	// registryLimit is longer than that of other checks, because a release is read in several requests.
	registryLimit = 30 * time.Second
)

// Release is a release payload to check, as the cluster would read it.
type Release struct {
	// Image is the pull spec; empty skips the check.
	Image string
	// Architecture is that of the machines.
	Architecture            string
	PullSecret, TrustBundle []byte
	Mirrors                 []hyperv1.ImageContentSource
}

// Checks returns the checks of the registry.
func (r Release) Checks() []Check {
	return []Check{{Part: registryPart, Name: "release", Limit: registryLimit, Run: r.release}}
}

func (r Release) release(ctx context.Context) Outcome {
	if r.Image == "" {
		return skipped("", "set --release-image, and --pull-secret if the registry needs it, to check the release payload")
	}
	options := releaseinfo.Options{CABundle: r.TrustBundle}
	for _, m := range r.Mirrors {
		options.Mirrors = append(options.Mirrors, releaseinfo.Mirror{Source: m.Source, Mirrors: m.Mirrors})
	}
	registry, err := releaseinfo.NewRegistry(options)
	if err != nil {
		return failed("check --additional-trust-bundle", "the registry cannot be read: %v", err)
	}
	found, err := registry.Lookup(ctx, r.Image, r.PullSecret)
	if err != nil {
		return failed("the management cluster and the machines read it too: check that they reach the registry", "%v", err)
	}
	if err := skew.CheckPayload(found.LowestOperator()); err != nil {
		return failed("", "%v", err)
	}
	traits := distributions.Of(found.Distribution())
	runs, err := semver.Parse(found.Version())
	switch {
	case err != nil:
		return warn("", "the release has the version %q, which is not a semantic version", found.Version())
	case runs.LT(traits.Oldest):
		return failed("use "+traits.Oldest.String()+" or later", "%s %s is too old", found.Distribution(), runs)
	case runs.Major > traits.Newest().Major || runs.Major == traits.Newest().Major && runs.Minor > traits.Newest().Minor:
		return failed("upgrade HyperShift first, or use an older release", "%s %s is newer than this version supports",
			found.Distribution(), runs)
	}
	if a := found.Architecture(); a != releaseinfo.ArchitectureMulti && a != r.Architecture {
		return failed("use a release for "+r.Architecture+" or for several architectures",
			"the release is for %s, and the machines are %s", a, r.Architecture)
	}
	return ok("%s %s for %s can be read from here", found.Distribution(), runs, found.Architecture())
}
