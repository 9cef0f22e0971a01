// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/upsert"
)

// rememberRelease records the digest that the spec's image resolves to, and the pool's first digest. It writes the
// status at once, because the next reconcile may resolve the image to a different digest. Machines must not be created
// before that.
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

// releaseIdentity returns the part of the release whose change replaces machines. That is its version, and its digest
// unless it is the pool's first release. A pool that is older than the use of digests keeps its hash.
func (s *scope) releaseIdentity() string {
	digest := s.release.Digest()
	if digest == s.pool.Annotations[hyperv1.NodePoolFirstReleaseAnnotation] {
		digest = ""
	}
	return s.release.Version() + digest
}

// otherRelease reports whether the machines run a release other than the desired one, even if both have the same
// version.
func (s *scope) otherRelease() bool {
	current := s.pool.Annotations[hyperv1.NodePoolCurrentReleaseAnnotation]
	if current == "" || s.release.Digest() == "" {
		return s.pool.Status.Version != s.release.Version()
	}
	return current != s.release.Digest()
}
