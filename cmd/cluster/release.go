// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/supportedversions"
)

// completeRelease takes the default release of the installation if no release is given, and reports it.
func (c *create) completeRelease(ctx context.Context, report *progress.Reporter) error {
	if c.releaseImage != "" {
		return nil
	}
	cl, err := c.connect()
	if err != nil {
		return fmt.Errorf("--release-image is required without a management cluster that has a default release: %w", err)
	}
	image, err := supportedversions.ReadDefaultRelease(ctx, cl, c.operatorNamespace)
	switch {
	case errors.Is(err, supportedversions.ErrNoDefaultRelease):
		return fmt.Errorf("--release-image is required: %w; set it to the pull spec that `hypershift release build` printed, "+
			"or record a default with `hypershift install --%s`", err, supportedversions.DefaultReleaseFlag)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("--release-image is required: you may not read the default release in ConfigMap %s/%s; "+
			"ask an administrator for a release", c.operatorNamespace, supportedversions.Name)
	case err != nil:
		return fmt.Errorf("--release-image is required: %w", err)
	}
	c.releaseImage = image
	report.Printf("release %s: the default that install recorded in ConfigMap %s/%s",
		image, c.operatorNamespace, supportedversions.Name)
	return nil
}
