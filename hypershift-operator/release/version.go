// SPDX-License-Identifier: Apache-2.0

package release

import "github.com/openshift/hypershift/support/releaseversion"

// MaxSkew is how many minor versions nodes may lag behind their control plane.
const MaxSkew = releaseversion.MaxSkew

// The rules for changes between versions, which the command line shares.
var (
	Supported = releaseversion.Supported
	Step      = releaseversion.Step
	NextMinor = releaseversion.NextMinor
	Oldest    = releaseversion.Oldest
	SameMinor = releaseversion.SameMinor
	Newer     = releaseversion.Newer
	Skew      = releaseversion.Skew
	AtLeast   = releaseversion.AtLeast
)
