// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"

	"github.com/openshift/hypershift/support/imageregistry"
	"github.com/openshift/hypershift/support/supportedversions"
)

// checkDefaultRelease rejects a release that the installation would not allow clusters to use.
func (o *Options) checkDefaultRelease() error {
	if o.defaultRelease == "" {
		return nil
	}
	if _, err := imageregistry.Parse(o.defaultRelease); err != nil {
		return fmt.Errorf("--%s %q is not an image reference: %w", supportedversions.DefaultReleaseFlag, o.defaultRelease, err)
	}
	if err := o.limits.Image(o.defaultRelease); err != nil {
		return fmt.Errorf("--%s: %w", supportedversions.DefaultReleaseFlag, err)
	}
	return nil
}
