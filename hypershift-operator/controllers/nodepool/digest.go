// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/upsert"
)

// rememberRelease notes which digest spec names, and which was the pool's first. It writes the status at once: machines
// must not be made of a release that the next reconcile may read otherwise.
func (r *Reconciler) rememberRelease(ctx context.Context, s *scope) error {
	digest := s.release.Digest()
	if digest == "" {
		return nil
	}
	image, pinned := s.pool.Spec.Release.Image, s.release.Pinned()
	err := upsert.Status(ctx, r.Client, s.pool, func() {
		s.pool.Status.ResolvedRelease = &hyperv1.NodePoolResolvedRelease{Image: image, PinnedImage: pinned}
	})
	if err != nil {
		return err
	}
	return upsert.Patch(ctx, r.Client, s.pool, func() {
		annotate(s.pool, hyperv1.NodePoolResolvedReleaseAnnotation, image+" "+pinned)
		if s.pool.Annotations[hyperv1.NodePoolFirstReleaseAnnotation] == "" {
			annotate(s.pool, hyperv1.NodePoolFirstReleaseAnnotation, digest)
		}
	})
}

// releaseIdentity is what of the release replaces machines: its version, and its digest unless it is the pool's first release.
// A pool from before digests counted keeps the hash that it had.
func (s *scope) releaseIdentity() string {
	digest := s.release.Digest()
	if digest == s.pool.Annotations[hyperv1.NodePoolFirstReleaseAnnotation] {
		digest = ""
	}
	return s.release.Version() + digest
}

// otherRelease tells that the machines came to another release than the wanted one, be it of the same version.
func (s *scope) otherRelease() bool {
	current := s.pool.Annotations[hyperv1.NodePoolCurrentReleaseAnnotation]
	if current == "" || s.release.Digest() == "" {
		return s.pool.Status.Version != s.release.Version()
	}
	return current != s.release.Digest()
}
